/** Generates the rounds of a model run from one seed: prices, commands of traders, and faults. */
import fc from 'fast-check'
import { ORDER_TYPES, type OrderType, type Side } from '../../../domain/orders/order.ts'
import {
  anyCrash,
  anyDeleveraging,
  anyEnding,
  anyFault,
  type Crash,
  type Ending,
  type Fault,
  MARKETS,
  type MarketId,
} from './faults.ts'

export const TRADERS = 4
/** Index of the trader that probes the batches, and of the one that trades with the highest leverage. Neither gets commands. */
export const PROBER = TRADERS
export const LEVERAGED = TRADERS + 1
/** Session keys of each trader. */
export const KEYS = 2

export interface Place {
  readonly kind: 'place'
  readonly market: MarketId
  readonly side: Side
  readonly type: OrderType
  /** Quantity in units of about 10,000 USDM of notional. */
  readonly units: number
  /** Distance from the market's center price, in thousandths of it. */
  readonly limit: number
  readonly trigger: number
  readonly leverage: number
  readonly reduceOnly: boolean
  /** Seconds until the order expires; 0 for never. */
  readonly life: number
  /** Index of the session key that signs; null for the account's own key. */
  readonly key: number | null
}

/** `pick` selects an order by its index modulo the number of orders that the trader has sent. */
export type Command =
  | Place
  | { readonly kind: 'batch'; readonly mode: 'atomic' | 'best_effort'; readonly orders: readonly Place[] }
  /** Sends the same body again: a signed order, or a batch with its client_request_id. */
  | { readonly kind: 'again'; readonly pick: number }
  | { readonly kind: 'batch_again' }
  /** Sends other terms with a used salt. */
  | { readonly kind: 'salt_again'; readonly pick: number }
  | { readonly kind: 'cancel'; readonly pick: number; readonly times: number }
  | { readonly kind: 'cancel_batch'; readonly picks: readonly number[]; readonly times: number }
  | { readonly kind: 'cancel_all'; readonly market: MarketId | null }
  /** Reads an order with the bookmark of the trader's last write. */
  | { readonly kind: 'read'; readonly pick: number }
  /** 0 disarms. */
  | { readonly kind: 'arm'; readonly seconds: number }
  | { readonly kind: 'revoke'; readonly key: number }
  | { readonly kind: 'pause'; readonly ms: number }
  /** Places buys below every price band, so that none fills, which expire together `life` seconds after the command. */
  | { readonly kind: 'crowd'; readonly market: MarketId; readonly count: number; readonly life: number }

export interface Round {
  /** Before the prices, one after another. */
  readonly crashes: readonly Crash[]
  /** Price of each market: distance from its center in thousandths. */
  readonly prices: readonly number[]
  /** Commands of each trader, executed one after another. The traders run concurrently. */
  readonly commands: readonly (readonly Command[])[]
  /** One after another, beside the commands. */
  readonly faults: readonly Fault[]
}

const pick = fc.nat(200)
/** More than half of a round's orders are in one market, so that many match and later orders reduce the positions. */
const placeIn = (home: MarketId): fc.Arbitrary<Place> =>
  fc.record({
    kind: fc.constant('place' as const),
    market: fc.constantFrom(...MARKETS, home, home),
    side: fc.constantFrom('LONG' as const, 'SHORT' as const),
    type: fc.constantFrom<OrderType>(...ORDER_TYPES, 'LIMIT', 'LIMIT', 'LIMIT', 'LIMIT', 'MARKET', 'MARKET'),
    units: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 1, max: 15 }) },
      // A few of these exhaust an account's free balance.
      { weight: 3, arbitrary: fc.integer({ min: 20, max: 60 }) },
      { weight: 1, arbitrary: fc.integer({ min: 60, max: 160 }) },
    ),
    limit: fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: -15, max: 15 }) },
      { weight: 1, arbitrary: fc.constantFrom(-400, -80, 80, 400) },
    ),
    trigger: fc.integer({ min: -20, max: 20 }),
    leverage: fc.integer({ min: 1, max: 3 }),
    reduceOnly: fc.constantFrom(false, false, false, true),
    life: fc.constantFrom(0, 0, 0, 0, 0, 1, 3),
    key: fc.constantFrom(null, null, 0, 1),
  })

/** Orders that end with a position: one that may close it, and brackets around it or before it. */
const reduceIn = (home: MarketId): fc.Arbitrary<Place> =>
  fc
    .oneof(
      placeIn(home).map((place) => ({ ...place, type: 'MARKET' as const, units: 160 })),
      placeIn(home).map((place) => ({ ...place, type: 'LIMIT' as const })),
    )
    .map((place) => ({ ...place, market: home, reduceOnly: true, life: 0 }))

const one = <T extends Command>(weight: number, fields: { readonly [K in keyof T]: fc.Arbitrary<T[K]> }) => ({
  weight,
  arbitrary: fc.record(fields) as unknown as fc.Arbitrary<Command>,
})
const kind = <K extends string>(name: K) => fc.constant(name)
const times = fc.constantFrom(1, 1, 2)

const commandIn = (home: MarketId): fc.Arbitrary<Command> =>
  fc.oneof(
    { weight: 20, arbitrary: placeIn(home) as fc.Arbitrary<Command> },
    { weight: 6, arbitrary: reduceIn(home) as fc.Arbitrary<Command> },
    one(4, {
      kind: kind('batch'),
      mode: fc.constantFrom('atomic', 'best_effort'),
      orders: fc.array(placeIn(home), { minLength: 1, maxLength: 6 }),
    }),
    one(2, { kind: kind('again'), pick }),
    one(1, { kind: kind('batch_again') }),
    one(1, { kind: kind('salt_again'), pick }),
    one(4, { kind: kind('cancel'), pick, times }),
    one(2, { kind: kind('cancel_batch'), picks: fc.array(pick, { minLength: 1, maxLength: 8 }), times }),
    one(1, { kind: kind('cancel_all'), market: fc.constantFrom(null, ...MARKETS) }),
    one(3, { kind: kind('read'), pick }),
    one(1, { kind: kind('arm'), seconds: fc.constantFrom(0, 5, 5, 6) }),
    one(3, { kind: kind('pause'), ms: fc.integer({ min: 1, max: 400 }) }),
  )

/** Orders that rest and expire together. */
const crowdIn = (market: MarketId): fc.Arbitrary<Command> =>
  fc.record({
    ...{ kind: kind('crowd'), market: fc.constant(market) },
    ...{ count: fc.constantFrom(25, 60, 260), life: fc.constantFrom(6, 10) },
  }) as fc.Arbitrary<Command>

const sometimes = <T>(weights: readonly [yes: number, no: number], arbitrary: fc.Arbitrary<T>) =>
  fc.oneof(
    { weight: weights[0], arbitrary: fc.tuple(arbitrary) },
    { weight: weights[1], arbitrary: fc.constant([]) },
  )

/**
 * Half of the rounds begin with a crash. Two of three have a fault, one of six two of them. In one of four an account is deleveraged before
 * these faults. One of six revokes a session key, and in one of eight many orders expire.
 */
const roundIn = (home: MarketId): fc.Arbitrary<Round> =>
  fc
    .record({
      crashes: sometimes([1, 1], anyCrash(home, TRADERS)),
      prices: fc.tuple(...MARKETS.map(() => fc.integer({ min: -12, max: 12 }))),
      commands: fc.tuple(
        ...Array.from({ length: TRADERS }, () => fc.array(commandIn(home), { minLength: 3, maxLength: 9 })),
      ),
      deleveraged: sometimes([1, 3], anyDeleveraging(home, TRADERS)),
      first: sometimes([4, 2], anyFault(home, TRADERS)),
      second: sometimes([1, 3], anyFault(home, TRADERS)),
      revoked: sometimes([1, 5], fc.nat(KEYS - 1)),
      crowd: sometimes([1, 7], crowdIn(home)),
      by: fc.nat(TRADERS - 1),
    })
    .map(({ crashes, prices, commands, deleveraged, first, second, revoked, crowd, by }): Round => {
      const revoke = revoked.map((key): Command => ({ kind: 'revoke', key }))
      return {
        crashes,
        prices,
        commands: commands.map((list, trader) => [...crowd, ...list, ...(trader === by ? revoke : [])]),
        faults: [...deleveraged.flat(), ...first, ...(first.length > 0 ? second : [])],
      }
    })

/** Deterministic by seed. */
export const roundsOf = (seed: number, count: number): readonly Round[] =>
  fc.sample(fc.constantFrom(...MARKETS).chain(roundIn), { seed, numRuns: count })

/** How one of the markets ends after the rounds of the seed. */
export const endingOf = (seed: number): Ending => fc.sample(anyEnding, { seed, numRuns: 1 })[0] as Ending
