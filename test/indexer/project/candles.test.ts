/** Candles and changes of the open interest are folds of the journal's rows: voids, rollbacks, chunk sizes and rebuilds leave no trace. */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { BatchCleared } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import { type Candle, candleOfBatch, toInterval } from '../../../domain/market-data/candle.ts'
import {
  INTERVALS,
  type Interval,
  intervalStart,
  SPANS,
  spanOf,
} from '../../../domain/market-data/interval.ts'
import { projectChunk } from '../../../indexer/project/project-chunk.ts'
import { projectAll, registerShards } from '../../../indexer/project/project-shards.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { batches } from '../../../indexer/project/tables/batches.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { anyHistory } from '../support/histories.ts'
import { appendToJournal, clearJournal, dumpReadModel } from '../support/read-model.ts'

const options = { limit: 1_000, killPoint: () => {} }
const MINUTE = 60_000
const NAMES = Object.keys(INTERVALS) as Interval[]

describe('the read tables of candles', function () {
  this.timeout(60_000)
  let test: TestDatabase
  before(async () => {
    test = await freshDatabase()
  })
  beforeEach(() => clearJournal(test.db))
  after(() => test.close())

  const listed: JournalRow = { kind: 'market_listed', spec: { symbol: 'X', kind: 'perpetual' } as never }
  const fillsOf = (batch: number, part: number, steps: number): BatchCleared['fills'] =>
    (['LONG', 'SHORT'] as const).map((side) => ({
      ...{ fill_id: `1-${batch}-${part}-${side}`, order_id: `1-${side}`, user_id: 1, part, side },
      ...{ steps, taker_steps: 0, held: '0' },
    }))
  /** With one part per quantity. */
  const cleared = (batch_id: number, as_of: number, price: number, ...steps: number[]): BatchCleared => ({
    kind: 'batch_cleared',
    ...{ batch_id, as_of, price, oracle_price: '100', oracle_at: 1, lo: 1, hi: 999, rule: 'volume' },
    ...{ volume: 1, demand: 1, supply: 1, parts: steps.length, closing: [] },
    fills: steps.flatMap((of, at) => fillsOf(batch_id, at + 1, of)),
  })
  const voided = (batch: BatchCleared, from_part: number): JournalRow => ({
    kind: 'batch_voided',
    ...{ batch_id: batch.batch_id, from_part, why: 'reverted', at: batch.as_of + 9, reopened: [] },
    fills: batch.fills.filter(({ part }) => part >= from_part),
  })

  async function project(...rows: readonly JournalRow[]): Promise<void> {
    await appendToJournal(test.db, 'm1', [listed, ...rows])
    await projectAll(test.db, { ...options, limit: 2, projections: [batches] })
  }
  const stored = async (span: number) => {
    const rows = await test.db
      .selectFrom('read.candles')
      .selectAll()
      .where('market_id', '=', 1)
      .where('span', '=', span as never)
      .orderBy('start')
      .execute()
    return rows.map(({ market_id, span, ...candle }): Candle<number> => candle)
  }

  it('when batches clear, each minute has the first, highest, lowest and last price and what was matched', async () => {
    await project(
      cleared(1, MINUTE, 50, 3),
      cleared(2, MINUTE + 1, 70, 1, 1),
      cleared(3, 2 * MINUTE - 1, 40, 2),
    )
    expect(await stored(MINUTE)).to.deep.equal([
      {
        ...{ start: MINUTE, open: 50, high: 70, low: 40, close: 40 },
        ...{ steps: 7, turnover: 370n, auctions: 3, fills: 8 },
      },
    ])
  })

  it('when a part of a batch is voided, its quantity leaves the candles and the price stays', async () => {
    const batch = cleared(1, MINUTE, 50, 3, 4)
    await project(batch, cleared(2, 2 * MINUTE, 60, 1), voided(batch, 2))
    const [first] = await stored(MINUTE)
    expect(first).to.include({ close: 50, steps: 3, turnover: 150n, auctions: 1, fills: 2 })
    expect((await stored(5 * MINUTE))[0]).to.include({ steps: 4, high: 60, auctions: 2 })
  })

  it('when all of a batch is voided, its candles are what the other batches make them, or are deleted', async () => {
    const [first, last] = [cleared(1, 0, 90, 3), cleared(3, 31 * MINUTE, 10, 1)]
    await project(first, cleared(2, 1, 50, 1), last, voided(last, 1), voided(first, 1))
    for (const span of SPANS) {
      const [candle, ...others] = await stored(span)
      expect(others, `${span}`).to.deep.equal([])
      expect(candle).to.include({ open: 50, high: 50, low: 50, close: 50, steps: 1, auctions: 1 })
    }
  })

  it('when a batch is of an earlier minute than the one before, longer candles still end with the later minute', async () => {
    await project(cleared(1, 2 * MINUTE, 50, 3))
    await project(cleared(2, MINUTE, 70, 1))
    await project(cleared(3, 2 * MINUTE, 60, 2))
    expect((await stored(MINUTE)).map(({ open, close }) => [open, close])).to.deep.equal([
      [70, 70],
      [50, 60],
    ])
    expect((await stored(5 * MINUTE))[0]).to.include({ open: 70, high: 70, low: 50, close: 60, steps: 6 })
    await project(cleared(4, MINUTE, 80, 1))
    expect((await stored(5 * MINUTE))[0]).to.include({ open: 70, high: 80, low: 50, close: 60, steps: 7 })
  })

  it('when parts of a batch are confirmed or voided, the batch is final, until a fork takes one back', async () => {
    const batch = cleared(1, 0, 50, 3, 4, 5)
    const at = { batch_id: 1, at: 5, block: 2, tx_hash: '0xaa' }
    const mined = (part: number, rollback = false): JournalRow =>
      ({ kind: 'part_settled', rollback, ...at, part, fills: [], positions: [], orders: [] }) as never
    const confirmed = (part: number): JournalRow => ({ kind: 'part_confirmed', ...at, part })
    const state = async () => {
      const { part_states, is_final } = await test.db
        .selectFrom('read.batches')
        .select(['part_states', 'is_final'])
        .executeTakeFirstOrThrow()
      return [part_states.map(({ status }) => status).join(' '), is_final]
    }
    await project(batch, mined(1), mined(2), voided(batch, 3), confirmed(1))
    expect(await state()).to.deep.equal(['CONFIRMED MINED VOIDED', false])
    await project(confirmed(2))
    expect(await state()).to.deep.equal(['CONFIRMED CONFIRMED VOIDED', true])
    await project(mined(2, true))
    expect(await state()).to.deep.equal(['CONFIRMED RETRYING VOIDED', false])
  })

  it('when any history is projected in any chunks, every candle of every interval is the fold of its batches', async () => {
    const anyTurns = fc.array(fc.nat(100), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(anyHistory, anyTurns, async ({ markets }, turns) => {
        await clearJournal(test.db)
        for (const { marketId, rows } of markets) await appendToJournal(test.db, marketShard(marketId), rows)
        const shards = await registerShards(test.db)
        for (const turn of turns)
          await projectChunk(test.db, [shards[turn % shards.length] as string], {
            ...options,
            limit: 1 + (turn % 7),
          })
        await projectAll(test.db, options)
        const live = await dumpReadModel(test.db)
        const rows = markets[0]?.rows ?? []
        for (const interval of NAMES) {
          const candles = toInterval(await stored(spanOf(interval)), interval)
          expect(candles, interval).to.deep.equal(expectedCandles(rows, interval))
        }
        expect(await changes()).to.deep.equal(expectedChanges(rows))
        await rebuild(test.db, options)
        const again = await dumpReadModel(test.db)
        for (const table of [
          'read.candles',
          'read.price_candles',
          'read.open_interest_changes',
          'read.batches',
        ])
          expect(again[table], table).to.deep.equal(live[table])
      }),
      { numRuns: 8 },
    )
  })

  const changes = async () => {
    const query = test.db.selectFrom('read.open_interest_changes').selectAll().where('market_id', '=', 1)
    const rows = await query.orderBy('span').orderBy('start').execute()
    return rows.map(({ span, start, steps }) => [span, start, steps])
  }
})

/** One candle per interval, from all batches at once. */
function expectedCandles(rows: readonly JournalRow[], interval: Interval): Candle<number>[] {
  const voidedIds = new Set(
    rows.flatMap((row) => (row.kind === 'batch_voided' ? row.fills.map(({ fill_id }) => fill_id) : [])),
  )
  const batches = rows.flatMap((row) => {
    if (row.kind !== 'batch_cleared') return []
    const fills = row.fills.filter(({ fill_id }) => !voidedIds.has(fill_id))
    const steps = fills.reduce((sum, fill) => sum + fill.steps, 0) / 2
    return steps === 0 ? [] : [{ at: row.as_of, price: row.price, steps, fills: fills.length }]
  })
  const groups = Map.groupBy(batches, ({ at }) => intervalStart(interval, at))
  return [...groups].map(([start, group]) => {
    const prices = group.map(({ price }) => price)
    const sum = (of: (batch: (typeof group)[number]) => number) =>
      group.reduce((all, each) => all + of(each), 0)
    return {
      ...{ start, open: prices[0] as number, high: Math.max(...prices), low: Math.min(...prices) },
      ...{ close: prices.at(-1) as number, steps: sum(({ steps }) => steps), auctions: group.length },
      turnover: group.reduce((all, each) => all + candleOfBatch(each).turnover, 0n),
      fills: sum(({ fills }) => fills),
    }
  })
}

/** Per stored length and start, what mined rows changed in the sum of the long sizes. */
function expectedChanges(rows: readonly JournalRow[]): number[][] {
  const sizes = new Map<number, number>()
  const moves: { at: number; steps: number }[] = []
  for (const row of rows) {
    if (row.kind !== 'part_settled' && row.kind !== 'positions_moved') continue
    for (const { user_id, size_delta } of row.positions) {
      const before = sizes.get(user_id) ?? 0
      const after = before + (row.rollback ? -size_delta : size_delta)
      sizes.set(user_id, after)
      moves.push({ at: row.at, steps: Math.max(after, 0) - Math.max(before, 0) })
    }
  }
  return SPANS.flatMap((span) => {
    const groups = Map.groupBy(moves, ({ at }) => Math.floor(at / span) * span)
    const sums = [...groups].map(([start, group]) => [
      span,
      start,
      group.reduce((all, { steps }) => all + steps, 0),
    ])
    return sums.sort(([, a = 0], [, b = 0]) => a - b)
  })
}
