import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  type KeeperLoad,
  type KeeperStatus,
  LATE_MS,
  NO_LOAD,
  nextLoad,
  wantedMarkets,
} from '../../service/market-shares.ts'

type Owners = Map<number, string | null>

const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1)
const keeper = (id: string, markets: number, more: Partial<KeeperStatus> = {}): KeeperStatus => ({
  ...{ id, capacity: null, isLate: false, markets: new Set(range(markets)) },
  ...more,
})
const countsOf = (owners: Owners): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const owner of owners.values()) if (owner !== null) counts.set(owner, (counts.get(owner) ?? 0) + 1)
  return counts
}

/** One pass: every keeper decides on the same view; a market that one gives back is free in the next view. Returns how many moved. */
function pass(keepers: readonly KeeperStatus[], owners: Owners, handOvers: number): number {
  const view = new Map(owners)
  let moved = 0
  for (const { id } of keepers) {
    const wanted = wantedMarkets({ self: id, keepers, owners: view, handOvers })
    for (const [market, owner] of view) {
      if (owner === id && !wanted.has(market)) {
        owners.set(market, null)
        moved++
      }
      if (owner === null && wanted.has(market)) {
        expect(owners.get(market), `two keepers acquire market ${market}`).to.equal(null)
        owners.set(market, id)
      }
    }
  }
  return moved
}

const anyShares = fc
  .record({ markets: fc.integer({ min: 1, max: 60 }), count: fc.integer({ min: 1, max: 5 }) })
  .chain(({ markets, count }) =>
    fc.record({
      markets: fc.constant(markets),
      keepers: fc.tuple(
        ...range(count).map((number) =>
          fc
            .option(fc.integer({ min: 1, max: 40 }), { freq: 2 })
            .map((capacity) => keeper(`k${number}`, markets, { capacity })),
        ),
      ),
      owners: fc.array(fc.integer({ min: 0, max: count + 1 }), { minLength: markets, maxLength: markets }),
      handOvers: fc.integer({ min: 1, max: 8 }),
    }),
  )

/** Owner 0 is none; the one after the last keeper announces nothing. */
const ownersOf = (numbers: readonly number[]): Owners =>
  new Map(numbers.map((number, at) => [at + 1, number === 0 ? null : `k${number}`]))

describe('shares of the markets', () => {
  it('when markets are free, each is acquired by exactly one keeper in the next pass', () => {
    fc.assert(
      fc.property(anyShares, ({ keepers, owners: numbers, handOvers }) => {
        const owners = ownersOf(numbers)
        const free = [...owners].filter(([, owner]) => owner === null).map(([market]) => market)
        pass(keepers, owners, handOvers)
        for (const market of free) expect(owners.get(market)).not.to.equal(null)
      }),
    )
  })

  it('when keepers join, leave or have capacities, shares become balanced within a bounded number of passes, and then nothing moves', () => {
    fc.assert(
      fc.property(anyShares, ({ keepers, markets, owners: numbers, handOvers }) => {
        const known = keepers.length
        const owners = ownersOf(numbers.map((number) => (number > known ? 0 : number)))
        const bound = Math.ceil(markets / handOvers) * 2 + 4
        for (let at = 0; at < bound; at++) pass(keepers, owners, handOvers)
        expect(pass(keepers, owners, handOvers), 'nothing moves').to.equal(0)
        expect([...owners.values()]).not.to.include(null)
        if (keepers.some(({ capacity }) => capacity !== null)) return
        const counts = keepers.map(({ id }) => countsOf(owners).get(id) ?? 0)
        expect(Math.max(...counts) - Math.min(...counts)).to.be.at.most(1)
      }),
    )
  })

  it('when a keeper has room, no other one exceeds its capacity', () => {
    fc.assert(
      fc.property(anyShares, ({ keepers, markets, owners: numbers }) => {
        const owners = ownersOf(numbers.map((number) => (number > keepers.length ? 0 : number)))
        for (let at = 0; at < 20; at++) pass(keepers, owners, markets)
        const room = keepers.reduce((sum, { capacity }) => sum + (capacity ?? markets), 0)
        if (room < markets) return
        const counts = countsOf(owners)
        for (const { id, capacity } of keepers) expect(counts.get(id) ?? 0).to.be.at.most(capacity ?? markets)
      }),
    )
  })

  it('when one keeper joins, exactly its share moves, at most the bound in one pass', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 10 }),
        (markets, count, handOvers) => {
          const keepers = range(count + 1).map((number) => keeper(`k${number}`, markets))
          const owners = ownersOf(range(markets).map((at) => (at % count) + 1))
          let moved = 0
          for (let at = 0; at < markets + 4; at++) {
            const step = pass(keepers, owners, handOvers)
            expect(step).to.be.at.most(handOvers * count)
            moved += step
          }
          const share = countsOf(owners).get(`k${count + 1}`) ?? 0
          expect(share).to.be.within(Math.floor(markets / (count + 1)), Math.ceil(markets / (count + 1)))
          expect(moved).to.equal(share)
        },
      ),
    )
  })

  it('when a keeper cannot run a market, another one keeps or acquires it, and nothing flaps', () => {
    const keepers = [keeper('a', 10), keeper('b', 3)]
    const owners: Owners = new Map(range(10).map((market) => [market, market > 8 ? null : 'a']))
    for (let at = 0; at < 10; at++) pass(keepers, owners, 2)
    expect(countsOf(owners)).to.deep.equal(
      new Map([
        ['b', 3],
        ['a', 7],
      ]),
    )
    expect(pass(keepers, owners, 2)).to.equal(0)
  })

  it('when a keeper has announced nothing, it keeps its markets and the others share the rest', () => {
    const keepers = [keeper('a', 10), keeper('b', 10)]
    const owners: Owners = new Map(range(10).map((market) => [market, market <= 4 ? 'old' : 'a']))
    for (let at = 0; at < 10; at++) pass(keepers, owners, 1)
    expect(Object.fromEntries(countsOf(owners))).to.deep.equal({ old: 4, a: 3, b: 3 })
  })
})

describe('the load of a keeper', () => {
  const input = { sampleMs: 1_000, owned: 10, markets: 20, canGive: true }
  const afterPasses = (
    load: KeeperLoad,
    seconds: number,
    more: Partial<typeof input>,
    from = 0,
  ): KeeperLoad => {
    let next = load
    for (let at = 0; at < seconds * 2; at++)
      next = nextLoad(next, { ...input, ...more, now: 1_000_000 + from + at * 500 })
    return next
  }

  it('when its turns are late and another keeper is on time, it gives back one market every two seconds', () => {
    const load = afterPasses(NO_LOAD, 2, {})
    expect([load.isLate, load.capacity]).to.deep.equal([true, 9])
    expect(afterPasses(NO_LOAD, 30, { owned: 1 }).capacity, 'the last market stays').to.equal(null)
  })

  it('when every keeper is late, it keeps its markets', () => {
    const load = afterPasses(NO_LOAD, 60, { canGive: false })
    expect([load.isLate, load.capacity]).to.deep.equal([true, null])
  })

  it('when one turn is late, it is not late', () => {
    const load = nextLoad(NO_LOAD, { ...input, sampleMs: 5 * LATE_MS, now: 0 })
    expect(load.isLate).to.equal(false)
  })

  it('when it is on time again, its capacity rises by one market a minute until it has no bound', () => {
    const bounded = { ...NO_LOAD, capacity: 17, changedAt: 1_000_000 }
    expect(afterPasses(bounded, 59, { sampleMs: 0 }).capacity).to.equal(17)
    expect(afterPasses(bounded, 61, { sampleMs: 0 }).capacity).to.equal(18)
    expect(afterPasses(bounded, 300, { sampleMs: 0 }).capacity).to.equal(null)
  })
})
