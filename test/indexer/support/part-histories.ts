/** Random histories of parts in several markets that share accounts, and the database that has matched them. */
import fc from 'fast-check'
import type { Tx } from '../../../db/client.ts'
import { createUsers } from '../../../db/users.ts'
import type { ChainFact } from '../../../domain/chain/facts.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Side } from '../../../domain/orders/order.ts'
import { FLAT, openingBasis, type Position } from '../../../domain/positions/position.ts'
import { settleAccount } from '../../../domain/settlement/settle-account.ts'
import type { BatchSettled, SettledFill } from '../../../domain/settlement/settlement.ts'
import type { Address, FundingIndex, Millis, Price, Steps, Ticks } from '../../../domain/units.ts'
import { e18, perpetual } from '../../support/markets.ts'

export const MARKETS = [1, 2, 3].map(
  (marketId): MarketSpec => ({
    ...perpetual,
    marketId: marketId as MarketSpec['marketId'],
    symbol: `M${marketId}`,
    trader: `0x${String(marketId).repeat(40)}` as Address,
  }),
)
const ACCOUNTS = ['a', 'b', 'c'].map((letter) => `0x${letter.repeat(40)}` as Address)
const PRICE = 1_000 as Ticks
const ORACLE = e18('100') as Price
const AS_OF = 1_700_000_000_000 as Millis
export const TIMESTAMP = AS_OF / 1_000
const HELD_PER_STEP = 10n
const LEVERAGE = 5

interface Trade {
  readonly kind: 'part'
  readonly market: number
  readonly steps: number
  readonly buyer: number
  readonly isMatched: boolean
}
interface Transfer {
  readonly kind: 'withdrawal' | 'deposit'
  readonly account: number
  readonly amount: number
}
export type Step = Trade | Transfer

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('part' as const),
        market: fc.nat(MARKETS.length - 1),
        steps: fc.integer({ min: 1, max: 600 }),
        buyer: fc.nat(ACCOUNTS.length - 1),
        isMatched: fc.integer({ min: 0, max: 5 }).map((n) => n > 0),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constantFrom('withdrawal' as const, 'deposit' as const),
        account: fc.nat(ACCOUNTS.length - 1),
        amount: fc.integer({ min: 1, max: 12 }),
      }),
    },
  ),
  { minLength: 2, maxLength: 12 },
)

export interface History {
  readonly facts: readonly ChainFact[]
  readonly matched: readonly { readonly spec: MarketSpec; readonly settled: BatchSettled }[]
}

/** Funding moves with every action, so that each stores a state. */
const indexAt = (index: number): FundingIndex => (BigInt(index) * 1_000n) as FundingIndex

/** What the contracts would emit. */
export function historyOf(all: readonly Step[]): History {
  const positions = new Map<string, Position>()
  const facts: ChainFact[] = []
  const matched: { spec: MarketSpec; settled: BatchSettled }[] = []
  for (const [index, step] of all.entries()) {
    if (step.kind !== 'part') {
      const amount = e18(String(step.amount))
      const account = ACCOUNTS[step.account] as Address
      facts.push({
        kind: 'ledger_moved',
        account,
        ...(step.kind === 'deposit'
          ? { cause: 'deposit', freeDelta: amount, pendingDelta: 0n }
          : { cause: 'withdrawal_request', freeDelta: -amount, pendingDelta: amount }),
      })
      continue
    }
    const spec = MARKETS[step.market] as MarketSpec
    const buyer = ACCOUNTS[step.buyer] as Address
    const seller = ACCOUNTS[(step.buyer + 1) % ACCOUNTS.length] as Address
    const fills = [
      fillOf(spec, positions, { index, maker: buyer, side: 'LONG', steps: step.steps as Steps }),
      fillOf(spec, positions, { index, maker: seller, side: 'SHORT', steps: step.steps as Steps }),
    ]
    const settled: BatchSettled = {
      ...{
        actionId: index + 1,
        batchId: index + 1,
        part: 1,
        parts: 1,
        asOf: AS_OF,
        observedAt: AS_OF,
        fills,
      },
      ...{ price: PRICE, oraclePrice: ORACLE, makerFee: spec.makerFee, takerFee: spec.takerFee },
      fundingIndex: indexAt(index),
    }
    facts.push({ kind: 'part_mined', spec, settled })
    if (step.isMatched) matched.push({ spec, settled })
  }
  return { facts, matched }
}

function fillOf(
  spec: MarketSpec,
  positions: Map<string, Position>,
  {
    index,
    maker,
    side,
    steps: fill,
  }: {
    readonly index: number
    readonly maker: Address
    readonly side: Side
    readonly steps: Steps
  },
): SettledFill {
  const key = `${spec.marketId}-${maker}`
  const basis = openingBasis(spec, { side, limit: PRICE }, PRICE, ORACLE)
  const given = { side, price: PRICE, steps: fill, takerSteps: 0 as Steps, leverage: LEVERAGE, basis }
  const terms = {
    makerFee: spec.makerFee,
    takerFee: spec.takerFee,
    fundingIndex: indexAt(index),
    oracle: ORACLE,
  }
  const verdict = settleAccount(spec, positions.get(key) ?? FLAT, [given], terms)
  if (!verdict.ok) throw new Error(`the chain would refuse: ${verdict.refusal.code}`)
  positions.set(key, verdict.value.position)
  const [result] = verdict.value.results
  if (result === undefined) throw new Error('one fill has one result')
  return {
    ...{
      maker,
      salt: side === 'LONG' ? 1n : 2n,
      isForced: false,
      side,
      reduceOnly: false,
      leverage: LEVERAGE,
    },
    ...{ fill, taker: 0 as Steps, partialSlot: null, isDead: false, isFeeCapped: true },
    ...{ fee: result.fee, freeDelta: result.freeDelta },
  }
}

const fillId = ({ batchId, part }: BatchSettled, spec: MarketSpec, place: number): string =>
  `${spec.marketId}-${batchId}-${part}-${place}`

/**
 * One order per market, account and side, which all of its parts fill; it ends with the last one if `matched` has all of them. And for each
 * account a reduce-only order that left the book with its last fill.
 */
export async function prepare(tx: Tx, { facts, matched }: History): Promise<void> {
  const { users } = await createUsers(tx, ACCOUNTS, AS_OF)
  await tx
    .updateTable('accounts')
    .set({ free: e18('12'), reserved: e18('1') })
    .execute()
  const sums = new Map<
    string,
    { total: number; settling: number; spec: MarketSpec; fill: SettledFill; closedBy: string | null }
  >()
  const add = (
    spec: MarketSpec,
    fill: SettledFill,
    change: { total: number; settling: number },
    closedBy: string | null,
  ) => {
    const key = `${spec.marketId}-${fill.maker}-${fill.salt}`
    const { total = 0, settling = 0, closedBy: known = null } = sums.get(key) ?? {}
    sums.set(key, {
      ...{
        total: total + change.total,
        settling: settling + change.settling,
        spec,
        fill,
        closedBy: closedBy ?? known,
      },
    })
  }
  for (const fact of facts) {
    if (fact.kind !== 'part_mined') continue
    for (const fill of fact.settled.fills) add(fact.spec, fill, { total: fill.fill, settling: 0 }, null)
  }
  for (const { spec, settled } of matched) {
    for (const [place, fill] of settled.fills.entries()) {
      add(spec, fill, { total: 0, settling: fill.fill }, fillId(settled, spec, place))
    }
  }
  let seq = 0
  for (const { total, settling, spec, fill, closedBy } of sums.values()) {
    const own = { spec, fill, userId: users.get(fill.maker) as number }
    await insertOrder(tx, {
      ...own,
      seq: ++seq,
      salt: Number(fill.salt),
      quantity: total,
      settling,
      closedBy: null,
    })
    if (closedBy === null) continue
    await insertOrder(tx, {
      ...own,
      seq: ++seq,
      salt: 2 + Number(fill.salt),
      quantity: 9,
      settling: 0,
      closedBy,
    })
  }
  for (const { spec, settled } of matched) await insertPart(tx, spec, settled, users)
}

interface Inserted {
  readonly spec: MarketSpec
  readonly fill: SettledFill
  readonly userId: number
  readonly seq: number
  readonly salt: number
  readonly quantity: number
  readonly settling: number
  readonly closedBy: string | null
}

async function insertOrder(
  tx: Tx,
  { spec, fill, userId, seq, salt, quantity, settling, closedBy }: Inserted,
) {
  const held = BigInt(settling) * HELD_PER_STEP
  await tx
    .insertInto('orders')
    .values({
      ...{ order_id: orderId(spec, fill.maker, salt), market_id: spec.marketId, seq, user_id: userId, salt },
      ...{ maker: fill.maker, signer: fill.maker, hash: `hash-${seq}`, signature: '0x', side: fill.side },
      ...{
        type: 'LIMIT',
        price: PRICE,
        quantity,
        trigger: 0,
        leverage: LEVERAGE,
        reduce_only: closedBy !== null,
      },
      ...{ expiration: 0, alive_until: 0, status: 'OPEN', settling, held, openable: 0, reserved_price: 1 },
      ...{ reserved: BigInt(quantity - settling) * HELD_PER_STEP, accepted_at: AS_OF, closed_by: closedBy },
    })
    .execute()
}

const orderId = (spec: MarketSpec, maker: Address, salt: bigint | number): string =>
  `${spec.marketId}-${maker}-${salt}`

async function insertPart(
  tx: Tx,
  spec: MarketSpec,
  settled: BatchSettled,
  users: ReadonlyMap<Address, number>,
): Promise<void> {
  const { batchId: batch_id, part, actionId: action_id, asOf: as_of } = settled
  const market_id = spec.marketId
  await tx
    .insertInto('batches')
    .values({
      ...{
        market_id,
        batch_id,
        as_of,
        price: PRICE,
        lo: 1,
        hi: 2,
        volume: 1,
        demand: 1,
        supply: 1,
        rule: 'volume',
      },
      ...{
        parts: 1,
        oracle_price: ORACLE,
        oracle_at: as_of,
        oracle_signatures: '0x',
        maker_fee: spec.makerFee,
      },
      ...{ taker_fee: spec.takerFee, inputs: Buffer.from('{}'), status: 'SETTLING', created_at: as_of },
    })
    .execute()
  await tx
    .insertInto('actions')
    .values({
      ...{ market_id, queue_no: action_id, kind: 'settle_part', batch_id, part, as_of, action_id },
      ...{ status: 'SUBMITTED', created_at: as_of },
    })
    .execute()
  for (const [place, fill] of settled.fills.entries()) {
    await tx
      .insertInto('fills')
      .values({
        ...{ fill_id: fillId(settled, spec, place), market_id, batch_id, part, place, side: fill.side },
        ...{ order_id: orderId(spec, fill.maker, fill.salt), user_id: users.get(fill.maker) as number },
        ...{ steps: fill.fill, taker_steps: 0, held: BigInt(fill.fill) * HELD_PER_STEP, status: 'SUBMITTED' },
      })
      .execute()
  }
}
