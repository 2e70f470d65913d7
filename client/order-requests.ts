/** Requests about the account's orders: sign, place, replace, cancel, estimate, and read them. */
import type { OrderStatus, Side } from '../domain/orders/order.ts'
import type { Account } from './account.ts'
import { type Checked, checked } from './batch-result.ts'
import { type Decimal, fromE18, toE18 } from './decimals.ts'
import type { Estimate, EstimateRequest, QuantityForBudget } from './estimates.ts'
import type { HttpSession } from './http-session.ts'
import type { NewOrder, OrderFactory, OutgoingOrder } from './order-factory.ts'
import { IDENTITY } from './outcomes.ts'
import {
  bookmarkQuery,
  type ListOptions,
  listQuery,
  type Page,
  type PageOptions,
  pageQuery,
  type RangeOptions,
  type ReadOptions,
  rangeQuery,
} from './queries.ts'
import type {
  BatchCancellation,
  BatchPlacement,
  BatchReplacement,
  Cancellation,
  CancelSwitch,
  Fill,
  FillProcessing,
  OrderCommitment,
  OrderEvent,
  PlacedOrder,
  Placement,
  PositionClose,
  Replacement,
  SweepCancellation,
  Validation,
} from './responses.ts'
import { waitFor } from './wait-for.ts'

export interface CancelBatchOptions {
  readonly reason?: string
  readonly clientRequestId?: string
}

export interface CancelAllOptions {
  readonly marketId?: number
  readonly reason?: string
}

export interface BatchOptions {
  /**
   * `atomic`: all orders or none. `best_effort` (default): each order is accepted or rejected individually.
   */
  readonly mode?: 'atomic' | 'best_effort'
  /**
   * Persist the id with the signed orders. If you send both again after a restart, you receive the first response.
   */
  readonly clientRequestId?: string
}

/** The order to replace: by hash, or a live order by label. */
export type ReplaceTarget = { readonly orderHash: string } | { readonly clientOrderId: string }
/**
 * If steps of the order are filled or settling: `refuse` (default) the replacement, or `reduce` the new order by these steps.
 */
export type IfFilled = 'refuse' | 'reduce'

export interface ReplaceOptions {
  readonly ifFilled?: IfFilled
}

/** Request body of a replacement. */
export const replaceBody = (
  target: ReplaceTarget,
  order: OutgoingOrder['body'],
  ifFilled: IfFilled | undefined,
) => ({
  cancel:
    'orderHash' in target ? { order_hash: target.orderHash } : { client_order_id: target.clientOrderId },
  order,
  if_filled: ifFilled,
})

export interface OrderListOptions extends ListOptions {
  readonly status?: OrderStatus
}

/** Lists are newest first. A method that returns a list returns its first page; `pages` iterates over all. */
export class OrderRequests {
  readonly #http: HttpSession
  readonly #account: Account
  protected readonly factory: OrderFactory

  constructor(http: HttpSession, account: Account, factory: OrderFactory) {
    this.#http = http
    this.#account = account
    this.factory = factory
  }

  // ------------------------------------------------------------------ placing

  /** Signs an order with the next salt and sends nothing. */
  async sign(order: NewOrder): Promise<OutgoingOrder> {
    return this.factory.sign(order)
  }

  /** Dry run: performs every check of a placement, and throws the same errors as `send`. */
  async validate({ body }: Pick<OutgoingOrder, 'body'>): Promise<Validation> {
    return this.#http.post('/v0/orders/validate', body)
  }

  /** Sending the same signed order twice places it once. */
  async send({ body }: Pick<OutgoingOrder, 'body'>): Promise<Placement> {
    return this.#http.post('/v0/orders', body, IDENTITY.order(body))
  }

  /** Signs and sends. The order then rests in the book or waits for its trigger; later batches fill it. */
  async place(order: NewOrder): Promise<Placement> {
    return this.send(await this.sign(order))
  }

  /** Places at most 50 orders in one command; results are in order. Throws if the whole batch is rejected. */
  async placeBatch(
    orders: readonly (NewOrder | OutgoingOrder)[],
    { mode = 'best_effort', clientRequestId }: BatchOptions = {},
  ): Promise<Checked<BatchPlacement>> {
    const bodies = await Promise.all(orders.map(this.#bodyOf))
    return this.#batch('place', { mode, orders: bodies }, clientRequestId)
  }

  /**
   * Closes a position, or a part of it, with a reduce-only market order.
   * The quantity is an upper bound: the auction closes at most the position, and never flips it.
   */
  async close(order: NewOrder | OutgoingOrder): Promise<PositionClose> {
    const body = await this.#bodyOf(order)
    return this.#http.post('/v0/positions/close', body, IDENTITY.order(body))
  }

  // ------------------------------------------------------------------ replacing

  /**
   * Atomically ends an order and accepts another order of the same market and side. Repeating the same signed order is safe.
   */
  async replace(
    target: ReplaceTarget,
    order: NewOrder | OutgoingOrder,
    { ifFilled }: ReplaceOptions = {},
  ): Promise<Replacement> {
    const body = await this.#bodyOf(order)
    return this.#http.post('/v0/orders/replace', replaceBody(target, body, ifFilled), IDENTITY.order(body))
  }

  /**
   * Sends at most 50 replacements in one command; results are in order. Throws if the whole batch is rejected.
   */
  async replaceBatch(
    replacements: readonly {
      readonly target: ReplaceTarget
      readonly order: NewOrder | OutgoingOrder
      readonly ifFilled?: IfFilled
    }[],
    { mode = 'best_effort', clientRequestId }: BatchOptions = {},
  ): Promise<Checked<BatchReplacement>> {
    const orders = await Promise.all(
      replacements.map(async ({ target, order, ifFilled }) =>
        replaceBody(target, await this.#bodyOf(order), ifFilled),
      ),
    )
    return this.#batch('replace', { mode, orders }, clientRequestId)
  }

  #bodyOf = async (order: NewOrder | OutgoingOrder): Promise<OutgoingOrder['body']> =>
    ('body' in order ? order : await this.sign(order)).body

  async #batch<Answer extends { readonly results: readonly object[] }>(
    what: 'place' | 'replace' | 'cancel',
    fields: object,
    clientRequestId: string = crypto.randomUUID(),
  ): Promise<Checked<Answer>> {
    const command = { client_request_id: clientRequestId, ...fields }
    const identity = IDENTITY.request(clientRequestId)
    return checked(await this.#http.post<Answer>(`/v0/orders/${what}/batch`, command, identity))
  }

  // ------------------------------------------------------------------ cancelling

  async cancel(orderHash: string, reason?: string): Promise<Cancellation> {
    const path = `/v0/orders/cancel/by-hash/${orderHash}`
    return this.#http.post(path, { reason }, IDENTITY.cancel(orderHash))
  }

  /** Cancels the live order with the label; if there is none, returns the last order that had it. */
  async cancelByClientId(clientOrderId: string, reason?: string): Promise<Cancellation> {
    return this.#http.post(`/v0/orders/cancel/by-client-id/${clientOrderId}`, { reason })
  }

  /** Cancels at most 100 orders in one command. Each is cancelled or rejected individually. */
  async cancelBatch(
    orderHashes: readonly string[],
    { reason, clientRequestId }: CancelBatchOptions = {},
  ): Promise<Checked<BatchCancellation>> {
    return this.#batch('cancel', { orderHashes, reason }, clientRequestId)
  }

  /** Cancels every live order, in one market or in all markets. */
  async cancelAll({ marketId, reason }: CancelAllOptions = {}): Promise<SweepCancellation> {
    return this.#http.post('/v0/orders/cancel/all', { market_id: marketId, reason })
  }

  /**
   * Arms a dead-man switch: the exchange cancels every live order unless you call again in time. 5 to 900
   * seconds; 0 disarms.
   */
  async cancelAllAfter(seconds: number): Promise<CancelSwitch> {
    return this.#http.post('/v0/orders/cancel/all-after', { timeout_seconds: seconds })
  }

  async cancelSwitch(): Promise<CancelSwitch> {
    return this.#http.get('/v0/orders/cancel/all-after')
  }

  // ------------------------------------------------------------------ estimates

  /** The order's cost, the largest quantity accepted now, and the limiting constraint. No order is placed. */
  async estimate(request: EstimateRequest): Promise<Estimate> {
    const { marketId, side, type, intent, size, price, trigger, leverage, reduceOnly } = request
    return this.#http.post('/v0/orders/estimate', {
      market_id: marketId,
      side,
      order_type: type,
      sizing_intent: intent,
      size: decimalText(size),
      price: decimalText(price),
      trigger_price: decimalText(trigger),
      leverage,
      reduce_only: reduceOnly,
    })
  }

  /** Quantity that a budget in USDM can buy. */
  async calculateQuantity(budget: {
    readonly marketId: number
    readonly side: Side
    readonly usd: Decimal
    readonly price?: Decimal
  }): Promise<QuantityForBudget> {
    const { marketId: market_id, side, usd, price } = budget
    return this.#http.post('/v0/orders/calculate-quantity', {
      market_id,
      side,
      usd_amount: decimalText(usd),
      price: decimalText(price),
    })
  }

  // ------------------------------------------------------------------ reading

  async get(orderId: string, options: ReadOptions = {}): Promise<PlacedOrder> {
    return this.#http.get(`/v0/orders/${orderId}`, bookmarkQuery(options))
  }

  async getByHash(orderHash: string, options: ReadOptions = {}): Promise<PlacedOrder> {
    return this.#http.get(`/v0/orders/by-hash/${orderHash}`, bookmarkQuery(options))
  }

  /** The live order with the label; if there is none, the last order accepted with it. */
  async getByClientId(clientOrderId: string, options: ReadOptions = {}): Promise<PlacedOrder> {
    return this.#http.get(`/v0/orders/by-client-id/${clientOrderId}`, bookmarkQuery(options))
  }

  async list(options: OrderListOptions = {}): Promise<readonly PlacedOrder[]> {
    return (await this.page(options)).orders
  }

  async page(options: OrderListOptions = {}): Promise<Page & { orders: readonly PlacedOrder[] }> {
    const path = `/v0/orders/by-user/${await this.#account.userId()}`
    return this.#http.get(path, { ...listQuery(options), status: options.status })
  }

  /** Events of one order; `client.account.orderEvents` lists the events of all orders. */
  async events(orderId: string, options: RangeOptions = {}): Promise<readonly OrderEvent[]> {
    const path = `/v0/orders/${orderId}/events`
    return (await this.#http.get<{ events: readonly OrderEvent[] }>(path, rangeQuery(options))).events
  }

  /** Fills of one order; `client.account.fills` lists the fills of all orders. */
  async fills(orderId: string, options: RangeOptions = {}): Promise<readonly Fill[]> {
    const path = `/v0/orders/${orderId}/fills`
    return (await this.#http.get<{ fills: readonly Fill[] }>(path, rangeQuery(options))).fills
  }

  /**
   * Commitment to the order in the batch proof, if the order could trade in the batch, and the salt that opens it.
   */
  async commitment(orderId: string, batchId: number, options: ReadOptions = {}): Promise<OrderCommitment> {
    const query = { batch_id: batchId, ...bookmarkQuery(options) }
    return this.#http.get(`/v0/orders/${orderId}/commitment`, query)
  }

  /** Settlement stage of each of the order's fills. */
  async fillProcessing(orderId: string, options: PageOptions = {}): Promise<FillProcessing> {
    return this.#http.get(`/v0/orders/${orderId}/fill-processing-status`, pageQuery(options))
  }

  /** Polls an order, no earlier than its placement, until `done` returns true. */
  async waitFor(
    { order, read_after }: Pick<Placement, 'order' | 'read_after'>,
    done: (order: PlacedOrder) => boolean,
    budgetMs = 15_000,
  ): Promise<PlacedOrder> {
    return waitFor(() => this.get(order.order_id, { readAfter: read_after }), done, { budgetMs })
  }
}

const decimalText = (value: Decimal | undefined): string | undefined =>
  value === undefined ? undefined : fromE18(toE18(value))
