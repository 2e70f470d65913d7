/**
 * Measures one batch in ms: 1,000 new orders are inserted into a book with 2,000 orders in the band, and the batch is
 * cleared. Needs a CPU core of its own.
 */
import { setFlagsFromString } from 'node:v8'
import { type AuctionInput, clear } from '../domain/auction/auction.ts'
import type { Clearing } from '../domain/auction/clearing.ts'
import { Book, type RestingOrder } from '../domain/book/book.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { DEFAULT_PRICE_PROTECTION } from '../domain/market/price-protection.ts'
import { FLAT, type Position } from '../domain/positions/position.ts'
import {
  type FundingIndex,
  type Millis,
  ONE,
  type Price,
  type Quote,
  type Seq,
  type Steps,
  type Ticks,
  type UserId,
} from '../domain/units.ts'
import { argumentsOf } from '../service/command-line.ts'

// As in every process. V8 would otherwise conclude that a batch's objects live long and allocate them in the old heap,
// whose collection takes longer than the batch.
setFlagsFromString('--no-allocation-site-pretenuring')

const RESTING = [1_000, 10_000, 100_000, 1_000_000]
const ORDERS_PER_LEVEL = 10
const IN_BAND = 2_000
const NEW_ORDERS = 1_000
const ACCOUNTS = 5_000
const WARM_UP = 50
const BATCHES = 300

const ORACLE_TICKS = 1_000_000
const BAND_TICKS = 50_000

const spec = {
  marketId: 1,
  symbol: 'BENCH-PERP',
  kind: 'perpetual',
  trader: '0x1111111111111111111111111111111111111111',
  chainId: 6343n,
  tick: ONE / 10n,
  step: ONE / 1000n,
  minPrice: 1,
  minQuantity: 1,
  maxQuantity: 10_000_000,
  maxLeverage: 20,
  imr: (ONE * 45n) / 1000n,
  mmr: (ONE * 225n) / 10_000n,
  mtbLong: ONE / 20n,
  mtbShort: ONE / 20n,
  makerFee: 0n,
  takerFee: (ONE * 5n) / 10_000n,
  fundingCap: 0n,
  fundingSession: false,
  finalLow: 0n,
  finalHigh: 0n,
  expiresAt: 0,
  disputeWindow: 86_400_000,
} as unknown as MarketSpec

/** The oracle price varies by up to 0.2 %, so that it exceeds the reserved price of some older orders. */
const oracleAt = (random: Random): Price =>
  (BigInt(ORACLE_TICKS - 1_000 + random(2_000)) * spec.tick) as Price

/** mulberry32: every run has the same orders. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

type Random = (below: number) => number

function order(random: Random, seq: number, fields: Partial<RestingOrder>): RestingOrder {
  const remaining = (1 + random(5_000)) as Steps
  const limit = fields.limit ?? (0 as Ticks)
  const side = fields.side ?? (random(2) === 0 ? 'LONG' : 'SHORT')
  const edge = ORACLE_TICKS + BAND_TICKS
  return {
    seq: seq as Seq,
    account: (1 + random(ACCOUNTS)) as UserId,
    side,
    type: 'LIMIT',
    limit,
    remaining,
    leverage: 1 + random(10),
    reduceOnly: false,
    forced: false,
    triggered: false,
    widenings: 0,
    openable: remaining,
    reservedPrice: (side === 'LONG' && limit > 0 ? limit : Math.max(limit, edge)) as Ticks,
    expiration: 0 as RestingOrder['expiration'],
    acceptedAt: 0 as Millis,
    ...fields,
  }
}

/** Price levels on a grid: `IN_BAND` orders close to the oracle price on both sides, all other orders outside the band. */
function restingOrder(random: Random, seq: number, levels: number): RestingOrder {
  const side = seq % 2 === 0 ? 'LONG' : 'SHORT'
  const spacing = Math.floor((BAND_TICKS * ORDERS_PER_LEVEL * 2) / IN_BAND)
  const nearLevels = IN_BAND / ORDERS_PER_LEVEL / 2
  const level = seq < IN_BAND ? random(nearLevels) : nearLevels + random(Math.max(1, levels / 2 - nearLevels))
  const distance = level < nearLevels ? 1 + level * (spacing - 20) : BAND_TICKS + 2_000 + level
  const limit = ORACLE_TICKS + (side === 'LONG' ? -1 : 1) * distance
  return order(random, seq, { side, limit: Math.max(1, limit) as Ticks })
}

/** One third are market orders, the rest limit orders around the oracle price. */
const newOrder = (random: Random, seq: number): RestingOrder =>
  random(3) === 0
    ? order(random, seq, { type: 'MARKET' })
    : order(random, seq, { limit: (ORACLE_TICKS - 2_000 + random(4_000)) as Ticks })

/** Every other account has a position with a profit or loss of up to 2 %. */
function positionsOf(random: Random): Map<UserId, Position> {
  const positions = new Map<UserId, Position>()
  for (let account = 1; account <= ACCOUNTS; account += 2) {
    const size = 1 + random(5_000)
    const entry = BigInt(Math.floor(ORACLE_TICKS * 0.98) + random(ORACLE_TICKS * 0.04))
    const entryNotional = entry * BigInt(size) * ((spec.tick * spec.step) / ONE)
    positions.set(account as UserId, {
      size: (random(2) === 0 ? size : -size) as Steps,
      entryNotional: entryNotional as Quote,
      foldedMargin: (entryNotional / 8n) as Quote,
      leverage: 8,
    })
  }
  return positions
}

function settle(book: Book, clearing: Clearing): void {
  for (const { seq, fill, opening } of clearing.fills) book.reduce(seq, fill, opening)
  for (const { seq } of clearing.cancels) book.remove(seq)
}

interface Run {
  readonly insert: number[]
  readonly clear: number[]
  readonly fills: number[]
}

function run(resting: number): Run {
  const random = randomFrom(resting)
  const book = new Book()
  for (let seq = 0; seq < resting; seq++) book.insert(restingOrder(random, seq, resting / ORDERS_PER_LEVEL))
  const positions = positionsOf(random)
  const base = {
    spec,
    book,
    positions: (account: UserId) => positions.get(account) ?? FLAT,
    fundingIndex: 0n as FundingIndex,
    standingSeq: Number.MAX_SAFE_INTEGER as Seq,
    priceProtection: DEFAULT_PRICE_PROTECTION.perpetual,
    asOf: 1 as Millis,
  } satisfies Omit<AuctionInput, 'oracle'>
  const result: Run = { insert: [], clear: [], fills: [] }
  let seq = resting
  for (let batch = 0; batch < WARM_UP + BATCHES; batch++) {
    const orders = Array.from({ length: NEW_ORDERS }, () => newOrder(random, seq++))
    const oracle = oracleAt(random)
    const start = performance.now()
    for (const one of orders) book.insert(one)
    const inserted = performance.now()
    const clearing = clear({ ...base, oracle })
    const cleared = performance.now()
    settle(book, clearing)
    for (const { seq: rest } of orders) book.remove(rest)
    if (batch < WARM_UP) continue
    result.insert.push(inserted - start)
    result.clear.push(cleared - inserted)
    result.fills.push(clearing.fills.length)
    refill(book, random, clearing, resting)
  }
  return result
}

/** Inserts the filled resting orders again, so that every batch has the same book. */
function refill(book: Book, random: Random, { fills }: Clearing, resting: number): void {
  for (const { seq } of fills) {
    if (seq >= resting) continue
    book.remove(seq)
    book.insert(restingOrder(random, seq, resting / ORDERS_PER_LEVEL))
  }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)
  return Math.round((sorted[at] as number) * 1000) / 1000
}

argumentsOf({ command: 'npm run bench:auction', flags: {} })
const rows = RESTING.map((resting) => {
  const { insert, clear: clears, fills } = run(resting)
  const batch = insert.map((time, i) => time + (clears[i] as number))
  return {
    resting,
    insert_p50: percentile(insert, 0.5),
    insert_p99: percentile(insert, 0.99),
    insert_max: percentile(insert, 1),
    clear_p50: percentile(clears, 0.5),
    clear_p99: percentile(clears, 0.99),
    clear_max: percentile(clears, 1),
    batch_p50: percentile(batch, 0.5),
    batch_p99: percentile(batch, 0.99),
    fills_p50: percentile(fills, 0.5),
  }
})
console.table(rows)
console.log(JSON.stringify({ bench: 'auction', new_orders: NEW_ORDERS, in_band: IN_BAND, rows }))
