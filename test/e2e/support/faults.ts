/** The faults of a round: what happens to processes, relayer keys, chain, clock and signatures while the traders send commands. */
import fc from 'fast-check'
import type { Side } from '../../../domain/orders/order.ts'
import type { Shares } from '../../support/legal-deleveraging.ts'

/** One market of each kind. */
export const MARKETS = [1, 3, 4] as const
export type MarketId = (typeof MARKETS)[number]

export type Part = 'api' | 'engine' | 'keeper' | 'indexer'

export type Fault = { readonly afterMs: number } & (
  | /** Ends a process at once (`point` is null), or when it next reaches a kill point between two of its writes. */ {
      readonly kind: 'kill'
      readonly part: Part
      readonly point: string | null
    }
  /** A transaction of a market's relayer key that the keeper has not signed. */
  | { readonly kind: 'foreign'; readonly market: MarketId }
  /** The chain's last blocks are replaced, by ones with such a transaction if `foreign` is a market. */
  | { readonly kind: 'fork'; readonly depth: number; readonly foreign: MarketId | null }
  /** From now on the keeper's node responds with receipts without a block. */
  | { readonly kind: 'preconfirm' }
  /** The keeper's system clock steps by `ms`, and back seconds later. */
  | { readonly kind: 'clock'; readonly ms: number }
  /**
   * A trader with little margin opens on `side` and may protect the position with a reduce-only order. At a price that leaves an account below
   * its maintenance margin, that account is deleveraged. `by` trades against it.
   */
  | {
      readonly kind: 'deleverage'
      readonly market: MarketId
      readonly by: number
      readonly side: Side
      readonly units: number
      readonly isProtected: boolean
      readonly shares: Shares
    }
  /** A single action in the market's queue. The contract executes a funding update within its bounds, and rejects all others. */
  | { readonly kind: 'queue'; readonly market: MarketId; readonly action: QueuedKind; readonly by: number }
)

export type QueuedKind = 'fund' | 'fund_beyond_bounds' | 'inherit' | 'deleverage' | 'finalize'
/** The market of a run with funding. */
const FUNDED: MarketId = 1

const KILLS = [
  ['api', 'after-placement-commit'],
  ['api', 'after-request-commit'],
  ['engine', 'after-append-order_placed'],
  ['engine', 'before-append-batch_cleared'],
  ['engine', 'after-append-batch_cleared'],
  ['engine', 'after-append-switches_fired'],
  ['keeper', 'after-signing'],
  ['keeper', 'after-broadcast'],
  ['indexer', 'after-block-commit'],
  ['indexer', 'before-projection'],
  ['api', null],
  ['engine', null],
  ['keeper', null],
  ['indexer', null],
] as const

const kind = <K extends string>(name: K) => fc.constant(name)
const afterMs = fc.integer({ min: 0, max: 800 })

/** Faults of the chain hit batches in flight: most batches are matched within two seconds after the start of a round. */
const laterMs = fc.integer({ min: 300, max: 2_500 })

const killing: fc.Arbitrary<Fault> = fc
  .constantFrom(...KILLS)
  .chain(([part, point]) =>
    fc.record({ kind: kind('kill'), part: fc.constant(part), point: fc.constant(point), afterMs }),
  )

const stepping = fc.record({
  ...{ kind: kind('clock'), ms: fc.constantFrom(5_000, -5_000, 3_600_000, -3_600_000), afterMs },
}) as fc.Arbitrary<Fault>

const forking = (home: MarketId) =>
  fc.record({
    ...{ kind: kind('fork'), depth: fc.integer({ min: 1, max: 8 }), foreign: fc.constantFrom(null, home) },
    afterMs: laterMs,
  }) as fc.Arbitrary<Fault>

const usingNonce = (market: fc.Arbitrary<MarketId>) =>
  fc.record({ kind: kind('foreign'), market, afterMs: laterMs }) as fc.Arbitrary<Fault>

/** While an action that moves positions or ends the market is to be mined. */
const whileMining = (market: MarketId): fc.Arbitrary<Fault> =>
  fc.oneof(
    { weight: 3, arbitrary: forking(market) },
    { weight: 1, arbitrary: killing },
    { weight: 1, arbitrary: stepping },
    { weight: 1, arbitrary: usingNonce(fc.constant(market)) },
  )

const deleveraging = (home: MarketId, traders: number): fc.Arbitrary<Fault> =>
  fc.record({
    ...{ kind: kind('deleverage'), market: fc.constantFrom(home, ...MARKETS), by: fc.nat(traders - 1) },
    ...{ side: fc.constantFrom<Side>('LONG', 'SHORT'), units: fc.integer({ min: 1, max: 6 }) },
    shares: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 }),
    ...{ isProtected: fc.boolean(), afterMs },
  }) as fc.Arbitrary<Fault>

/**
 * A trader with little margin opens on `side`, and may protect the position with a reduce-only order; `by` trades against it. Then the price
 * moves against it: at `share` 0 by little more than its margin allows, at 100 beyond its margin. The keeper liquidates what falls below its
 * threshold, under faults, before the price of the round is published. If the position is cushioned, an order at the later price can fill forced ones.
 */
export interface Crash {
  readonly market: MarketId
  readonly by: number
  readonly side: Side
  readonly units: number
  readonly isProtected: boolean
  readonly isCushioned: boolean
  readonly share: number
  readonly faults: readonly Fault[]
}

/** Between two writes of a liquidation. */
const LIQUIDATION_KILLS = ['after-append-liquidation_changed', 'after-append-action_queued'] as const

export const anyCrash = (home: MarketId, traders: number): fc.Arbitrary<Crash> =>
  fc.record({
    ...{ market: fc.constantFrom(home, ...MARKETS), by: fc.nat(traders - 1) },
    ...{ side: fc.constantFrom<Side>('LONG', 'SHORT'), units: fc.integer({ min: 1, max: 6 }) },
    ...{ isProtected: fc.boolean(), isCushioned: fc.boolean(), share: fc.integer({ min: 0, max: 100 }) },
    faults: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      { weight: 2, arbitrary: fc.tuple(whileMining(home)) },
      {
        weight: 2,
        arbitrary: fc.tuple(
          fc.record({
            ...{ kind: kind('kill'), part: kind('engine'), point: fc.constantFrom(...LIQUIDATION_KILLS) },
            afterMs: fc.constant(0),
          }),
        ),
      },
    ),
  }) as fc.Arbitrary<Crash>

/** A deleveraging and a fault before or after it is mined. `traders`: their number. */
export const anyDeleveraging = (home: MarketId, traders: number): fc.Arbitrary<readonly Fault[]> =>
  fc.tuple(deleveraging(home, traders), whileMining(home))

/** How a market ends. `isHigh`: the final price is above the oracle price, of a binary future 1. */
export interface Ending {
  readonly market: MarketId
  readonly isHigh: boolean
  readonly faults: readonly Fault[]
  /** Of the forks that take back the end, and then some of the payouts. */
  readonly depth: number
}

export const anyEnding: fc.Arbitrary<Ending> = fc.constantFrom(...MARKETS).chain((market) =>
  fc.record({
    ...{ market: fc.constant(market), isHigh: fc.boolean(), depth: fc.integer({ min: 1, max: 8 }) },
    faults: fc.array(whileMining(market), { minLength: 2, maxLength: 4 }),
  }),
)

/** In `home` most orders are placed. `traders`: their number. */
export const anyFault = (home: MarketId, traders: number): fc.Arbitrary<Fault> => {
  const market = fc.constantFrom(home, home, ...MARKETS)
  const queue = { kind: kind('queue'), by: fc.nat(traders - 1), afterMs: laterMs }
  const funding = fc.constantFrom<QueuedKind>('fund', 'fund', 'fund_beyond_bounds')
  const rejected = fc.constantFrom<QueuedKind>('inherit', 'deleverage', 'finalize')
  return fc.oneof(
    { weight: 11, arbitrary: killing },
    { weight: 3, arbitrary: usingNonce(market) },
    { weight: 5, arbitrary: forking(home) },
    { weight: 3, arbitrary: stepping },
    { weight: 2, arbitrary: fc.record({ kind: kind('preconfirm'), afterMs: fc.constant(0) }) },
    { weight: 3, arbitrary: fc.record({ ...queue, market: fc.constant(FUNDED), action: funding }) },
    { weight: 2, arbitrary: fc.record({ ...queue, market, action: rejected }) },
  ) as fc.Arbitrary<Fault>
}
