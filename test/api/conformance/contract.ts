/**
 * The contract with traders as tables, as far as it concerns orders, fills, reads, limits, errors and signing: endpoints, answers and
 * rules here; requests and signatures in `contract-requests.ts` and `contract-signing.ts`. `coverage.ts` fails if a row has no test.
 */

import { FLAG_RULES } from './contract-flags.ts'
import { elsewhere, type Rule } from './contract-rule.ts'

// ------------------------------------------------------------------ endpoints

export interface Endpoint {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly access: 'public' | 'own'
  /** Whether it accepts `read_after_shard_id` and `read_after_shard_seq`. */
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
  read('/v0/account/transactions', 'transactions'),
  publicRead('/v0/markets', 'markets'),
  publicRead('/v0/markets/:market_id', 'market'),
  publicRead('/v0/markets/stats', 'statistics'),
  publicRead('/v0/markets/:market_id/candlesticks', 'candles'),
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

/** Fields by object. `amount`: a number, and an exact `_e18_raw` string of the same value. */
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
  'market statistics': { volume_24h: 'amount', open_interest: 'amount', mark_price: 'amount' },
  candles: { candles: 'array' },
  candle: { open: 'amount', high: 'amount', low: 'amount', close: 'amount' },
  placement: { order: 'object', fills: 'array', balance: 'object', read_after: 'object' },
  'batch placement': { results: 'array', balance: 'object' },
  cancel: { cancelled: 'boolean', is_duplicate: 'boolean', read_after: 'object' },
  validation: {
    order_hash: 'string',
    digest: 'string',
    status: ['OPEN', 'PENDING_TRIGGER'],
    margin: 'amount',
    fee_allowance: 'amount',
    fee_allowance_price: 'amount',
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
  transactions: { transactions: 'array' },
  transaction: {
    id: 'string',
    transaction_type: [
      ...['deposit', 'withdrawal', 'adjust_leverage', 'funding_payment', 'add_margin', 'remove_margin'],
      ...['liquidation', 'market_delisting_payout'],
    ],
    amount: 'amount',
    available_margin_delta: 'amount',
    asset: ['USDM'],
  },
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

const rules = (...ids: string[]): Rule[] => ids.map((id) => ({ id }))

/** All rules of the contract that are not fields of requests or answers. */
export const RULES: readonly Rule[] = [
  // States and transitions.
  ...rules(
    'when a plain order is accepted, it is OPEN with its margin reserved',
    'when a conditional order is accepted, it is PENDING_TRIGGER with its margin reserved',
    'when an OPEN order is cancelled, it is CANCELLED',
    'when an order is cancelled while its batch settles, it is CANCEL_PENDING_FINALIZE, then CANCELLED',
    'when an OPEN order fills completely, it is FILLED with fills',
    'when an order passes its expiration, it is EXPIRED',
    'when an order is triggered, it is OPEN with the evidence of the trigger',
    'when a market order fills in part, its remainder is cancelled',
    'when orders change, their events are CREATED, PARTIALLY_FILLED, FILLED, CANCELLED, EXPIRED',
  ),
  // Placement.
  ...rules(
    'when an order is placed, the answer has no fills',
    'when a salt is used again, the order is rejected',
    'when a signed order is repeated, it is the same order',
    'when a reduce-only order closes the whole position, it fills exactly the position',
    'when an order reduces a position, it reserves nothing',
    'when a market order matches a limit order, it pays the taker rate and the limit order the maker rate',
  ),
  elsewhere(
    'when an order is below the minimum size, it is rejected unless it closes the whole position',
    'test/domain/orders/admission.test.ts: a quantity below the minimum',
  ),
  ...FLAG_RULES,
  // Commands over several orders.
  ...rules(
    'when a batch is atomic, it places all orders or none',
    'when a batch is best_effort, it places every valid order',
    'when a batch is placed, it has one balance, and its items have order and read_after but no fills',
    'when a batch is repeated, it has the same answer and one effect',
    'when a client_request_id is reused with another body, the request is rejected',
    'when another account uses the same client_request_id, it is another command',
    'when a batch has orders of several markets, it is accepted',
    'when a cancel is repeated, it has is_duplicate',
    'when a filled order is cancelled, the answer has its status',
    'when a dead-man switch is not armed again, it cancels all orders',
    'when a batch cancel is repeated, it has one effect',
  ),
  // Reads.
  ...rules(
    'when lists by user are filtered and limited, they contain the matching rows only',
    'when a list is read in pages, the pages contain every row once',
    'when public fills are read, they contain no identities',
    'when a list by user is read, it contains rows of that user only',
    'when fill processing is read, it has stage, transaction, batch and times',
    'when the maximum is placed, it is accepted, and one step more is rejected',
  ),
  // API keys.
  elsewhere(
    'when the single API key is rotated, only the key named default is replaced',
    'test/api/auth/named-keys.test.ts: when the single key is rotated, only the key named default is replaced',
  ),
  elsewhere(
    'when an API key is revoked, REST and the live feed refuse it at once in every process',
    'test/api/auth/named-keys.test.ts: when a key is revoked, every process refuses it',
  ),
  elsewhere(
    'when the name of an API key is taken, the creation is 409 API_KEY_NAME_TAKEN with field, received and expected',
    'test/api/auth/named-keys.test.ts: when the name is taken, it is refused',
  ),
  elsewhere(
    'when an account has twenty API keys, a further one is 409 API_KEY_LIMIT with field, received and expected',
    'test/api/auth/named-keys.test.ts: when an account has twenty keys, a further one is refused',
  ),
  elsewhere(
    'when an account has no API key of a name, its revocation is 404 API_KEY_NOT_FOUND with field, received and expected',
    'test/api/auth/named-keys.test.ts: when the name is unknown, or the key is one of another account',
  ),
  elsewhere(
    'when a revoked API key has armed switches, they fire although another key is connected with a switch',
    'test/api/auth/named-keys.test.ts: when a revoked key has armed switches, they fire',
  ),
  // Announcements.
  elsewhere(
    'when an announcement is posted, REST lists it and the topic system has it within seconds',
    'test/api/announcements/announcements.test.ts: when an announcement is posted, the topic system has it',
  ),
  elsewhere(
    'when a maintenance window is announced, the status has it until it ends or is withdrawn',
    'test/api/announcements/announcements.test.ts: when maintenance is announced, the status has its window',
  ),
  elsewhere(
    'when a client accepts CSV, it gets every fill of the list once, newest first, with exact amounts',
    'test/api/transactions/fills-csv.test.ts: when a client accepts CSV, it gets every fill of the list once',
  ),
  // Bounds of one client.
  elsewhere(
    'when an account reads two large pages, a third is 429 LARGE_PAGE_LIMIT with Retry-After, field, received and expected',
    'test/api/http/page-limit.test.ts: when an account reads two large pages, a third is rejected',
  ),
  elsewhere(
    'when an address has too many connections, a further one is 429 TOO_MANY_CONNECTIONS with received and expected, and closed',
    'test/api/http/connection-limit.test.ts: a further connection is answered 429 and closed',
  ),
  elsewhere(
    'when a command is refused before it is read, its outcome is not_read',
    'test/api/commands/outcome-law.test.ts: when a command is refused before it is read',
  ),
  // Bookmarks.
  ...rules(
    'when a read has no bookmark, it never waits',
    'when a read has a bookmark, it shows the write',
    'when a write is not projected within 5 seconds, the read is 503 PENDING with Retry-After',
    'when a bookmark has an unknown shard, the read is 409 STALE_BOOKMARK',
    'when a bookmark has another epoch, the read is 409 STALE_BOOKMARK',
    'when a command covers several markets, a read with its bookmark shows all of them',
  ),
  elsewhere(
    'when freshness is not known, the read is 503 UNAVAILABLE with Retry-After 2',
    'test/api/read-after/read-after-lag.test.ts: are 503 UNAVAILABLE with Retry-After 2',
  ),
  elsewhere(
    'when too many reads wait, the read is 429 CAPACITY',
    'test/api/read-after/read-after-lag.test.ts: when too many reads wait, more are 429 CAPACITY',
  ),
  elsewhere(
    'when the read model was rebuilt, the read is 409 STALE_BOOKMARK',
    'test/api/read-after/read-after-lag.test.ts: when the read model was rebuilt, old bookmarks are 409 STALE',
  ),
  // Authentication.
  ...rules(
    'when the credential is a UUID session token, it is rejected',
    'when the API key is unknown, it is rejected',
    "when a path has another user's id, it is rejected",
    'when an order belongs to another user, it is rejected',
    'when a registered session key signs, the order is accepted for the owner',
    'when an unregistered key signs, the order is rejected',
  ),
  // Events.
  elsewhere(
    'when the feed is given the API key in the Authorization header, it authenticates the connection',
    'test/api/live/connection.test.ts: when the request has a key, the connection belongs to its account',
  ),
  elsewhere(
    'when the feed is given an invalid credential, it is rejected as over REST',
    'test/api/live/connection.test.ts: when the request has an invalid credential, it is answered with 401',
  ),
  // Session keys and margin nonces.
  elsewhere(
    'when a relay is pending, the key is not active',
    'test/api/session-keys/keys.test.ts: when a registration is pending, the key is not in the list, and its operation is',
  ),
  elsewhere(
    'when the lifetime of a key is over, it is EXPIRED and can be revoked',
    'test/domain/session-keys/session-key.test.ts: when the key has expired, it may be revoked',
  ),
  elsewhere(
    'when the revocation of a key is on the chain, it is REVOKED',
    'test/e2e/session-keys.test.ts: once its revocation is requested none is accepted, and open ones end with it',
  ),
  elsewhere(
    'when a status is asked for, the list has the keys with it; without one it is the history',
    'test/api/session-keys/keys.test.ts: when no status is asked for, it has the history of the caller alone',
  ),
  elsewhere(
    'when a forward request is relayed again, it is the same operation',
    'test/api/session-keys/relays.test.ts: repeating it in any state answers the same operation',
  ),
  elsewhere(
    'when expiration_seconds or permissions are sent, the relay is rejected',
    'test/api/session-keys/relays.test.ts: when a field that the server sets is sent, it is refused by name',
  ),
  elsewhere(
    'when margin nonces are invalidated, the answer has the minimum and the transaction',
    'test/api/margin-nonces/margin-nonces.test.ts: it answers with the minimum and the transaction',
  ),
  // Errors, versioning.
  ...rules(
    'when a path is unknown, it is 404 with an error body',
    'when a body is not JSON, it is 400 with an error body',
    'when a double would round a number, the number is rejected',
    'when a body has a name twice, it is rejected',
    'when a path does not have the method, it is 404 with the methods that it has',
    'when a request is answered, the headers have its id and the remaining limit',
    'when the description is read, every path begins with /v0/, and it is OpenAPI 3.1.0 of version 0',
  ),
]
