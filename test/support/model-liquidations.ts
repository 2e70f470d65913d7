/** What the keeper's liquidations write, applied to the order model: the orders that they end, and forced orders. */
import { expect } from 'chai'
import type { JournalRow, OrderPlaced } from '../../domain/journal/journal-row.ts'
import type { LiquidationChanged, LiquidationEvidence } from '../../domain/journal/liquidation-row.ts'
import { type MarketSpec, priceOf } from '../../domain/market/market.ts'
import { exposureOf, isLiquidatable } from '../../domain/positions/margin.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import { type FundingIndex, ONE, type Price, type Ticks } from '../../domain/units.ts'
import type { Model } from './order-model.ts'
import type { ModelOrder } from './order-model-terms.ts'

/** Farther than the margin of any position of a run. */
const MOST_TICKS = 400

export class ModelLiquidations {
  readonly #spec: MarketSpec
  readonly #model: Model
  /** Accounts in liquidation. */
  readonly #running = new Set<number>()
  readonly #minesActions: boolean
  readonly seen = { liquidations: 0, forced: 0, healthy: 0 }

  /** `minesActions`: whether a position may be inherited or deleveraged. */
  constructor(spec: MarketSpec, model: Model, { minesActions = false } = {}) {
    this.#spec = spec
    this.#model = model
    this.#minesActions = minesActions
  }

  /**
   * The price nearest to `middle`, on the side of `towards`, at which a position gets a forced order; null if at that price another one would
   * be inherited or deleveraged, which a run does not mine.
   */
  forcingPrice(middle: number, towards: 1 | -1): number | null {
    for (let moved = 1; moved <= MOST_TICKS; moved++) {
      const ticks = middle + towards * moved
      if (ticks <= 0) return null
      const oracle = priceOf(this.#spec, ticks as Ticks)
      const below = [...this.#model.matched.values()].filter((position) => this.#isBelow(position, oracle))
      if (below.length > 0) return below.some((position) => this.#isLate(position, oracle)) ? null : ticks
    }
    return null
  }

  /** The rows of a keeper's step. Returns the forced orders that it places. `rankOf`: by default they are the newest. */
  apply(rows: readonly JournalRow[], rankOf?: (row: OrderPlaced) => number): ModelOrder[] {
    const placed: ModelOrder[] = []
    const decided = new Set<number>()
    for (const row of rows) {
      if (row.kind === 'liquidation_changed') {
        this.#change(row)
        decided.add(row.user_id)
      }
      if ((row.kind === 'order_ended' || row.kind === 'order_ending') && row.reason === 'LIQUIDATION')
        this.#end(row.order_id)
      if (row.kind === 'order_placed' && row.forced) placed.push(this.#place(row, rankOf?.(row)))
    }
    for (const { id, account } of this.#model.orders.filter(
      (order) => this.#model.isLive(order) && !order.forced && decided.has(order.account),
    ))
      expect(this.#running.has(account), `${id} is of an account in liquidation`).to.equal(false)
    return placed
  }

  #change({ step, reason, user_id, order_id, widenings, evidence }: LiquidationChanged): void {
    const { oracle_price, size, funding_index } = evidence as LiquidationEvidence
    const position = this.#model.matched.get(user_id) ?? FLAT
    expect(position.size, 'the position of the evidence').to.equal(size)
    const isBelow = this.#isBelow(position, BigInt(oracle_price) as Price, BigInt(funding_index))
    // An action can fail because the position has become healthy.
    if (step !== 'failed')
      expect(isBelow, `${step} ${reason} of account ${user_id}`).to.equal(step !== 'ended')
    const order = this.#model.orders.find(({ id }) => id === order_id)
    if (step === 'widened' && order !== undefined) order.widenings = widenings
    if (!this.#minesActions && (step === 'inherit_queued' || step === 'deleverage_queued'))
      throw new Error('a run does not mine actions')
    if (step === 'started') {
      this.seen.liquidations++
      this.#running.add(user_id)
    }
    if (step !== 'ended') return
    if (reason === 'HEALTHY') this.seen.healthy++
    this.#running.delete(user_id)
  }

  #end(orderId: string): void {
    const order = this.#model.orders.find(({ id }) => id === orderId)
    if (order === undefined) throw new Error(`a liquidation ends the unknown order ${orderId}`)
    expect(this.#model.isLive(order), `${orderId} is live`).to.equal(true)
    this.#model.leave(order, 'LIQUIDATION')
  }

  #place(row: OrderPlaced, rank?: number): ModelOrder {
    expect(this.#running.has(row.user_id), `${row.order_id} belongs to a liquidation`).to.equal(true)
    const { order_id: id, user_id: account, side, quantity, accepted_at: acceptedAt } = row
    this.seen.forced++
    const order: Parameters<Model['place']>[0] = {
      ...{ id, account, side, quantity, acceptedAt, signer: '', type: 'MARKET', price: 0, trigger: 0 },
      ...{ leverage: 0, reduceOnly: true, aliveUntil: 0, expiration: 0, status: 'OPEN', reservedPrice: 0 },
      ...{ forced: true, widenings: 0 },
    }
    return this.#model.place(order, rank)
  }

  #isBelow = (position: Position, oracle: Price, index = this.#model.fundingIndex): boolean =>
    isLiquidatable(this.#spec, position, index as FundingIndex, oracle)

  /** Its ratio is below two thirds of MMR: the ladder does not wait for the book. */
  #isLate(position: Position, oracle: Price): boolean {
    const { equity, notional } = exposureOf(
      this.#spec,
      position,
      this.#model.fundingIndex as FundingIndex,
      oracle,
    )
    return equity <= 0n || 3n * equity * ONE < 2n * this.#spec.mmr * notional
  }
}
