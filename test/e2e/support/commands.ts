/** Generates the rounds of a model run from one seed: prices, commands of traders, and faults. */
import fc from 'fast-check'
import { ORDER_TYPES, type OrderType, type Side } from '../../../domain/orders/order.ts'

export const TRADERS = 4
/** Session keys of each trader. */
export const KEYS = 2
/** One market of each kind. */
export const MARKETS = [1, 3, 4] as const
type MarketId = (typeof MARKETS)[number]

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

export type Part = 'api' | 'keeper' | 'indexer'

/** Kills a process at once (`point` is null), or when it next reaches a kill point between two of its writes. */
export interface Fault {
  readonly part: Part
  readonly point: string | null
  readonly afterMs: number
}

export interface Round {
  /** Price of each market: distance from its center in thousandths. */
  readonly prices: readonly number[]
  /** Commands of each trader, executed one after another. The traders run concurrently. */
  readonly commands: readonly (readonly Command[])[]
  readonly fault: Fault | null
}

const POINTS = [
  ['api', 'after-placement-commit'],
  ['api', 'after-request-commit'],
  ['keeper', 'after-batch-commit'],
  ['keeper', 'after-signing'],
  ['keeper', 'after-broadcast'],
  ['keeper', 'after-switch-market'],
  ['indexer', 'after-block-commit'],
  ['indexer', 'before-projection'],
  ['api', null],
  ['keeper', null],
  ['indexer', null],
] as const

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

const anyRound = (fault: fc.Arbitrary<Fault | null>, revoke: fc.Arbitrary<readonly Command[]>) =>
  fc.constantFrom(...MARKETS).chain((home) => roundIn(home, fault, revoke))

const roundIn = (
  home: MarketId,
  fault: fc.Arbitrary<Fault | null>,
  revoke: fc.Arbitrary<readonly Command[]>,
): fc.Arbitrary<Round> =>
  fc
    .record({
      prices: fc.tuple(...MARKETS.map(() => fc.integer({ min: -12, max: 12 }))),
      commands: fc.tuple(
        ...Array.from({ length: TRADERS }, () => fc.array(commandIn(home), { minLength: 3, maxLength: 9 })),
      ),
      fault,
      revoke,
      by: fc.nat(TRADERS - 1),
    })
    .map(
      ({ prices, commands, fault, revoke, by }): Round => ({
        prices,
        commands: commands.map((list, trader) => (trader === by ? [...list, ...revoke] : list)),
        fault,
      }),
    )

const anyFault: fc.Arbitrary<Fault> = fc
  .tuple(fc.constantFrom(...POINTS), fc.integer({ min: 0, max: 800 }))
  .map(([[part, point], afterMs]) => ({ part, point, afterMs }))

/** Deterministic by seed. Two rounds of three have a fault, and one of six revokes a session key. */
export function roundsOf(seed: number, count: number): readonly Round[] {
  const fault = fc.oneof({ weight: 2, arbitrary: anyFault }, { weight: 1, arbitrary: fc.constant(null) })
  const revoked = fc.nat(KEYS - 1).map((key): readonly Command[] => [{ kind: 'revoke', key }])
  const revoke = fc.oneof(
    { weight: 1, arbitrary: revoked },
    { weight: 5, arbitrary: fc.constant<readonly Command[]>([]) },
  )
  return fc.sample(anyRound(fault, revoke), { seed, numRuns: count })
}
