/** Sockets that follow topics, in a process of their own. Of each message only the head is looked at. */
import pg from 'pg'
import { WebSocket } from 'ws'

export interface ReadersTask {
  readonly url: string
  readonly sockets: number
  readonly topics: readonly string[]
  /** If set, the commits of the journal's shard are noted. */
  readonly journal: { readonly databaseUrl: string; readonly shard: string } | null
}

export interface Received {
  /** By batch and topic: sockets that have received its first message, and when the last one did. What follows tells of its settlement. */
  readonly batches: readonly {
    readonly batch: number
    readonly topic: string
    readonly count: number
    readonly last: number
  }[]
  /** When each sequence of the shard was announced, in order. */
  readonly commits: readonly { readonly seq: number; readonly at: number }[]
  readonly messages: number
}

const HEAD_BYTES = 300
const HEAD = /"topic":"([^"]+)".*?"batch_id":(\d+)/
/** Sockets that connect at the same time. */
const AT_ONCE = 50

const batches = new Map<string, { batch: number; topic: string; count: number; last: number }>()
const commits: { seq: number; at: number }[] = []
let messages = 0

/** `newest`: by topic, the newest batch of which the socket has a message. */
function receive(data: Buffer, newest: Map<string, number>): void {
  messages++
  const [, topic, batch] = HEAD.exec(data.toString('latin1', 0, HEAD_BYTES)) ?? []
  if (topic === undefined || batch === undefined || Number(batch) <= (newest.get(topic) ?? 0)) return
  newest.set(topic, Number(batch))
  const key = `${batch} ${topic}`
  const known = batches.get(key) ?? { batch: Number(batch), topic, count: 0, last: 0 }
  known.count++
  known.last = Date.now()
  batches.set(key, known)
}

async function open(url: string, topics: readonly string[]): Promise<WebSocket> {
  const socket = new WebSocket(url, { perMessageDeflate: false })
  const newest = new Map<string, number>()
  let begun = 0
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('open', () => {
      if (topics.length === 0) resolve()
      else socket.send(JSON.stringify({ op: 'subscribe', id: 1, topics }))
    })
    socket.on('message', (data: Buffer) => {
      if (begun < topics.length && data.toString('latin1', 0, HEAD_BYTES).includes('"type":"subscribed"')) {
        begun++
        if (begun === topics.length) resolve()
      }
      receive(data, newest)
    })
  })
  return socket
}

const task = await new Promise<ReadersTask>((resolve) =>
  process.once('message', (message) => resolve(message as ReadersTask)),
)
if (task.journal !== null) {
  const { databaseUrl, shard } = task.journal
  const client = new pg.Client(databaseUrl)
  await client.connect()
  client.on('notification', ({ payload = '' }) => {
    const [of, seq] = payload.split(':')
    if (of === shard) commits.push({ seq: Number(seq), at: Date.now() })
  })
  await client.query('listen journal')
}
const sockets: WebSocket[] = []
while (sockets.length < task.sockets) {
  const count = Math.min(AT_ONCE, task.sockets - sockets.length)
  sockets.push(...(await Promise.all(Array.from({ length: count }, () => open(task.url, task.topics)))))
}
process.send?.({ ready: sockets.length })
await new Promise((resolve) => process.once('message', resolve))
process.send?.({ batches: [...batches.values()], commits, messages } satisfies Received, () => process.exit())
