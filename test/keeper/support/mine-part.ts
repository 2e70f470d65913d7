/** Settlement without a chain: what the contract would log for the oldest part, handed to the indexer as if it had read it. */

import { loadPending } from '../../../db/actions.ts'
import { minedPosition } from '../../../db/positions.ts'
import { anyOf } from '../../../db/values.ts'
import { byAccount } from '../../../domain/auction/batch.ts'
import { openingBasis, type Position } from '../../../domain/positions/position.ts'
import { settleAccount } from '../../../domain/settlement/settle-account.ts'
import type { BatchSettled, SettledFill } from '../../../domain/settlement/settlement.ts'
import type {
  Address,
  FundingIndex,
  Millis,
  Price,
  Quote,
  Rate,
  Steps,
  Ticks,
} from '../../../domain/units.ts'
import { ask } from '../../../keeper/engine/link/engine.ts'
import { withMirror } from '../../support/mirror.ts'
import { PATIENCE } from '../../support/patience.ts'
import type { PartKey } from '../../support/rows/actions.ts'
import { partOf } from '../../support/rows/actions.ts'
import { toOpenOrder } from '../../support/rows/orders.ts'
import type { MarketFixture } from './market-fixture.ts'
import { matchedFills } from './matched-fills.ts'
import { mineBlock } from './mine-block.ts'

/** The oldest part that is not mined. */
export async function oldestPart({ db, spec }: MarketFixture) {
  const actions = await loadPending(db, spec.marketId)
  const action = actions.find(({ kind }) => kind === 'settle_part')
  return action && { ...action, ...(partOf(action) as PartKey) }
}

type Action = NonNullable<Awaited<ReturnType<typeof oldestPart>>>

async function fillsOf({ db }: MarketFixture, { market_id, batch_id, part }: Action) {
  const fills = (await matchedFills(db)).filter(
    (fill) => fill.marketId === market_id && fill.batchId === batch_id && fill.part === part,
  )
  const orderIds = fills.map(({ orderId }) => orderId)
  const orders = await db
    .selectFrom('orders')
    .selectAll()
    .where('order_id', '=', anyOf('text', orderIds))
    .execute()
  const byId = new Map(orders.map((row) => [row.order_id, toOpenOrder(row)]))
  return fills.map((fill) => ({
    account: fill.account,
    order: byId.get(fill.orderId) as ReturnType<typeof toOpenOrder>,
    steps: fill.steps,
    taker: fill.takerSteps,
    slot: fill.partialSlot,
  }))
}

async function settledPart(fixture: MarketFixture, action: Action): Promise<BatchSettled> {
  const { db, spec } = fixture
  const batch = await db
    .selectFrom('batches')
    .selectAll()
    .where('market_id', '=', spec.marketId)
    .where('batch_id', '=', action.batch_id)
    .executeTakeFirstOrThrow()
  const filled = await fillsOf(fixture, action)
  const accounts = filled.map(({ account }) => account)
  const rows = await withMirror(db)
    .selectFrom('positions')
    .selectAll()
    .where('market_id', '=', spec.marketId)
    .where('user_id', '=', anyOf('bigint', accounts))
    .execute()
  const positions = new Map<number, Position>(rows.map((row) => [row.user_id, minedPosition(row)]))
  const price = batch.price as Ticks
  const oracle = batch.oracle_price as Price
  const terms = {
    makerFee: batch.maker_fee as Rate,
    takerFee: batch.taker_fee as Rate,
    fundingIndex: 0n as FundingIndex,
    oracle,
  }
  const fills = byAccount(filled).flatMap((run): SettledFill[] => {
    const before = positions.get(run[0]?.account as number) ?? FLAT
    const given = run.map(({ order, steps, taker }) => ({
      side: order.side,
      price,
      steps,
      takerSteps: taker,
      leverage: order.leverage,
      basis: openingBasis(spec, { side: order.side, limit: order.price }, price, oracle),
    }))
    const settled = settleAccount(spec, before, given, terms)
    if (!settled.ok) throw new Error(`the chain would refuse: ${settled.refusal.code}`)
    return run.map(({ order, steps, taker, slot }, at) => {
      const result = settled.value.results[at] as (typeof settled.value.results)[number]
      return {
        maker: order.maker,
        salt: order.salt,
        isForced: order.forced,
        side: order.side,
        reduceOnly: order.reduceOnly,
        leverage: order.leverage,
        fill: steps,
        taker,
        partialSlot: slot,
        isDead: false,
        isFeeCapped: true,
        fee: result.fee as Quote,
        freeDelta: result.freeDelta,
      }
    })
  })
  const { batch_id: batchId, part } = action
  const actionId = action.action_id ?? action.queue_no
  return {
    ...{ actionId, batchId, part, parts: batch.parts, price, oraclePrice: oracle, fills },
    ...{ makerFee: terms.makerFee, takerFee: terms.takerFee, fundingIndex: terms.fundingIndex },
    asOf: batch.as_of as Millis,
    observedAt: batch.oracle_at as Millis,
  }
}

const FLAT: Position = {
  size: 0 as Steps,
  entryNotional: 0n as Quote,
  foldedMargin: 0n as Quote,
  leverage: 0,
}

/** The part gets its number, as it would be signed and sent. */
async function submit({ engine, spec }: MarketFixture, action: Action): Promise<void> {
  const { marketId } = spec
  const { relayer } = LANE
  await ask<'register_lane'>(engine, { kind: 'register_lane', ...LANE, firstNonce: 0 }, BUDGET_MS)
  const latestAsOf = Number.MAX_SAFE_INTEGER as Millis
  const next = { kind: 'next_action', marketId, relayer, latestAsOf } as const
  const answer = await ask<'next_action'>(engine, next, BUDGET_MS)
  if (answer.kind !== 'action' || answer.queueNo !== action.queue_no)
    throw new Error(`part ${action.part} is not the next action: ${answer.kind}`)
  const { queueNo, nonce } = answer
  const signed = { marketId, queueNo, relayer, nonce, attempt: 1, hash: hashOf(queueNo) } as const
  await ask<'signed'>(engine, { kind: 'signed', ...signed, purpose: 'settle_part' }, BUDGET_MS)
  await ask<'submitted'>(engine, { kind: 'submitted', marketId, relayer, nonce }, BUDGET_MS)
}

const BUDGET_MS = 10_000 * PATIENCE
const LANE = { lane: 'without a chain', relayer: `0x${'e'.repeat(40)}` as Address, chainId: 1 }
const hashOf = (queueNo: number): string => `0x${queueNo.toString(16).padStart(64, '0')}`

/** Mines the oldest part, if there is one. */
export async function mineOldestPart(fixture: MarketFixture): Promise<boolean> {
  const next = await oldestPart(fixture)
  if (next === undefined) return false
  // After a fork it has its number already.
  if (next.status === 'QUEUED') await submit(fixture, next)
  const settled = await settledPart(fixture, (await oldestPart(fixture)) as Action)
  const { db, clock, spec } = fixture
  await mineBlock(db, Math.floor(clock.value / 1000), { kind: 'part_mined', spec, settled }, spec.trader)
  return true
}
