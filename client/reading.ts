/** What a trader reads of his orders and of the market, and what an order would come to. */
import type { OrderStatus, Side } from '../domain/orders/order.ts'
import type { OrderEventKind } from '../domain/orders/order-state.ts'
import type { Fill, FillProcessing, OrderEvent, PlacedOrder, PublicFill } from './answers.ts'
import { type Decimal, fromE18, toE18 } from './decimals.ts'
import type { BudgetQuantity, Estimate, SizingQuestion } from './sizing.ts'
import { bookmark, type ReadOptions, Trading } from './trading.ts'

export interface PageOptions extends ReadOptions {
  readonly limit?: number
  readonly cursor?: string
}

export interface ListOptions extends PageOptions {
  readonly marketId?: number
  readonly side?: Side
}

export interface OrderListOptions extends ListOptions {
  readonly status?: OrderStatus
}

export interface EventListOptions extends PageOptions {
  readonly marketId?: number
  readonly kind?: OrderEventKind
}

interface Page {
  readonly next_cursor: string | null
}

/** Lists come newest first, one page per call; `pages` goes through all of them. */
export class Reading extends Trading {
  #userId: number | null = null

  async userId(): Promise<number> {
    this.#userId ??= (await this.get<{ user_id: number }>(`/v0/users/by-eoa/${this.address}`)).user_id
    return this.#userId
  }

  async order(orderId: string, { readAfter }: ReadOptions = {}): Promise<PlacedOrder> {
    return this.get(`/v0/orders/${orderId}`, bookmark(readAfter))
  }

  async orderByHash(orderHash: string, { readAfter }: ReadOptions = {}): Promise<PlacedOrder> {
    return this.get(`/v0/orders/by-hash/${orderHash}`, bookmark(readAfter))
  }

  async orders(options: OrderListOptions = {}): Promise<readonly PlacedOrder[]> {
    return (await this.orderPage(options)).orders
  }

  async orderPage(options: OrderListOptions = {}): Promise<Page & { orders: readonly PlacedOrder[] }> {
    const path = `/v0/orders/by-user/${await this.userId()}`
    return this.get(path, { ...listQuery(options), status: options.status })
  }

  async orderEvents(orderId: string, options: PageOptions = {}): Promise<readonly OrderEvent[]> {
    const path = `/v0/orders/${orderId}/events`
    return (await this.get<{ events: readonly OrderEvent[] }>(path, pageQuery(options))).events
  }

  /** Of all orders of the account. */
  async events(options: EventListOptions = {}): Promise<readonly OrderEvent[]> {
    return (await this.eventPage(options)).events
  }

  async eventPage(options: EventListOptions = {}): Promise<Page & { events: readonly OrderEvent[] }> {
    const path = `/v0/users/${await this.userId()}/order-events`
    const { marketId: market_id, kind } = options
    return this.get(path, { ...pageQuery(options), market_id, kind })
  }

  async orderFills(orderId: string, options: PageOptions = {}): Promise<readonly Fill[]> {
    const path = `/v0/orders/${orderId}/fills`
    return (await this.get<{ fills: readonly Fill[] }>(path, pageQuery(options))).fills
  }

  /** How far the fills of an order are on their way to the chain. */
  async fillProcessing(orderId: string, options: PageOptions = {}): Promise<FillProcessing> {
    return this.get(`/v0/orders/${orderId}/fill-processing-status`, pageQuery(options))
  }

  async fills(options: ListOptions = {}): Promise<readonly Fill[]> {
    return (await this.fillPage(options)).fills
  }

  async fillPage(options: ListOptions = {}): Promise<Page & { fills: readonly Fill[] }> {
    return this.get(`/v0/fills/by-user/${await this.userId()}`, listQuery(options))
  }

  /** Everybody's, without names; needs no key. Both sides of a trade: filter by `side` to count volume once. */
  async marketFills(
    marketId: number,
    options: PageOptions & { readonly side?: Side } = {},
  ): Promise<Page & { fills: readonly PublicFill[] }> {
    return this.get(`/v0/fills/by-market/${marketId}`, { ...pageQuery(options), side: options.side })
  }

  /** One page after another, until the last. */
  async *pages<Read extends Page>(read: (cursor: string | undefined) => Promise<Read>): AsyncGenerator<Read> {
    let cursor: string | undefined
    do {
      const page = await read(cursor)
      yield page
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
  }

  /** What it comes to, the largest order that would be accepted now, and why not a larger one. Places nothing. */
  async estimate(question: SizingQuestion): Promise<Estimate> {
    const { marketId, side, type, intent, size, price, trigger, leverage, reduceOnly } = question
    return this.post('/v0/orders/estimate', {
      market_id: marketId,
      side,
      order_type: type,
      sizing_intent: intent,
      size: text(size),
      price: text(price),
      trigger_price: text(trigger),
      leverage,
      reduce_only: reduceOnly,
    })
  }

  /** The quantity that a budget in USDM buys. */
  async calculateQuantity(budget: {
    readonly marketId: number
    readonly side: Side
    readonly usd: Decimal
    readonly price?: Decimal
  }): Promise<BudgetQuantity> {
    const { marketId: market_id, side, usd, price } = budget
    return this.post('/v0/orders/calculate-quantity', {
      market_id,
      side,
      usd_amount: text(usd),
      price: text(price),
    })
  }
}

const text = (value: Decimal | undefined): string | undefined =>
  value === undefined ? undefined : fromE18(toE18(value))

const pageQuery = ({ limit, cursor, readAfter }: PageOptions) => ({ limit, cursor, ...bookmark(readAfter) })

const listQuery = ({ marketId, side, ...page }: ListOptions) => ({
  market_id: marketId,
  side,
  ...pageQuery(page),
})
