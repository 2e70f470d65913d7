/** Sockets that follow topics, in a process of their own. Of each message only the head is looked at. */
import pg from 'pg'
import { LeanSocket } from './lean-socket.ts'

export interface ReadersTask {
  readonly url: string
  readonly sockets: number
  readonly topics: readonly string[]
  /** If set, the commits of the journal's shard are noted. */
  readonly journal: { readonly databaseUrl: string; readonly shard: string } | null
}

export interface Received {
  /** By batch and topic: sockets that have received its first message, and when the last one did. What follows is about its settlement. */
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

const HEAD = /"topic":"([^"]+)".*?"batch_id":(\d+)/
/** Sockets that connect at the same time. */
const AT_ONCE = 50

const batches = new Map<string, { batch: number; topic: string; count: number; last: number }>()
const commits: { seq: number; at: number }[] = []
let messages = 0

interface OfBatch {
  readonly topic: string
  readonly batch: number
}

/** By heads that came together, which sockets share: the topics and batches that they name. */
const named = new WeakMap<readonly string[], readonly OfBatch[]>()

function namedBy(heads: readonly string[]): readonly OfBatch[] {
  const known = named.get(heads)
  if (known !== undefined) return known
  const found = heads.flatMap((head) => {
    const [, topic, batch] = HEAD.exec(head) ?? []
    return topic === undefined || batch === undefined ? [] : [{ topic, batch: Number(batch) }]
  })
  named.set(heads, found)
  return found
}

/** `newest`: by topic, the newest batch of which the socket has a message. */
function receive(heads: readonly string[], newest: Map<string, number>): void {
  messages += heads.length
  for (const { topic, batch } of namedBy(heads)) {
    if (batch <= (newest.get(topic) ?? 0)) continue
    newest.set(topic, batch)
    const key = `${batch} ${topic}`
    const known = batches.get(key) ?? { batch, topic, count: 0, last: 0 }
    known.count++
    known.last = Date.now()
    batches.set(key, known)
  }
}

/** Resolves once all subscriptions have begun. A message of subscription has one topic, which keeps it short. */
async function open(url: string, topics: readonly string[]): Promise<LeanSocket> {
  const newest = new Map<string, number>()
  const begun = Promise.withResolvers<void>()
  let left = topics.length
  const socket = await LeanSocket.open(url, (heads) => {
    if (left > 0) {
      left -= heads.filter((head) => head.includes('"type":"subscribed"')).length
      if (left === 0) begun.resolve()
    }
    receive(heads, newest)
  })
  for (const topic of topics) socket.send({ op: 'subscribe', id: 1, topics: [topic] })
  await begun.promise
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
const sockets: LeanSocket[] = []
while (sockets.length < task.sockets) {
  const count = Math.min(AT_ONCE, task.sockets - sockets.length)
  sockets.push(...(await Promise.all(Array.from({ length: count }, () => open(task.url, task.topics)))))
}
process.send?.({ ready: sockets.length })
await new Promise((resolve) => process.once('message', resolve))
process.send?.({ batches: [...batches.values()], commits, messages } satisfies Received, () => process.exit())
