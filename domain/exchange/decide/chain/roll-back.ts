/** Rolls back one fact of a block that left the chain. The newest fact comes first. */
import type { PositionsMoved } from '../../../journal/journal-row.ts'
import { isAdjustment } from '../../../journal/move-cause.ts'
import { reopenedRelay } from '../../../relays/stored-relay.ts'
import { rollBackPart } from '../../../settlement/settle-part.ts'
import { reopenWithPosition, settledOrder } from '../../../settlement/settling-order.ts'
import type { MarketId } from '../../../units.ts'
import { CHAIN } from '../../apply.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'
import type { ExchangeState } from '../../state.ts'
import type { FactRow } from '../../tables/blocks.ts'
import { changeKey, changeRelay } from './accounts.ts'
import { reopenAdjusted, reopenFailed } from './adjustments.ts'
import { ordersWithIds, toSettlingOrder } from './read.ts'

/** `at`: block time, in milliseconds. */
export function rollBackFact(draft: Draft, { market_id, row }: FactRow, at: number): void {
  const marketId = market_id as MarketId
  switch (row.kind) {
    case 'part_settled': {
      const orders = ordersWithIds(
        draft.state,
        marketId,
        row.orders.map(({ order_id }) => order_id),
      )
      const settling = orders.map((order) => toSettlingOrder(draft.state, order))
      draft.write(marketId, rollBackPart(row, settling).row)
      return
    }
    case 'positions_moved':
      draft.write(marketId, rolledBackMove(draft.state, marketId, row))
      if (isAdjustment(row)) reopenAdjusted(draft, marketId, row)
      return
    case 'terms_changed':
      if (row.ending !== null) draft.write(marketId, { ...row.ending, rollback: true })
      draft.write(marketId, { ...row, rollback: true })
      return
    case 'session_key_changed':
      // Orders that the key signed since then are cancelled, unless the key was registered before that block.
      changeKey(draft, { ...row, rollback: true, before: row.after, after: row.before })
      return
    case 'forward_request_executed':
      for (const operation of draft.state.relayIndex.withNonce(row.signer, row.nonce))
        if (operation.block === row.block) changeRelay(draft, operation, reopenedRelay(operation, row.at))
      draft.write(ACCOUNTS, { ...row, rollback: true })
      return
    case 'log_undecodable':
      reopenFailed(draft, row, at)
      draft.write(CHAIN, { ...row, rollback: true })
      return
    default:
      draft.write(marketId, { ...row, rollback: true })
  }
}

/** Restores the reduce-only orders to their state before the move. */
function rolledBackMove(state: ExchangeState, marketId: MarketId, row: PositionsMoved): PositionsMoved {
  const closed = new Map(row.orders?.map((order) => [order.order_id, order]))
  const orders = ordersWithIds(state, marketId, [...closed.keys()]).flatMap((order) => {
    const settling = toSettlingOrder(state, order)
    const after = closed.get(settling.orderId)
    if (after === undefined) return []
    // A void returns live orders to the book, except orders that the move had ended.
    const closedBy = isVoided(state, settling.closedBy) ? null : settling.closedBy
    return [settledOrder(reopenWithPosition({ ...settling, closedBy }, after), 0n)]
  })
  return { ...row, rollback: true, orders }
}

/**
 * Whether the fill is voided.
 * A fill that closed a position is not confirmed before the move's block, so a fill that the state no longer has is voided.
 */
function isVoided(state: ExchangeState, fillId: string | null): boolean {
  if (fillId === null) return false
  const [marketId, batchId, part, seq] = fillId.split('-').map(Number) as [number, number, number, number]
  return state.fills.get(marketId, batchId, part, seq) === undefined
}
