/** The ledger of builders over random orders, fills and rollbacks: the sum of what is left, whichever way the journal is cut. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { PartSettled } from '../../../domain/journal/batch-rows.ts'
import type { OrderPlaced } from '../../../domain/journal/journal-row.ts'
import type { ShardEntry } from '../../../indexer/project/row-change.ts'
import { type BuilderDay, builderDays, builderDeltas } from '../../../indexer/project/tables/builder-days.ts'

const DAY = 86_400_000
const BUILDERS = [null, 'a', 'b-terminal'] as const
const UNITS = [10n ** 15n, 7n] as const

interface AnyOrder {
  readonly market: number
  readonly builder: (typeof BUILDERS)[number]
  readonly acceptedAt: number
}
interface AnyPart {
  readonly price: number
  readonly asOf: number
  /** Places of orders of its market, as far as there are so many, and the steps that they fill. */
  readonly fills: readonly { readonly order: number; readonly steps: number }[]
  readonly market: number
  /** How often its block leaves the chain and it is mined again; a half step more, if it stays away. */
  readonly moves: number
}

/** Around midnight of two days. */
const anyTime = fc.integer({ min: DAY - 3, max: 2 * DAY + 3 })
const anyMarket = fc.integer({ min: 0, max: UNITS.length - 1 })
const anyOrder: fc.Arbitrary<AnyOrder> = fc.record({
  market: anyMarket,
  builder: fc.constantFrom(...BUILDERS),
  acceptedAt: anyTime,
})
const anyPart: fc.Arbitrary<AnyPart> = fc.record({
  price: fc.integer({ min: 1, max: 2 ** 31 }),
  asOf: anyTime,
  fills: fc.array(fc.record({ order: fc.nat(30), steps: fc.integer({ min: 1, max: 2 ** 40 }) }), {
    minLength: 1,
    maxLength: 5,
  }),
  market: anyMarket,
  moves: fc.nat(4),
})

interface Played {
  readonly entries: readonly ShardEntry[]
  readonly builderOf: (orderId: string) => string | null
  /** The fills that are on the chain at the end, and the orders, by builder and day. */
  readonly expected: readonly BuilderDay[]
}

/** Rows in a random order of the markets; the rows of one part follow each other. */
function play(orders: readonly AnyOrder[], parts: readonly AnyPart[]): Played {
  const entries: ShardEntry[] = []
  const builders = new Map<string, string | null>()
  const days = new Map<string, BuilderDay>()
  const seqs = UNITS.map(() => 0)
  const add = (market: number, row: Partial<OrderPlaced> | Partial<PartSettled>): void =>
    void entries.push({
      shard: `m${market}`,
      marketId: market,
      seq: (seqs[market] as number)++,
      row: row as never,
    })
  const count = (builder: string | null, at: number, by: Partial<BuilderDay>): void => {
    if (builder === null) return
    const day = Math.floor(at / DAY) * DAY
    const before = days.get(`${builder} ${day}`) ?? { builder, day, volume: 0n, fills: 0, orders: 0 }
    const { volume = 0n, fills = 0, orders: placed = 0 } = by
    days.set(`${builder} ${day}`, {
      builder,
      day,
      volume: before.volume + volume,
      fills: before.fills + fills,
      orders: before.orders + placed,
    })
  }
  for (const [at, { market, builder, acceptedAt }] of orders.entries()) {
    builders.set(`${at}`, builder)
    add(market, {
      kind: 'order_placed',
      order_id: `${at}`,
      accepted_at: acceptedAt,
      ...(builder !== null && { builder }),
    })
    count(builder, acceptedAt, { orders: 1 })
  }
  for (const { market, price, asOf, fills, moves } of parts) {
    const own = orders.flatMap((order, at) => (order.market === market ? [`${at}`] : []))
    if (own.length === 0) continue
    const filled = fills.map(({ order, steps }) => ({ order_id: own[order % own.length] as string, steps }))
    for (let move = 0; move <= moves; move++)
      add(market, {
        kind: 'part_settled',
        rollback: move % 2 === 1,
        price,
        as_of: asOf,
        // A part is mined later than it was matched, and on another day when it is mined again.
        at: asOf + move * DAY,
        fills: filled as never,
      })
    if (moves % 2 === 1) continue
    for (const { order_id, steps } of filled)
      count(builders.get(order_id) ?? null, asOf, {
        fills: 1,
        volume: BigInt(price) * BigInt(steps) * (UNITS[market] as bigint),
      })
  }
  return { entries, builderOf: (id) => builders.get(id) ?? null, expected: [...days.values()] }
}

/** As the projector adds the rows of one chunk to the table. */
function project({ entries, builderOf }: Played, table: Map<string, BuilderDay>): void {
  const markets = UNITS.map((unit, market) => ({
    unit,
    deltas: entries
      .filter((entry) => entry.marketId === market)
      .flatMap((entry) => builderDeltas(entry, builderOf)),
  }))
  for (const row of builderDays(markets)) {
    const key = `${row.builder} ${row.day}`
    const before = table.get(key)
    table.set(key, {
      ...row,
      volume: (before?.volume ?? 0n) + row.volume,
      fills: (before?.fills ?? 0) + row.fills,
      orders: (before?.orders ?? 0) + row.orders,
    })
  }
}

const rows = (days: Iterable<BuilderDay>): BuilderDay[] =>
  [...days]
    .filter(({ volume, fills, orders }) => volume !== 0n || fills !== 0 || orders !== 0)
    .sort((a, b) => (`${a.builder} ${a.day}` < `${b.builder} ${b.day}` ? -1 : 1))

describe('indexer/project/tables/builder-days', () => {
  it('when orders, fills and rollbacks come in any order and any chunks, each day has what is left of them', () => {
    fc.assert(
      fc.property(
        fc.array(anyOrder, { minLength: 1, maxLength: 30 }),
        fc.array(anyPart, { maxLength: 20 }),
        fc.integer({ min: 1, max: 40 }),
        (orders, parts, chunk) => {
          const played = play(orders, parts)
          const table = new Map<string, BuilderDay>()
          for (let from = 0; from < played.entries.length; from += chunk)
            project({ ...played, entries: played.entries.slice(from, from + chunk) }, table)
          expect(rows(table.values())).to.deep.equal(rows(played.expected))
        },
      ),
      { numRuns: 300 },
    )
  })

  it('when the rows of one chunk are grouped by builder and day, each pair has one row, ascending', () => {
    fc.assert(
      fc.property(fc.array(anyOrder, { minLength: 1, maxLength: 30 }), (orders) => {
        const { entries, builderOf } = play(orders, [])
        const days = builderDays([
          { unit: null, deltas: entries.flatMap((entry) => builderDeltas(entry, builderOf)) },
        ])
        const keys = days.map(({ builder, day }) => `${builder} ${String(day).padStart(15, '0')}`)
        expect(keys).to.deep.equal([...new Set(keys)].sort())
      }),
      { numRuns: 100 },
    )
  })
})
