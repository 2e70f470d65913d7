/** The history of positions over generated trades, inheritances, funding and rollbacks, with the rules of `domain/`. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import type { FillSettled, PositionChange } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { applyFill, FLAT, marginOf, type Position } from '../../../domain/positions/position.ts'
import { emptied, merge } from '../../../domain/risk/liquidation.ts'
import type { FundingIndex, Price, Rate, Steps, Ticks } from '../../../domain/units.ts'
import { type PositionState, PositionStates } from '../../../indexer/project/tables/position-states.ts'
import type { RealizedProfit } from '../../../indexer/project/tables/realized-profits.ts'
import { perpetual } from '../../support/markets.ts'

const USERS = 3
const anyStep = fc.record({
  act: fc.constantFrom('trade', 'trade', 'trade', 'trade', 'accrue', 'inherit', 'rollback'),
  a: fc.nat(USERS - 1),
  b: fc.nat(USERS - 1),
  steps: fc.integer({ min: 1, max: 30 }),
  price: fc.integer({ min: 900, max: 1100 }),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

interface Account {
  readonly position: Position
  readonly free: bigint
}

/** Accounts by the rules of `domain/`, and the journal rows of what happened to them. */
class Model {
  readonly rows: JournalRow[] = []
  /** Rows without those that were rolled back. */
  readonly kept: JournalRow[] = []
  accounts: readonly Account[] = Array.from({ length: USERS }, () => ({ position: FLAT, free: 0n }))
  index = 0n as FundingIndex
  readonly #before: (readonly Account[])[] = []
  #logs = 0

  play({ act, a, b, steps, price }: Step): void {
    if (act === 'accrue') this.index = (this.index + BigInt(steps - 15) * 1_000_003n) as FundingIndex
    if (act === 'trade' && a !== b) this.#trade(a, b, steps, price)
    if (act === 'inherit' && a !== b) this.#inherit(a, b)
    if (act === 'rollback') this.#rollBack()
  }

  #trade(buyer: number, seller: number, steps: number, price: number): void {
    const terms = { fundingIndex: this.index, makerFee: 2n as Rate, takerFee: (5n * 10n ** 14n) as Rate }
    const results = (
      [
        [buyer, 'LONG'],
        [seller, 'SHORT'],
      ] as const
    ).map(([user, side]) => ({
      ...{ user, side },
      verdict: applyFill(
        perpetual,
        (this.accounts[user] as Account).position,
        {
          ...{ side, price: price as Ticks, steps: steps as Steps, takerSteps: steps as Steps, leverage: 5 },
          basis: (BigInt(price) * perpetual.tick) as Price,
        },
        terms,
      ),
    }))
    const fills: FillSettled[] = []
    const after = [...this.accounts]
    for (const { user, side, verdict } of results) {
      if (!verdict.ok) return
      const { position, realised, fee, freeDelta } = verdict.value
      after[user] = { position, free: (this.accounts[user] as Account).free + freeDelta }
      fills.push({
        ...{ fill_id: '', matched: true, order_id: '', user_id: user, side, steps, taker_steps: steps },
        ...{
          fee: `${fee}`,
          free_delta: `${freeDelta}`,
          from_pending: '0',
          realized_pnl: `${realised}`,
          held: '0',
        },
      })
    }
    this.#push(after, {
      ...{ kind: 'part_settled', batch_id: 1, part: 1, parts: 1, action_id: 1, price },
      ...{ fills, orders: [], position_closed: [] },
    })
  }

  #inherit(account: number, backstop: number): void {
    const [own, other] = [this.accounts[account] as Account, this.accounts[backstop] as Account]
    if (own.position.size === 0) return
    const merged = merge(other.position, own.position, this.index)
    // The backstop adds margin from its free balance, or receives that of a position without size.
    const added = merged.size === 0 ? -merged.foldedMargin : 7n
    const after = [...this.accounts]
    after[account] = { ...own, position: emptied(own.position) }
    after[backstop] = {
      position: { ...merged, foldedMargin: (merged.foldedMargin + added) as Position['foldedMargin'] },
      free: other.free - added,
    }
    this.#push(after, {
      ...{ kind: 'positions_moved', cause: 'inherited', account },
      balances: [{ user_id: backstop, free_delta: `${-added}` }],
    })
  }

  #push(after: readonly Account[], fields: object): void {
    const positions = after.flatMap(({ position }, user_id): PositionChange[] => {
      const { position: before } = this.accounts[user_id] as Account
      if (before === position) return []
      return [
        {
          ...{ user_id, size_delta: position.size - before.size },
          entry_notional_delta: `${position.entryNotional - before.entryNotional}`,
          folded_margin_delta: `${position.foldedMargin - before.foldedMargin}`,
          ...{ leverage_before: before.leverage, leverage_after: position.leverage },
        },
      ]
    })
    const log_index = ++this.#logs
    const row = {
      ...{
        rollback: false,
        funding_index: `${this.index}`,
        block: 1,
        tx_hash: '0x',
        log_index,
        at: log_index * 40 * 60_000,
      },
      ...{ positions, ...fields },
    } as unknown as JournalRow
    this.#before.push(this.accounts)
    this.accounts = after
    this.rows.push(row)
    this.kept.push(row)
  }

  #rollBack(): void {
    const row = this.kept.pop()
    if (row === undefined) return
    this.accounts = this.#before.pop() as readonly Account[]
    this.rows.push({ ...row, rollback: true } as JournalRow)
  }
}

interface Projected {
  readonly states: readonly PositionState[]
  readonly profits: readonly RealizedProfit[]
}

const sumOf = (a: RealizedProfit | undefined, b: RealizedProfit): RealizedProfit => ({
  ...b,
  realized_pnl: (a?.realized_pnl ?? 0n) + b.realized_pnl,
  fees: (a?.fees ?? 0n) + b.fees,
  funding: (a?.funding ?? 0n) + b.funding,
})

/** All states and profits after the rows, projected in chunks of `size` rows. */
function project(rows: readonly JournalRow[], size = rows.length): Projected {
  let stored: PositionState[] = []
  const profits = new Map<string, RealizedProfit>()
  for (let at = 0; at < rows.length; at += size) {
    const states = new PositionStates(
      1,
      Map.groupBy(stored, ({ user_id }) => user_id),
    )
    for (const row of rows.slice(at, at + size)) states.apply(row)
    const { changed, removed } = states
    for (const row of states.profits) {
      const key = `${row.user_id} ${row.span} ${String(row.start).padStart(12, '0')}`
      profits.set(key, sumOf(profits.get(key), row))
    }
    const isRemoved = ({ user_id, number }: PositionState): boolean =>
      removed.some((each) => each.user_id === user_id && number > each.number)
    stored = [...stored.filter((state) => !isRemoved(state)), ...changed]
  }
  return {
    states: stored.sort((a, b) => a.user_id - b.user_id || a.number - b.number),
    profits: [...profits]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, row]) => row)
      .filter(({ realized_pnl, fees, funding }) => realized_pnl !== 0n || fees !== 0n || funding !== 0n),
  }
}

const play = (steps: readonly Step[]): Model => {
  const model = new Model()
  for (const step of steps) model.play(step)
  return model
}
const anyModel = fc.array(anyStep, { minLength: 1, maxLength: 60 }).map(play)

describe('the states of positions', () => {
  it('when any history is projected, profit, fees and funding add up to the change of balance and margin, to the wei', () => {
    fc.assert(
      fc.property(anyModel, (model) => {
        const { states, profits } = project(model.rows)
        for (const [userId, { position, free }] of model.accounts.entries()) {
          const own = states.filter(({ user_id }) => user_id === userId)
          const ends = own.filter((state, at) => state.closed_at !== null || at === own.length - 1)
          const gained = ends.reduce(
            (sum, { realized_pnl, fees, funding }) => sum + realized_pnl - fees + funding,
            0n,
          )
          for (const span of [60 * 60_000, 24 * 60 * 60_000]) {
            const series = profits.filter((row) => row.user_id === userId && row.span === span)
            expect(series.every(({ start }) => start % span === 0)).to.equal(true)
            const total = series.reduce<RealizedProfit | undefined>(sumOf, undefined)
            const net = total === undefined ? 0n : total.realized_pnl - total.fees + total.funding
            expect(net, `profits by ${span} ms`).to.equal(gained)
          }
          const index = (own.at(-1)?.funding_index ?? 0n) as FundingIndex
          expect(gained).to.equal(free + marginOf(position, index))
          const open = own.at(-1)
          expect(open?.size ?? 0).to.equal(position.size)
          expect(open?.entry_notional ?? 0n).to.equal(position.entryNotional)
          for (const { closed_at, opened_steps, closed_steps, largest } of ends) {
            if (closed_at !== null) expect(closed_steps).to.equal(opened_steps)
            expect(largest).to.be.within(1, opened_steps)
          }
        }
      }),
    )
  })

  it('when rows are rolled back, the states are those of the history without them, in any chunks', () => {
    fc.assert(
      fc.property(anyModel, fc.integer({ min: 1, max: 5 }), (model, size) => {
        const expected = project(model.kept)
        expect(project(model.rows)).to.deep.equal(expected)
        expect(project(model.rows, size)).to.deep.equal(expected)
      }),
    )
  })
})
