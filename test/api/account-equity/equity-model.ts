/** Generated histories of accounts in two markets by the rules of `domain/`, with the equity that each account has at any time. */
import fc from 'fast-check'
import type { PositionChange } from '../../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { equityOf } from '../../../domain/positions/margin.ts'
import { applyFill, FLAT, marginOf, type Position } from '../../../domain/positions/position.ts'
import { type FundingState, fundingIndexAt, NO_FUNDING } from '../../../domain/prices/funding-state.ts'
import { emptied, merge } from '../../../domain/risk/liquidation.ts'
import type { HourlyFunding, Millis, Price, Rate, Steps, Ticks } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'

export const EQUITY_USERS = [1, 2, 3] as const
export const EQUITY_MARKETS = [1, 2].map(
  (marketId): MarketSpec => ({
    ...perpetual,
    marketId: marketId as MarketSpec['marketId'],
    symbol: `EQUITY-${marketId}`,
    trader: `0x${String(marketId).repeat(40)}` as MarketSpec['trader'],
  }),
)

const HOUR = 3_600_000
/** Some days after the epoch, not at the start of an hour. */
const START = 5 * 24 * HOUR + 17 * 60_000

const anyStep = fc.record({
  act: fc.constantFrom(
    ...([
      'trade',
      'trade',
      'trade',
      'deposit',
      'withdraw',
      'prices',
      'prices',
      'funding',
      'funding',
    ] as const),
    ...(['inherit', 'cover', 'rollback'] as const),
  ),
  pause: fc.constantFrom(0, 700, 60_000, 25 * 60_000, HOUR, 9 * HOUR, 31 * HOUR),
  market: fc.nat(1),
  a: fc.nat(2),
  b: fc.nat(2),
  steps: fc.integer({ min: 1, max: 40 }),
  price: fc.integer({ min: 900, max: 1100 }),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

interface State {
  readonly free: ReadonlyMap<number, bigint>
  readonly pending: ReadonlyMap<number, bigint>
  /** By user and market. */
  readonly positions: ReadonlyMap<string, Position>
  readonly fundings: ReadonlyMap<number, FundingState>
}

const EMPTY: State = { free: new Map(), pending: new Map(), positions: new Map(), fundings: new Map() }

interface Entry {
  readonly shard: string
  readonly row: JournalRow
}

/** An event of the chain, as the fork that may undo it finds it. */
interface Event extends Entry {
  readonly at: number
  readonly after: State
}

export class EquityModel {
  readonly entries: Entry[] = []
  readonly #events: Event[] = []
  readonly #prices: { readonly market: number; readonly at: number; readonly mark: Price }[] = []
  now = START as Millis
  #logs = 0

  play({ act, pause, market, a, b, steps, price }: Step): void {
    this.now = (this.now + pause) as Millis
    const [first, second] = [EQUITY_USERS[a] as number, EQUITY_USERS[b] as number]
    const spec = EQUITY_MARKETS[market] as MarketSpec
    if (act === 'trade' && a !== b) this.#trade(spec, first, second, steps, price)
    if (act === 'deposit' || act === 'withdraw') this.#move(first, act, steps)
    if (act === 'prices') this.#publish(spec, price)
    if (act === 'funding') this.#update(spec, steps, price)
    if (act === 'inherit' && a !== b) this.#inherit(spec, first, second)
    if (act === 'cover') this.#cover(spec, first, steps)
    if (act === 'rollback') for (let undone = 0; undone < steps % 4; undone++) this.#rollBack()
  }

  get #state(): State {
    return this.#events.at(-1)?.after ?? EMPTY
  }

  get #mined() {
    const log_index = ++this.#logs
    return { rollback: false, block: 1, tx_hash: `0x${log_index}`, log_index, at: this.now }
  }

  #push(shard: string, fields: object, after: Partial<State>): void {
    const row = { ...this.#mined, ...fields } as unknown as JournalRow
    const event = { shard, row, at: this.now, after: { ...this.#state, ...after } }
    this.#events.push(event)
    this.entries.push(event)
  }

  #rollBack(): void {
    const event = this.#events.pop()
    if (event !== undefined)
      this.entries.push({ shard: event.shard, row: { ...event.row, rollback: true } as JournalRow })
  }

  #move(user: number, act: 'deposit' | 'withdraw', amount: number): void {
    const wei = BigInt(amount) * 10n ** 18n + 1n
    const delta = act === 'deposit' ? wei : -wei
    const pending = act === 'deposit' ? 0n : wei
    this.#push(
      'accounts',
      {
        ...{
          kind: 'balance_changed',
          cause: act === 'deposit' ? 'deposit' : 'withdrawal_request',
          user_id: user,
        },
        free_delta: `${delta}`,
        pending_withdrawal_delta: `${pending}`,
      },
      { free: plus(this.#state.free, user, delta), pending: plus(this.#state.pending, user, pending) },
    )
  }

  #publish({ marketId }: MarketSpec, ticks: number): void {
    const mark = BigInt(ticks) * perpetual.tick
    this.#prices.push({ market: marketId, at: this.now, mark: (mark + 1n) as Price })
    const row = { oracle_price: `${mark}`, mark_price: `${mark + 1n}`, oracle_at: this.now, at: this.now }
    this.entries.push({ shard: `m${marketId}`, row: { kind: 'prices_updated', ...row } as JournalRow })
  }

  #indexNow(marketId: number) {
    return fundingIndexAt(this.#state.fundings.get(marketId) ?? NO_FUNDING, this.now)
  }

  #update({ marketId }: MarketSpec, steps: number, price: number): void {
    const index = this.#indexNow(marketId)
    const rate = BigInt(price - 1000) * 1_000_003n
    const validUntil = (this.now + steps * 90_000) as Millis
    const running = { rate: rate as HourlyFunding, validFrom: this.now, validUntil }
    this.#push(
      `m${marketId}`,
      {
        kind: 'funding_updated',
        action_id: this.#logs,
        as_of: this.now,
        rate: `${rate}`,
        valid_until: validUntil,
        funding_index: `${index}`,
        oracle_price: '1',
        oracle_at: this.now,
      },
      { fundings: new Map(this.#state.fundings).set(marketId, { index, asOf: this.now, running }) },
    )
  }

  #positionOf = (user: number, marketId: number) => this.#state.positions.get(`${user} ${marketId}`) ?? FLAT

  #trade(spec: MarketSpec, buyer: number, seller: number, steps: number, price: number): void {
    const fundingIndex = this.#indexNow(spec.marketId)
    const terms = { fundingIndex, makerFee: 2n as Rate, takerFee: (5n * 10n ** 14n) as Rate }
    let { free, pending } = this.#state
    const moved = new Map<number, Position>()
    const fills: object[] = []
    for (const [user, side] of [
      [buyer, 'LONG'],
      [seller, 'SHORT'],
    ] as const) {
      const fill = {
        side,
        price: price as Ticks,
        steps: steps as Steps,
        takerSteps: steps as Steps,
        leverage: 5,
      }
      const basis = (BigInt(price) * spec.tick) as Price
      const result = applyFill(spec, this.#positionOf(user, spec.marketId), { ...fill, basis }, terms)
      if (!result.ok) return
      const { position, realised, fee, freeDelta } = result.value
      // Every third part draws on what the account is about to withdraw.
      const waiting = pending.get(user) ?? 0n
      const fromPending = steps % 3 === 0 ? waiting / 2n : 0n
      free = plus(free, user, freeDelta + fromPending)
      pending = plus(pending, user, -fromPending)
      moved.set(user, position)
      fills.push({
        ...{
          fill_id: `${this.#logs}-${user}`,
          matched: false,
          order_id: `${spec.marketId}-x-${this.#logs}-${user}`,
          user_id: user,
          side,
          steps,
        },
        taker_steps: steps,
        fee: `${fee}`,
        free_delta: `${freeDelta}`,
        from_pending: `${fromPending}`,
        realized_pnl: `${realised}`,
        held: '0',
      })
    }
    this.#pushMoves(
      spec,
      moved,
      { free, pending },
      {
        kind: 'part_settled',
        batch_id: this.#logs,
        part: 1,
        parts: 1,
        action_id: this.#logs,
        price,
        fills,
        orders: [],
        position_closed: [],
      },
    )
  }

  #inherit(spec: MarketSpec, account: number, backstop: number): void {
    const [own, other] = [account, backstop].map((user) => this.#positionOf(user, spec.marketId)) as [
      Position,
      Position,
    ]
    if (own.size === 0) return
    const merged = merge(other, own, this.#indexNow(spec.marketId))
    const added = merged.size === 0 ? -merged.foldedMargin : 7n
    const after = { ...merged, foldedMargin: (merged.foldedMargin + added) as Position['foldedMargin'] }
    const moved = new Map([
      [account, emptied(own)],
      [backstop, after],
    ])
    this.#pushMoves(
      spec,
      moved,
      { free: plus(this.#state.free, backstop, -added) },
      {
        kind: 'positions_moved',
        cause: 'inherited',
        account,
        orders: [],
        balances: [{ user_id: backstop, free_delta: `${-added}` }],
      },
    )
  }

  #cover(spec: MarketSpec, payer: number, steps: number): void {
    this.#pushMoves(
      spec,
      new Map(),
      { free: plus(this.#state.free, payer, -BigInt(steps)) },
      {
        kind: 'positions_moved',
        cause: 'deficit_covered',
        account: payer,
        orders: [],
        balances: [{ user_id: payer, free_delta: `${-steps}` }],
      },
    )
  }

  #pushMoves(
    { marketId }: MarketSpec,
    moved: ReadonlyMap<number, Position>,
    sums: Partial<State>,
    fields: object,
  ): void {
    const positions = [...moved].map(([user_id, position]): PositionChange => {
      const before = this.#positionOf(user_id, marketId)
      return {
        user_id,
        size_delta: position.size - before.size,
        entry_notional_delta: `${position.entryNotional - before.entryNotional}`,
        folded_margin_delta: `${position.foldedMargin - before.foldedMargin}`,
        leverage_before: before.leverage,
        leverage_after: position.leverage,
      }
    })
    const funding_index = `${this.#indexNow(marketId)}`
    const all = new Map(this.#state.positions)
    for (const [user, position] of moved) all.set(`${user} ${marketId}`, position)
    this.#push(`m${marketId}`, { funding_index, positions, ...fields }, { positions: all, ...sums })
  }

  funding(marketId: number): FundingState {
    return this.#state.fundings.get(marketId) ?? NO_FUNDING
  }

  /** Free balance, margins and unrealized profit by market just before the time, as if nothing had happened since. */
  at(user: number, time: number) {
    const { free, positions, fundings } = this.#events.findLast(({ at }) => at < time)?.after ?? EMPTY
    const held = EQUITY_MARKETS.map((spec) => {
      const position = positions.get(`${user} ${spec.marketId}`) ?? FLAT
      const index = fundingIndexAt(
        fundings.get(spec.marketId) ?? NO_FUNDING,
        Math.min(time, this.now) as Millis,
      )
      const margin = marginOf(position, index)
      const mark = this.#prices.findLast(({ market, at }) => market === spec.marketId && at < time)?.mark
      return { margin, unrealized: mark === undefined ? 0n : equityOf(spec, position, index, mark) - margin }
    })
    const sum = (of: (each: (typeof held)[number]) => bigint) =>
      held.reduce((total, each) => total + of(each), 0n)
    return {
      balance: (free.get(user) ?? 0n) + sum(({ margin }) => margin),
      unrealizedPnl: sum(({ unrealized }) => unrealized),
    }
  }
}

const plus = (amounts: ReadonlyMap<number, bigint>, user: number, wei: bigint) =>
  new Map(amounts).set(user, (amounts.get(user) ?? 0n) + wei)

export const anyEquityModel = fc.array(anyStep, { minLength: 1, maxLength: 70 }).map((steps) => {
  const model = new EquityModel()
  for (const step of steps) model.play(step)
  model.now = (model.now + 1) as Millis
  return model
})
