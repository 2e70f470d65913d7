/** Placing and cancelling orders with the bodies of the requests: the same for REST and for commands on a connection. */
import type { Caller } from '../auth/caller.ts'
import type { CommandPipeline } from '../commands/pipeline.ts'
import { ApiError } from '../errors.ts'
import type { CancelAllAnswer, CancelAllBody, CancelBatchAnswer, CancelBatchBody } from './batch-schema.ts'
import type { CancelAnswer, CancelBody } from './schema.ts'

/** Postgres stores neither NUL nor unpaired surrogates. */
function storableText(field: string, text: string | undefined): string | null {
  if (text === undefined) return null
  if (text.isWellFormed() && !text.includes('\0')) return text
  throw new ApiError('INVALID_FIELD', {
    field,
    expected: 'a text without NUL and without unpaired surrogates',
    received: text,
  }).beforeReading()
}

export interface OrderCommands
  extends Pick<
    CommandPipeline,
    'arrive' | 'place' | 'close' | 'validate' | 'placeBatch' | 'replace' | 'replaceBatch'
  > {
  cancel(caller: Caller, hash: string, body: CancelBody): Promise<CancelAnswer>
  cancelLabelled(caller: Caller, clientOrderId: string, body: CancelBody): Promise<CancelAnswer>
  cancelBatch(caller: Caller, body: CancelBatchBody): Promise<CancelBatchAnswer>
  cancelAll(caller: Caller, body: CancelAllBody): Promise<CancelAllAnswer>
}

export const createOrderCommands = (commands: CommandPipeline): OrderCommands => ({
  arrive: commands.arrive,
  place: commands.place,
  close: commands.close,
  validate: commands.validate,
  placeBatch: commands.placeBatch,
  replace: commands.replace,
  replaceBatch: commands.replaceBatch,
  async cancel(caller, hash, { reason }) {
    return commands.cancel(caller, hash.toLowerCase(), storableText('reason', reason))
  },
  async cancelLabelled(caller, clientOrderId, { reason }) {
    return commands.cancelLabelled(caller, clientOrderId, storableText('reason', reason))
  },
  async cancelBatch(caller, body) {
    return commands.cancelBatch(caller, body, storableText('reason', body.reason))
  },
  async cancelAll(caller, { market_id: marketId, reason }) {
    const market = marketId === undefined ? null : Number(marketId)
    return commands.cancelAll(caller, market, storableText('reason', reason))
  },
})
