/** What changes a trader's orders: signs them, sends them, takes them back. */
import type {
  BatchCancellation,
  BatchPlacement,
  Bookmark,
  Cancellation,
  CancelSwitch,
  Market,
  Placement,
  SweepCancellation,
  Validation,
} from './answers.ts'
import { toWire } from './decimals.ts'
import type { Http } from './http.ts'
import type { SaltSequence } from './salts.ts'
import { buildOrder, type MessageSigner, type OrderDraft, orderSigner, type Signed } from './signing.ts'

export interface NewOrder extends OrderDraft {
  readonly marketId: number
}

/** A signed order as it is sent; keep it to send the very same again. */
export interface OutgoingOrder extends Signed {
  readonly body: Readonly<Record<string, unknown>>
}

export interface ReadOptions {
  /** The read shows at least the write that returned this. */
  readonly readAfter?: Bookmark
}

export interface BatchOptions {
  /** atomic: all or none. best_effort (default): each for itself. */
  readonly mode?: 'atomic' | 'best_effort'
  /** Keep it, with the signed orders, to ask for the same answer again after a restart. */
  readonly clientRequestId?: string
}

export interface Trader {
  /** The account's address. */
  readonly maker: string | null
  /** The account's own key, or a session key. */
  readonly signer: MessageSigner | null
  readonly salts: SaltSequence
}

type Query = Record<string, string | number | undefined>

export class Trading {
  protected readonly http: Http
  readonly #trader: Trader
  readonly #markets = new Map<number, { market: Market; sign: ReturnType<typeof orderSigner> }>()

  constructor(http: Http, trader: Trader) {
    this.http = http
    this.#trader = trader
  }

  /** The account's address. */
  get address(): string {
    return this.#trader.maker ?? missing('privateKey')
  }

  async market(marketId: number, { readAfter }: ReadOptions = {}): Promise<Market> {
    return this.get(`/v0/markets/${marketId}`, bookmark(readAfter))
  }

  // ------------------------------------------------------------------ placing

  /** Signs an order with the next salt. Sending it is a second step, so that the same one can be sent again. */
  async sign({ marketId, ...draft }: NewOrder): Promise<OutgoingOrder> {
    const { market, sign } = await this.#signing(marketId)
    const { salts, signer } = this.#trader
    const parts = { market, draft, maker: this.address, salt: salts.next(), now: Date.now() }
    const signed = await sign(buildOrder(parts), signer ?? missing('privateKey'))
    return { ...signed, body: bodyOf(signed, market) }
  }

  /** Every check of a placement and nothing else: throws what `send` would throw. */
  async validate({ body }: Pick<OutgoingOrder, 'body'>): Promise<Validation> {
    return this.post('/v0/orders/validate', body)
  }

  /** Sending the same signed order twice places it once. */
  async send({ body }: Pick<OutgoingOrder, 'body'>): Promise<Placement> {
    return this.post('/v0/orders', body)
  }

  /** Accepted into the book, or waiting for its trigger: fills come with later batches. */
  async place(order: NewOrder): Promise<Placement> {
    return this.send(await this.sign(order))
  }

  /** Up to 50 orders by one command, in their order. Throws where the whole is refused; in best_effort each result says for itself. */
  async placeBatch(
    orders: readonly (NewOrder | OutgoingOrder)[],
    { mode = 'best_effort', clientRequestId = crypto.randomUUID() }: BatchOptions = {},
  ): Promise<BatchPlacement> {
    const signed = await Promise.all(orders.map((order) => ('body' in order ? order : this.sign(order))))
    const bodies = signed.map(({ body }) => body)
    return this.post('/v0/orders/place/batch', { client_request_id: clientRequestId, mode, orders: bodies })
  }

  // ------------------------------------------------------------------ cancelling

  async cancel(orderHash: string, reason?: string): Promise<Cancellation> {
    return this.post(`/v0/orders/cancel/by-hash/${orderHash}`, { reason })
  }

  /** Up to 100 orders by one command, each for itself. */
  async cancelBatch(
    orderHashes: readonly string[],
    { reason, clientRequestId = crypto.randomUUID() }: { reason?: string; clientRequestId?: string } = {},
  ): Promise<BatchCancellation> {
    return this.post('/v0/orders/cancel/batch', { client_request_id: clientRequestId, orderHashes, reason })
  }

  /** Every live order, in one market or in all. */
  async cancelAll({
    marketId,
    reason,
  }: {
    marketId?: number
    reason?: string
  } = {}): Promise<SweepCancellation> {
    return this.post('/v0/orders/cancel/all', { market_id: marketId, reason })
  }

  /** The exchange cancels every live order unless this is called again in time. 5 to 900 seconds; 0 disarms. */
  async cancelAllAfter(seconds: number): Promise<CancelSwitch> {
    return this.post('/v0/orders/cancel/all-after', { timeout_seconds: seconds })
  }

  async cancelSwitch(): Promise<CancelSwitch> {
    return this.get('/v0/orders/cancel/all-after')
  }

  // ------------------------------------------------------------------ inside

  protected async get<Answer>(path: string, query: Query = {}): Promise<Answer> {
    return this.http.send({ method: 'GET', path, query, repeatable: true })
  }

  /** What has the effect of one, however often it is sent. */
  protected async post<Answer>(path: string, body: unknown): Promise<Answer> {
    return this.http.send({ method: 'POST', path, body, repeatable: true })
  }

  async #signing(marketId: number) {
    const known = this.#markets.get(marketId)
    if (known !== undefined) return known
    const market = await this.market(marketId)
    const entry = { market, sign: orderSigner(market, market.chain_id) }
    this.#markets.set(marketId, entry)
    return entry
  }
}

const bodyOf = ({ order, signature }: Signed, market: Market): Record<string, unknown> => ({
  market_id: order.marketId,
  side: order.side,
  order_type: order.type,
  ...(order.price === 0 ? {} : { price: toWire(BigInt(order.price) * BigInt(market.tick_size_e18_raw)) }),
  quantity_e18_raw: (BigInt(order.quantity) * BigInt(market.step_size_e18_raw)).toString(),
  leverage: order.leverage,
  expiration_seconds: order.expiration,
  ...(order.trigger === 0
    ? {}
    : { trigger_price: toWire(BigInt(order.trigger) * BigInt(market.tick_size_e18_raw)) }),
  reduce_only: order.reduceOnly,
  salt: order.salt.toString(),
  signature,
  signature_type: 1,
})

export const bookmark = (readAfter: Bookmark | undefined): Record<string, string> =>
  readAfter === undefined
    ? {}
    : { read_after_shard_id: readAfter.shard_id, read_after_shard_seq: readAfter.shard_seq }

export function missing(option: string): never {
  throw new TypeError(`this needs the option ${option}`)
}
