/** The commands on a connection: the bodies, limits, checks and answers of their requests over REST. */
import type { Caller } from '../auth/caller.ts'
import type { Arrival } from '../commands/arriving-placements.ts'
import { ApiError } from '../errors.ts'
import { costOfAnswer, costOfCancels, costOfCommandAnswer } from '../http/answer-cost.ts'
import type { Bucket } from '../http/buckets.ts'
import type { OrderCommands } from '../order-entry/order-commands.ts'
import type { StartCost } from './ports.ts'
import { isCommand, type Message, type Op } from './schema.ts'

/** The limit in which an operation is counted. `ping` and `unsubscribe` count only as messages. */
export const BUCKET_OF: Readonly<Partial<Record<Op, Bucket>>> = {
  subscribe: 'reads',
  auth: 'reads',
  place: 'orders',
  place_batch: 'batches',
  replace: 'orders',
  replace_batch: 'batches',
  cancel: 'cancels',
  cancel_by_client_id: 'cancels',
  cancel_batch: 'cancels',
  cancel_all: 'cancels',
  cancel_on_disconnect: 'cancels',
}

/** Topics that begin with snapshots, for one read; a topic that resumes costs a read of its own. */
export const TOPICS_PER_READ = 10

/** Rows of the feed that take about as long to encode as a read. */
const ROWS_PER_READ = 50

/** Additional reads that the start of a subscription costs. */
export const readsOf = ({ rows, bytes }: StartCost): number =>
  Math.floor(rows / ROWS_PER_READ) + costOfAnswer('reads', bytes)

/** Additional requests that a command costs, by its items and its answer. */
export function costOfCommand(message: OrderMessage, json: string): number {
  const bucket = BUCKET_OF[message.op]
  const ofItems = message.op === 'cancel_batch' ? costOfCancels(message.body.orderHashes.length) : 0
  return bucket === undefined ? 0 : Math.max(ofItems, costOfCommandAnswer(bucket, json))
}

/** The caller of a command. */
export function traderOf(op: Op, caller: Caller | null): Caller {
  if (caller === null) throw new ApiError('CREDENTIAL_MISSING').beforeReading()
  if (caller.scope === 'read' && isCommand(op)) throw new ApiError('READ_ONLY_KEY').beforeReading()
  return caller
}

/** The answer of a request as JSON, and its bookmark. */
export interface CommandResult {
  readonly json: string
  readonly readAfter: unknown
}

const resultOf = (answer: { readonly read_after: unknown }): CommandResult => ({
  json: JSON.stringify(answer),
  readAfter: answer.read_after,
})

export type OrderMessage = Message<
  | 'place'
  | 'place_batch'
  | 'replace'
  | 'replace_batch'
  | 'cancel'
  | 'cancel_by_client_id'
  | 'cancel_batch'
  | 'cancel_all'
>

/** Announces a placement or a replacement as its message arrives, so that a cancel after it on the connection does not overtake it; null for a cancel. */
export const announce = (commands: OrderCommands, caller: Caller, op: Op): Arrival | null =>
  op.startsWith('place') || op.startsWith('replace') ? commands.arrive(caller) : null

export async function execute(
  commands: OrderCommands,
  caller: Caller,
  message: OrderMessage,
  arrival?: Arrival,
): Promise<CommandResult> {
  switch (message.op) {
    case 'place':
      return resultOf(await commands.place(caller, message.body, arrival))
    case 'place_batch':
      return commands.placeBatch(caller, message.body, arrival)
    case 'replace':
      return resultOf(await commands.replace(caller, message.body, arrival))
    case 'replace_batch':
      return commands.replaceBatch(caller, message.body, arrival)
    case 'cancel': {
      const { order_hash: hash, ...body } = message.body
      return resultOf(await commands.cancel(caller, hash, body))
    }
    case 'cancel_by_client_id': {
      const { client_order_id: id, ...body } = message.body
      return resultOf(await commands.cancelLabelled(caller, id, body))
    }
    case 'cancel_batch':
      return resultOf(await commands.cancelBatch(caller, message.body))
    case 'cancel_all':
      return resultOf(await commands.cancelAll(caller, message.body))
  }
}
