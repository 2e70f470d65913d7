/** Accepts adjustments, waits until the chain has executed them and the events are reconciled, and lists the attempts. */
import type { AttemptRow } from '../../db/adjustments.ts'
import { shardId } from '../../db/journal.ts'
import { ADJUSTMENT_LANE } from '../../db/relayers.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { toNumber } from '../wire/amounts.ts'
import type { AwaitEnd } from './attempt-ends.ts'
import { leverageOf, marginOf, marketOf, readRequest } from './parse.ts'
import { type PreparePorts, prepare } from './prepare.ts'
import type {
  AdjustLeverageAnswer,
  AdjustLeverageBody,
  AdjustMarginAnswer,
  AdjustMarginBody,
} from './schema.ts'

export interface Adjustments {
  leverage(caller: Caller, body: AdjustLeverageBody): Promise<AdjustLeverageAnswer>
  margin(caller: Caller, body: AdjustMarginBody): Promise<AdjustMarginAnswer>
}

export interface AdjustmentPorts extends PreparePorts {
  readonly markets: MarketDirectory
  readonly awaitEnd: AwaitEnd
}

/** Throws an ApiError unless the attempt is committed. */
function checkOutcome({ adjustment_id, status, tx_hash, failure_kind, failure_reason }: AttemptRow): void {
  if (status === 'COMMITTED') return
  const facts = { adjustment_id, status, tx_hash }
  if (status === 'ABORTED') throw new ApiError('ADJUSTMENT_ABORTED', { ...facts, failure_reason })
  if (status === 'RECEIPT_RECONCILIATION_FAILED')
    throw new ApiError('ADJUSTMENT_NOT_RECONCILED', { ...facts, failure_kind, failure_reason })
  throw new ApiError('ADJUSTMENT_PENDING', facts, '1')
}

export function createAdjustments(
  ports: AdjustmentPorts,
  { adjustmentWaitMs }: { readonly adjustmentWaitMs: number },
): Adjustments {
  const { db, markets, awaitEnd } = ports

  async function execute(
    caller: Caller,
    spec: MarketSpec,
    request: ReturnType<typeof readRequest>,
  ): Promise<{ readonly attempt: AttemptRow; readonly answer: CommonAnswer }> {
    const prepared = await prepare(ports, caller, request)
    const attempt = await awaitEnd(prepared, adjustmentWaitMs)
    checkOutcome(attempt)
    return { attempt, answer: await answerOf(attempt, spec) }
  }

  async function answerOf(attempt: AttemptRow, spec: MarketSpec) {
    const shard = await db
      .selectFrom('shards')
      .select(['shard', 'epoch'])
      .where('shard', '=', marketShard(spec.marketId))
      .executeTakeFirstOrThrow()
    const tx_hash = attempt.tx_hash as string
    return {
      success: true,
      adjustment_id: attempt.adjustment_id,
      read_after: { shard_id: shardId(shard), shard_seq: String(attempt.seq) },
      // Null if another operator has executed the adjustment.
      execution: { relayer_id: ADJUSTMENT_LANE, nonce: String(attempt.relayer_nonce ?? ''), tx_hash },
      ...{ market_id: spec.marketId, symbol: spec.symbol, perpetual_address: spec.trader, tx_hash },
      called_by: attempt.relayer ?? '',
      ...(attempt.gas_used !== null && { gas_used: String(attempt.gas_used) }),
    }
  }
  type CommonAnswer = Awaited<ReturnType<typeof answerOf>>

  return {
    async leverage(caller, body) {
      const spec = await marketOf(caller, body, markets)
      const { attempt, answer } = await execute(caller, spec, readRequest(spec, body, leverageOf(body)))
      return { ...answer, cancelled_orders: attempt.cancelled_orders, recreated_orders: 0 }
    },
    async margin(caller, body) {
      const spec = await marketOf(caller, body, markets)
      const { attempt, answer } = await execute(caller, spec, readRequest(spec, body, marginOf(body)))
      const moved = attempt.moved as bigint
      return {
        ...{ ...answer, amount: toNumber(moved), amount_e18_raw: moved.toString() },
        ...(attempt.max_removable !== null && { max_removable_amount: toNumber(attempt.max_removable) }),
      }
    },
  }
}
