/**
 * How keepers share the markets. Each keeper applies these rules by itself to what all of them announce in the database, so that they agree
 * without a coordinator. Pure: no clock, no input or output.
 */

/** What a keeper announces. */
export interface KeeperStatus {
  readonly id: string
  /** Most markets that it takes; null without a bound. It has a bound after its turns were late. */
  readonly capacity: number | null
  readonly isLate: boolean
  /** The markets that it can run: those for which it has a relayer key. */
  readonly markets: ReadonlySet<number>
}

export interface SharesInput {
  readonly self: string
  /** Live keepers, this one included. */
  readonly keepers: readonly KeeperStatus[]
  /** By market: the keeper whose lease is valid; null if there is none. */
  readonly owners: ReadonlyMap<number, string | null>
  /** Most markets that one keeper gives back in one pass. */
  readonly handOvers: number
}

interface Share {
  readonly keeper: KeeperStatus
  readonly owned: readonly number[]
  /** Fewest and most markets of a balanced keeper. */
  readonly least: number
  readonly most: number
}

/**
 * The markets that keeper `self` owns or acquires; it gives back its others.
 *
 * - The number of markets of two keepers differs by at most one, unless a capacity is smaller. A difference of one moves nothing.
 * - A keeper with more than its share gives back the excess, its last markets by id first, and only markets that a keeper with too few can run.
 * - A free market has exactly one keeper that acquires it: of those that can run it, the one with the most room.
 */
export function wantedMarkets({ self, keepers, owners, handOvers }: SharesInput): ReadonlySet<number> {
  const shares = sharesOf(keepers, owners)
  const own = shares.find(({ keeper }) => keeper.id === self)
  const owned = [...owners].flatMap(([market, owner]) => (owner === self ? [market] : []))
  if (own === undefined) return new Set(owned)
  const free = [...owners].flatMap(([market, owner]) => (owner === null ? [market] : [])).sort(ascending)
  const wanted = new Set(owned)
  for (const market of returned(own, shares, free.length).slice(0, handOvers)) wanted.delete(market)
  for (const [market, id] of assigned(free, shares)) if (id === self) wanted.add(market)
  return wanted
}

const ascending = (a: number, b: number): number => a - b
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

function sharesOf(keepers: readonly KeeperStatus[], owners: SharesInput['owners']): Share[] {
  const held = Map.groupBy(owners.keys(), (market) => owners.get(market) ?? null)
  const known = new Set(keepers.map(({ id }) => id))
  const all = [...keepers]
  // An owner that announces nothing keeps what it has: its lease ends by itself.
  for (const [id, markets] of held) {
    if (id !== null && !known.has(id))
      all.push({ id, capacity: markets.length, isLate: true, markets: new Set() })
  }
  const capacities = capacitiesOf(all, owners.size, known)
  const level = levelOf(capacities, owners.size)
  return all
    .map((keeper, at): Share => {
      const capacity = capacities[at] ?? 0
      const owned = (held.get(keeper.id) ?? []).sort(ascending)
      return { keeper, owned, least: Math.min(capacity, level - 1), most: Math.min(capacity, level) }
    })
    .sort((a, b) => (a.keeper.id < b.keeper.id ? -1 : 1))
}

/** Raised by the same number for each keeper until all markets have room. */
function capacitiesOf(all: readonly KeeperStatus[], markets: number, known: ReadonlySet<string>): number[] {
  const bounds = all.map(({ id, capacity, markets: runs }) =>
    known.has(id) ? Math.min(capacity ?? markets, runs.size) : (capacity ?? 0),
  )
  const missing = markets - sum(bounds)
  if (missing <= 0) return bounds
  const raise = Math.ceil(missing / Math.max(1, known.size))
  return bounds.map((bound, at) => (known.has(all[at]?.id ?? '') ? bound + raise : bound))
}

/** The smallest number of markets per keeper at which all markets have a keeper. */
function levelOf(capacities: readonly number[], markets: number): number {
  let level = 1
  while (level < markets && sum(capacities.map((capacity) => Math.min(capacity, level))) < markets) level++
  return level
}

/** The markets that a keeper gives back, in this order. */
function returned(own: Share, shares: readonly Share[], free: number): number[] {
  const excess = (share: Share): number => Math.max(0, share.owned.length - share.most)
  const lack = sum(shares.map(({ least, owned }) => Math.max(0, least - owned.length)))
  // Beyond what is free or in excess, keepers with one market more than the least give one each, in the order of their ids.
  const extra = Math.max(0, lack - free - sum(shares.map(excess)))
  const givers = shares.filter(({ owned, least, most }) => Math.min(owned.length, most) > least)
  const gives = excess(own) + (givers.indexOf(own) >= 0 && givers.indexOf(own) < extra ? 1 : 0)
  const takers = shares.filter(({ owned, most }) => owned.length < most)
  const wanted = own.owned.filter((market) => takers.some(({ keeper }) => keeper.markets.has(market)))
  return gives === 0 ? [] : wanted.reverse().slice(0, gives)
}

function assigned(free: readonly number[], shares: readonly Share[]): Map<number, string> {
  const rooms = new Map(shares.map(({ keeper, most, owned }) => [keeper, most - owned.length]))
  const chosen = new Map<number, string>()
  for (const market of free) {
    let best: KeeperStatus | null = null
    for (const [keeper, room] of rooms) {
      if (keeper.markets.has(market) && (best === null || room > (rooms.get(best) ?? 0))) best = keeper
    }
    if (best === null) continue
    rooms.set(best, (rooms.get(best) ?? 0) - 1)
    chosen.set(market, best.id)
  }
  return chosen
}

/** How late the turns of a keeper are, and how many markets it takes because of that. */
export interface KeeperLoad {
  /** Smoothed mean lateness, ms. */
  readonly lateMs: number
  readonly isLate: boolean
  readonly capacity: number | null
  /** When `capacity` last changed, ms. */
  readonly changedAt: number
}

export const NO_LOAD: KeeperLoad = { lateMs: 0, isLate: false, capacity: null, changedAt: 0 }

export interface LoadInput {
  readonly now: number
  /** Mean lateness of the turns since the last pass; null if there was none. */
  readonly sampleMs: number | null
  /** How many markets the keeper owns, and how many there are. */
  readonly owned: number
  readonly markets: number
  /** Another keeper is on time. */
  readonly canGive: boolean
}

/** Half the interval of auctions. A late keeper is on time again below a quarter of it. */
export const LATE_MS = 100
const WEIGHT = 0.1
const SHRINK_MS = 2_000
const GROW_MS = 60_000

/**
 * A late keeper lowers its capacity by one market every two seconds while another is on time. On time again, it raises it by one a minute:
 * a market that it cannot bear moves at most that often.
 */
export function nextLoad(before: KeeperLoad, input: LoadInput): KeeperLoad {
  const { now, sampleMs, owned, markets, canGive } = input
  const lateMs = before.lateMs + WEIGHT * ((sampleMs ?? 0) - before.lateMs)
  const isLate = lateMs > (before.isLate ? LATE_MS / 4 : LATE_MS)
  const since = now - before.changedAt
  const { capacity } = before
  if (isLate && canGive && owned > 1 && since >= SHRINK_MS)
    return { lateMs, isLate, capacity: Math.max(1, Math.min(capacity ?? owned, owned) - 1), changedAt: now }
  if (!isLate && capacity !== null && since >= GROW_MS)
    return { lateMs, isLate, capacity: capacity + 1 >= markets ? null : capacity + 1, changedAt: now }
  return { ...before, lateMs, isLate }
}
