/** Batches and published prices of market 1 at chosen times, as journal rows. */
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { e18 } from '../../support/markets.ts'
import { createUser, type ExchangeFixture, type User } from './exchange-fixture.ts'
import { append, clearedRow, confirmedRow, settledRow, submittedRow, type Trade } from './trade-rows.ts'

interface BatchOptions {
  readonly at: number
  /** In ticks of 0.1. */
  readonly price: number
  /** Of 0.001. */
  readonly steps: number
  /** How far its part has come; CONFIRMED unless set. */
  readonly stage?: 'MATCHED' | 'MINED' | 'VOIDED'
}

export class MarketHistory {
  readonly #exchange: ExchangeFixture
  readonly #alice: User
  readonly #bob: User
  #batches = 0

  private constructor(exchange: ExchangeFixture, alice: User, bob: User) {
    this.#exchange = exchange
    this.#alice = alice
    this.#bob = bob
  }

  static async open(exchange: ExchangeFixture): Promise<MarketHistory> {
    return new MarketHistory(
      exchange,
      await createUser(exchange.db, 'history buyer'),
      await createUser(exchange.db, 'history seller'),
    )
  }

  /** A buy and a sell are placed, and matched at the time. */
  async batch({ at, price, steps, stage }: BatchOptions): Promise<Trade> {
    const buy = await this.#exchange.place(this.#alice, { quantity: '1' })
    const sell = await this.#exchange.place(this.#bob, { side: 'SHORT', quantity: '1', price: '104.9' })
    const trade: Trade = {
      ...{ batch: ++this.#batches, price, steps },
      buy: { orderId: buy.body.order.order_id, user: this.#alice, status: 'OPEN' },
      sell: { orderId: sell.body.order.order_id, user: this.#bob, status: 'OPEN' },
    }
    const cleared = { ...clearedRow(trade), as_of: at }
    await append(this.#exchange, cleared)
    if (stage === 'VOIDED') {
      const why = { batch_id: trade.batch, from_part: 1, why: 'reverted', at, reopened: [] }
      await append(this.#exchange, { kind: 'batch_voided', ...why, fills: cleared.fills })
    } else if (stage !== 'MATCHED') {
      await append(this.#exchange, { ...submittedRow(trade), at }, { ...settledRow(trade), at })
      if (stage !== 'MINED') await append(this.#exchange, { ...confirmedRow(trade), at } as JournalRow)
    }
    return trade
  }

  /** The number of the next batch: those before it are known to the chain only. */
  skipTo(batch: number): void {
    this.#batches = batch - 1
  }

  async prices(at: number, oracle: string, mark: string): Promise<void> {
    const prices = { oracle_price: e18(oracle).toString(), mark_price: e18(mark).toString() }
    await append(this.#exchange, { kind: 'prices_updated', at, oracle_at: at, ...prices })
  }
}
