/** Sends generated messages over connections of the live feed and checks that none is executed, fails inside or hangs. */
import type { AddressInfo } from 'node:net'
import { isCommand, OPERATIONS, OPS } from '../../../api/live/schema.ts'
import { LiveClient, type LiveMessage } from '../../support/live-client.ts'
import { waitFor } from '../../support/patience.ts'
import type { Generator, Schema } from './generate.ts'
import { type FuzzReport, type FuzzSetting, HANG_MS, onExchange } from './run.ts'

/** Messages per connection, unless the api closes it before. */
const PER_CONNECTION = 20
const ANSWERS = new Set(['result', 'error', 'subscribed'])

interface Sent {
  readonly op: string
  readonly text: string
}

function messageOf(generator: Generator, id: number): Sent {
  const op = generator.random.of(OPS)
  const { op: _op, id: _id, body, ...fields } = OPERATIONS[op].properties as Record<string, Schema>
  const start = `{"op":${JSON.stringify(op)},"id":${id}`
  if (body !== undefined)
    return { op, text: `${start},"body":${generator.payload(body, { maySucceed: false })}}` }
  const required = Object.keys(fields)
  const rest = generator.payload({ properties: fields, required }, { maySucceed: !isCommand(op) })
  return { op, text: rest.startsWith('{"') ? `${start},${rest.slice(1)}` : rest }
}

async function check({ run }: FuzzSetting, client: LiveClient, { op, text }: Sent): Promise<void> {
  const before = client.messages.length
  const isAnswer = ({ type }: LiveMessage) => ANSWERS.has(type)
  const isOpen = () => client.socket.readyState === client.socket.OPEN
  const read = async (): Promise<LiveMessage> => client.messages.slice(before).find(isAnswer)
  client.socket.send(text)
  const options = { budgetMs: HANG_MS, everyMs: 1 }
  const answer = await waitFor(read, (found) => found !== undefined || !isOpen(), options).catch(() => null)
  const asked = text.slice(0, 600)
  if (answer === null) return run.note(`no answer in ${HANG_MS} ms: ${asked}`)
  const { type, data } = answer ?? { type: 'closed' }
  const code = data?.details?.code
  run.count([type, code].join(' ').trim())
  if (code === 'INTERNAL') run.note(`INTERNAL: ${asked}`)
  if (type === 'error' && code === undefined) run.note(`an error without a code: ${asked}`)
  if (type === 'result' && isCommand(op)) run.note(`executed: ${asked}`)
  if (run.hasSecret(JSON.stringify(answer ?? null))) run.note(`the answer contains a credential: ${asked}`)
}

export const fuzzLive = (count: number, seed: number): Promise<FuzzReport> =>
  onExchange(count, seed, async (setting) => {
    const { exchange, generator, run, credentials } = setting
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
    const base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    for (let sent = 0; sent < count; ) {
      const authorization = generator.random.of([...credentials, null])
      const client = await LiveClient.open(base, { headers: authorization === null ? {} : { authorization } })
      const end = Math.min(count, sent + PER_CONNECTION)
      while (sent < end && client.socket.readyState === client.socket.OPEN)
        await check(setting, client, messageOf(generator, sent++))
      for (const violation of client.violations) run.note(violation)
      await client.close()
    }
    return OPS.length
  })
