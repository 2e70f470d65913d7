/**
 * The contract with traders as tables, as far as it concerns orders, fills, reads, limits, errors and signing: endpoints, answers and
 * rules here; requests and signatures beside it. Every row has an id; `coverage.ts` fails where a row has no test.
 */

// ------------------------------------------------------------------ endpoints

export interface Endpoint {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly access: 'public' | 'own'
  /** Takes `read_after_shard_id` and `read_after_shard_seq`. */
  readonly bookmark: boolean
  /** The object of the answer, in `FIELDS`. */
  readonly answer: string
}

const read = (path: string, answer: string): Endpoint => ({
  ...{ method: 'GET', path, answer },
  ...{ access: 'own', bookmark: true },
})
const publicRead = (path: string, answer: string): Endpoint => ({ ...read(path, answer), access: 'public' })
const command = (path: string, answer: string): Endpoint => ({
  ...{ method: 'POST', path, answer },
  ...{ access: 'own', bookmark: false },
})

export const ENDPOINTS: readonly Endpoint[] = [
  command('/v0/orders', 'placement'),
  command('/v0/orders/place/batch', 'batch placement'),
  command('/v0/orders/cancel/by-hash/:order_hash', 'cancel'),
  command('/v0/orders/cancel/all', 'cancel all'),
  command('/v0/orders/cancel/batch', 'batch cancel'),
  command('/v0/orders/validate', 'validation'),
  command('/v0/orders/cancel/all-after', 'switch'),
  { ...read('/v0/orders/cancel/all-after', 'switch'), bookmark: false },
  command('/v0/orders/calculate-quantity', 'quantity'),
  command('/v0/orders/estimate', 'estimate'),
  read('/v0/orders/by-user/:user_id', 'orders'),
  read('/v0/orders/:order_id', 'order'),
  read('/v0/orders/by-hash/:order_hash', 'order'),
  read('/v0/orders/:order_id/fills', 'fills'),
  read('/v0/orders/:order_id/events', 'events'),
  read('/v0/users/:user_id/order-events', 'events'),
  read('/v0/orders/:order_id/fill-processing-status', 'fill processing'),
  read('/v0/fills/by-user/:user_id', 'fills'),
  publicRead('/v0/fills/by-market/:market_id', 'public fills'),
  read('/v0/balance/:user_id/margin', 'margin balance'),
  read('/v0/positions/by-user/:user_id', 'positions'),
  publicRead('/v0/markets', 'markets'),
  publicRead('/v0/markets/:market_id', 'market'),
  publicRead('/v0/orderbook/by-market/:market_id', 'book'),
  publicRead('/v0/orderbook?symbol=BTC-PERP', 'book by symbol'),
  publicRead('/v0/users/by-eoa/:address', 'user'),
  { ...publicRead('/v0/contracts/shared', 'shared contracts'), bookmark: false },
]

// ------------------------------------------------------------------ answers

export type FieldType =
  | 'string'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'amount'
  | 'array'
  | 'object'
  | readonly string[]

/** Fields by the object they belong to. `amount`: a number, and an exact `_e18_raw` beside it that says the same. */
export const FIELDS: Readonly<Record<string, Readonly<Record<string, FieldType>>>> = {
  order: {
    order_id: 'string',
    order_hash: 'string',
    status: ['OPEN', 'FILLED', 'CANCELLED', 'EXPIRED', 'PENDING_TRIGGER', 'CANCEL_PENDING_FINALIZE'],
    market_id: 'integer',
    side: ['LONG', 'SHORT'],
    order_type: [
      ...['MARKET', 'LIMIT', 'STOP_MARKET', 'STOP_LIMIT', 'TAKE_PROFIT_MARKET', 'TAKE_PROFIT_LIMIT'],
      ...['STOP_LOSS_MARKET', 'STOP_LOSS_LIMIT'],
    ],
    price: 'amount',
    quantity: 'amount',
    leverage: 'integer',
    reduce_only: 'boolean',
    expiration_seconds: 'integer',
    trigger_price: 'amount',
  },
  fill: { fee: 'amount' },
  level: { side: ['LONG', 'SHORT'], price: 'amount', quantity: 'amount', order_count: 'integer' },
  event: { kind: ['CREATED', 'PARTIALLY_FILLED', 'FILLED', 'CANCELLED', 'EXPIRED'] },
  'read after': { shard_id: 'string', shard_seq: 'string' },
  balance: { total: 'number', available: 'number' },
  market: {
    market_id: 'integer',
    symbol: 'string',
    type: ['perpetual', 'future', 'binary_future'],
    trading_enabled: 'boolean',
    trader_address: 'string',
    min_order_size: 'amount',
    tick_size: 'amount',
    min_order_price: 'amount',
    mark_price: 'amount',
    mtb_long: 'amount',
    mtb_short: 'amount',
    maker_fee: 'amount',
    taker_fee: 'amount',
  },
  placement: { order: 'object', fills: 'array', balance: 'object', read_after: 'object' },
  'batch placement': { results: 'array', balance: 'object' },
  cancel: { cancelled: 'boolean', is_duplicate: 'boolean', read_after: 'object' },
  validation: {
    order_hash: 'string',
    digest: 'string',
    status: ['OPEN', 'PENDING_TRIGGER'],
    margin: 'amount',
    fee_allowance: 'amount',
    reserved_margin: 'amount',
    price_band: 'object',
    nearest_valid: 'object',
    balance: 'object',
    typed_data: 'object',
  },
  switch: { armed: 'boolean', server_time: 'string' },
  orders: { orders: 'array' },
  fills: { fills: 'array' },
  'public fills': { fills: 'array' },
  events: { events: 'array' },
  'fill processing': { settlement_pending: 'boolean', fills: 'array' },
  'margin balance': { balance: 'object' },
  positions: { positions: 'array' },
  book: { long_levels: 'array', short_levels: 'array' },
  'book by symbol': { bids: 'array', asks: 'array' },
  user: { user_id: 'integer' },
  'shared contracts': { addressCollateralToken: 'string', addressMarginBank: 'string' },
  quantity: { quantity: 'amount', estimated_clearing_price: 'amount' },
  estimate: { maximum: 'object', estimate: 'object' },
  error: { message: 'string', details: 'object' },
}

/** Objects that have these fields and no others. */
export const EXACTLY: readonly string[] = ['level']

// ------------------------------------------------------------------ rules

export interface Rule {
  readonly id: string
  /** A test of another file that proves it, where HTTP alone cannot bring it about: `<file>: <title>`. */
  readonly provenBy?: string
}

const rules = (...ids: string[]): Rule[] => ids.map((id) => ({ id }))
const elsewhere = (id: string, provenBy: string): Rule => ({ id, provenBy })

/** Everything that the contract says and that is no field of a request or an answer. */
export const RULES: readonly Rule[] = [
  // States and transitions.
  ...rules(
    'a plain order is OPEN, with margin reserved',
    'a conditional order is PENDING_TRIGGER, with margin reserved up front',
    'an OPEN order that is cancelled is CANCELLED',
    'an OPEN order whose batch settles is CANCEL_PENDING_FINALIZE, then CANCELLED',
    'an OPEN order that fills whole is FILLED, with fills',
    'an order past its expiration is EXPIRED',
    'a triggered order is OPEN, with evidence',
    'the remainder of a market order is cancelled',
    'events are CREATED, PARTIALLY_FILLED, FILLED, CANCELLED, EXPIRED',
  ),
  // Placement.
  ...rules(
    'a placement answers without fills',
    'a salt is used once',
    'the same signed order again is the same order',
    'a reduce-only full close takes exactly the position',
    'an order that reduces reserves nothing',
    'a market order is the taker and pays the taker rate, the limit order the maker rate',
  ),
  elsewhere(
    'an order below the minimum size is refused, a full close is not',
    'test/domain/validate.test.ts: a quantity below the minimum',
  ),
  // Commands over several orders.
  ...rules(
    'an atomic batch places all or none',
    'a best-effort batch places what it can',
    'a batch has one balance, and its items have order and read_after but no fills',
    'a batch sent again is answered as before, and done once',
    'a client_request_id with another body is refused',
    'a client_request_id is of one account',
    'a batch may hold orders of several markets',
    'a cancel sent again says is_duplicate',
    'a cancel of an order that has filled says so',
    'a dead-man switch that is not armed again cancels everything',
    'a batch cancel sent again is done once',
  ),
  // Reads.
  ...rules(
    'lists by user are filtered by market, status and side, and limited',
    'lists are read in pages',
    'public fills tell no identities',
    'a list by user tells of its user alone',
    'fill processing tells stage, transaction, batch and times',
    'the maximum is accepted, and one step more is refused',
  ),
  // Bookmarks.
  ...rules(
    'a read without a bookmark never waits',
    'a read with a bookmark shows the write',
    'PENDING is 503 with Retry-After after up to 5 seconds',
    'STALE_BOOKMARK is 409 for an unknown owner',
    'STALE_BOOKMARK is 409 for another epoch',
    'the bookmark of a command over several markets shows all of them',
  ),
  elsewhere(
    'UNAVAILABLE is 503 with Retry-After 2',
    'test/api/read-after-lag.test.ts: is 503 UNAVAILABLE with Retry-After 2',
  ),
  elsewhere('CAPACITY is 429', 'test/api/read-after-lag.test.ts: is 429 CAPACITY when too many wait'),
  elsewhere(
    'STALE_BOOKMARK is 409 after a rebuild',
    'test/api/read-after-lag.test.ts: is 409 STALE after the read model was rebuilt',
  ),
  // Authentication.
  ...rules(
    'a UUID session token is refused',
    'an unknown API key is refused',
    "a path with another's user id is refused",
    "another's order is refused",
    'a session key may sign in place of the owner',
    'a key that nobody registered may not sign',
  ),
  // Errors, versioning.
  ...rules(
    'an unknown path is 404 in the form of an error',
    'JSON that cannot be read is 400 in the form of an error',
    'a number that a double would change is refused',
    'a name that is said twice is refused',
    'a method that a path does not know is 404 and says which it knows',
    'an answer names its request and the limit that is left',
    'every path begins with /v0/ and the description says 3.1.0 and version 0',
  ),
]
