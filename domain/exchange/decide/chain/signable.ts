/** Content of a queued action for the worker that signs it. */
import { type SignableAction, withoutRepeatedProof } from '../../../actions/action-rules.ts'
import type { SignedOrder } from '../../../orders/order.ts'
import type { OracleReport, SettlementPart } from '../../../settlement/settlement.ts'
import type { Address, MarketId, Millis, Price, Rate, Steps, Ticks } from '../../../units.ts'
import { singleActionOf } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import { type ActionRow, actionKey, type BatchRow, batchKey } from '../../tables/markets.ts'
import type { FillRow, OrderRow } from '../../tables/orders.ts'
import { type PartRef, waitingFills } from './read.ts'

/** The part that the action settles; null for a single action. */
export const partOf = ({ batch_id: batchId, part }: ActionRow): PartRef | null =>
  batchId === null || part === null ? null : { batchId, part }

/** The signable action, without its report proof if the preceding action has the same report. */
export function signableOf(state: ExchangeState, action: ActionRow, actionId: number): SignableAction {
  const marketId = action.market_id as MarketId
  const part = partOf(action)
  if (part === null) {
    return withoutRepeatedProof(singleActionOf(action), reportOfAction(state, marketId, actionId - 1))
  }
  return withoutRepeatedProof(
    { kind: 'settle_part', part: readPart(state, marketId, part, actionId) },
    reportOfAction(state, marketId, actionId - 1),
  )
}

function readPart(
  state: ExchangeState,
  marketId: MarketId,
  { batchId, part }: PartRef,
  actionId: number,
): SettlementPart {
  const batch = state.batches.need(batchKey(marketId, batchId))
  return {
    marketId,
    actionId,
    batchId,
    part,
    parts: batch.parts,
    asOf: batch.as_of as Millis,
    price: batch.price as Ticks,
    makerFee: BigInt(batch.maker_fee) as Rate,
    takerFee: BigInt(batch.taker_fee) as Rate,
    oracle: reportOf(batch),
    fills: waitingFills(state, marketId, { batchId, part }).map((fill) => settlementFill(state, fill)),
  }
}

const reportOf = ({ oracle_price, oracle_at, oracle_signatures }: BatchRow): OracleReport => ({
  price: BigInt(oracle_price) as Price,
  observedAt: oracle_at as Millis,
  signatures: oracle_signatures as `0x${string}`,
})

function settlementFill(state: ExchangeState, fill: FillRow): SettlementPart['fills'][number] {
  const order = state.orders.need(fill.marketId, fill.accepted)
  const share = { fill: fill.steps, taker: fill.takerSteps }
  if (order.forced) {
    const account = state.users.need(order.account).address
    return { ...share, account, number: BigInt(order.salt), side: order.side }
  }
  return { ...share, order: signedOrder(state, order), partialSlot: fill.partialSlot }
}

function signedOrder(state: ExchangeState, order: OrderRow): SignedOrder {
  const { hash, signer, signature } = state.signatures.need(order.marketId, order.accepted)
  return {
    marketId: order.marketId,
    maker: state.users.need(order.account).address,
    side: order.side,
    type: order.type,
    price: order.price,
    quantity: (order.quantity + order.unused) as Steps,
    trigger: order.trigger,
    leverage: order.leverage,
    reduceOnly: order.reduceOnly,
    expiration: order.expiration,
    salt: BigInt(order.salt),
    hash,
    signer: signer as Address,
    signature: signature as `0x${string}`,
  }
}

/**
 * Report of the action with this id; null if it uses no report of the market's own feed, or if no signed or
 * mined action has the id.
 */
function reportOfAction(
  state: ExchangeState,
  marketId: MarketId,
  actionId: number,
): Pick<OracleReport, 'price' | 'observedAt'> | null {
  const queueNo = state.queues.ofActionId(marketId, actionId)
  const action = queueNo === undefined ? undefined : state.actions.get(actionKey(marketId, queueNo))
  if (action === undefined || action.status === 'QUEUED' || action.kind === 'finalize_market') return null
  const part = partOf(action)
  const batch = part === null ? undefined : state.batches.get(batchKey(marketId, part.batchId))
  if (batch !== undefined) return reportOf(batch)
  const { payload } = action
  if (payload === null || !('report' in payload) || payload.report === undefined) return null
  const { price, observed_at } = payload.report
  return { price: BigInt(price) as Price, observedAt: observed_at as Millis }
}
