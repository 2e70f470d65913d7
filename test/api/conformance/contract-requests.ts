/** The contract with traders as tables: what may be sent, field by field. */

export interface Expected {
  readonly status: number
  readonly code?: string
  readonly field?: string
}

const ok: Expected = { status: 200 }
const no = (code: string, field: string, status = 400): Expected => ({ status, code, field })

/** What a placement says, in human units; prices and triggers in permille of the oracle price, rounded to a tick. */
export interface Terms {
  readonly side?: string
  readonly order_type?: string
  readonly price?: number
  readonly trigger?: number
  readonly quantity?: string
  readonly leverage?: number
  readonly expiration?: 'soon' | 'past' | number
  readonly reduce_only?: boolean
  readonly salt?: bigint
}

export interface PlacementRow {
  readonly id: string
  /** Signed as it stands. */
  readonly terms?: Terms
  /** Laid over the body after signing; undefined takes a field away. */
  readonly body?: Readonly<Record<string, unknown>>
  readonly expected: Expected
}

const row = (
  id: string,
  expected: Expected,
  terms: Terms = {},
  body?: PlacementRow['body'],
): PlacementRow => ({
  ...{ id, expected, terms },
  ...(body !== undefined && { body }),
})
const missing = (field: string): PlacementRow =>
  row(`${field} is required`, no('MISSING_FIELD', field), {}, { [field]: undefined })
const forbidden = (field: string): PlacementRow =>
  row(`${field} is not for this endpoint`, no('UNKNOWN_FIELD', field), {}, { [field]: 1 })
const STEP = '0.001'

/** POST /v0/orders, field by field. Without terms: a limit buy of 0.01 at 970 permille of the oracle price. */
export const PLACEMENTS: readonly PlacementRow[] = [
  missing('market_id'),
  row('market_id is an integer', no('INVALID_FIELD', 'market_id'), {}, { market_id: 'one' }),
  row('market_id is positive', no('INVALID_FIELD', 'market_id'), {}, { market_id: 0 }),
  row('market_id names a market', no('MARKET_NOT_FOUND', 'market_id', 404), {}, { market_id: 999 }),
  missing('side'),
  row('side LONG', ok, { side: 'LONG' }),
  row('side SHORT', ok, { side: 'SHORT', price: 1030 }),
  row('side is LONG or SHORT', no('INVALID_FIELD', 'side'), {}, { side: 'BUY' }),
  missing('order_type'),
  row('order_type MARKET', ok, { order_type: 'MARKET' }),
  row('order_type LIMIT', ok, { order_type: 'LIMIT' }),
  row('order_type STOP_MARKET', ok, { order_type: 'STOP_MARKET', trigger: 1100 }),
  row('order_type STOP_LIMIT', ok, { order_type: 'STOP_LIMIT', trigger: 1100, price: 1110 }),
  row('order_type TAKE_PROFIT_MARKET', ok, {
    order_type: 'TAKE_PROFIT_MARKET',
    trigger: 900,
    reduce_only: true,
  }),
  row('order_type TAKE_PROFIT_LIMIT', ok, {
    ...{ order_type: 'TAKE_PROFIT_LIMIT', trigger: 900, price: 900, reduce_only: true },
  }),
  row('order_type STOP_LOSS_MARKET', ok, {
    order_type: 'STOP_LOSS_MARKET',
    trigger: 1100,
    reduce_only: true,
  }),
  row('order_type STOP_LOSS_LIMIT', ok, {
    ...{ order_type: 'STOP_LOSS_LIMIT', trigger: 1100, price: 1100, reduce_only: true },
  }),
  row('order_type is one of eight', no('ORDER_TYPE_UNKNOWN', 'order_type'), {}, { order_type: 'ICEBERG' }),
  row('price is needed by a limit order', no('PRICE_REQUIRED', 'price'), {}, { price: undefined }),
  row('price 0 on a market order', ok, { order_type: 'MARKET' }, { price: 0 }),
  row(
    'price is for limit orders only',
    no('PRICE_NOT_ALLOWED', 'price'),
    { order_type: 'MARKET' },
    { price: 100 },
  ),
  row('price is a multiple of the tick size', no('TICK_SIZE', 'price'), {}, { price: 60000.05 }),
  row('price as a decimal string', ok),
  row('price with 18 decimals at most', no('INVALID_FIELD', 'price'), {}, { price: '1.0000000000000000001' }),
  row('price is no text', no('INVALID_FIELD', 'price'), {}, { price: '1e5' }),
  row('price above what the market can count', no('MAX_ORDER_PRICE', 'price'), {}, { price: 1e30 }),
  row('price is not null', no('INVALID_FIELD', 'price'), {}, { price: null }),
  row('price is not negative', no('INVALID_FIELD', 'price'), {}, { price: -1 }),
  row('price beyond the band on the side that would trade', no('PRICE_BAND', 'price'), { price: 1060 }),
  row('price beyond the band on the other side', ok, { price: 900 }),
  row('price at least the minimum', no('MIN_ORDER_PRICE', 'price'), {}, { price: '0.01' }),
  row(
    'quantity or quantity_e18_raw is needed',
    no('QUANTITY_REQUIRED', 'quantity'),
    {},
    { quantity: undefined },
  ),
  row('quantity_e18_raw alone', ok, {}, { quantity: undefined, quantity_e18_raw: '10000000000000000' }),
  row('both quantities that match', ok, {}, { quantity_e18_raw: '10000000000000000' }),
  row(
    'both quantities that differ',
    no('QUANTITY_MISMATCH', 'quantity_e18_raw'),
    {},
    {
      quantity_e18_raw: '10000000000000001',
    },
  ),
  row(
    'quantity_e18_raw is unsigned digits',
    no('INVALID_FIELD', 'quantity_e18_raw'),
    {},
    { quantity_e18_raw: '-1' },
  ),
  row('quantity is a multiple of the step size', no('STEP_SIZE', 'quantity'), {}, { quantity: 0.0015 }),
  row('quantity at the minimum', ok, { quantity: STEP }),
  row('quantity 0', no('QUANTITY_REQUIRED', 'quantity'), {}, { quantity: 0 }),
  row('quantity above the maximum', no('MAX_ORDER_SIZE', 'quantity'), {}, { quantity: '1000.001' }),
  row('leverage defaults to 1', ok, {}, { leverage: undefined }),
  row('leverage at the cap', ok, { leverage: 20 }),
  row('leverage above the cap', no('LEVERAGE_CAP', 'leverage'), { leverage: 21 }),
  row('leverage is positive', no('LEVERAGE_CAP', 'leverage'), {}, { leverage: 0 }),
  row('leverage is whole', no('LEVERAGE_CAP', 'leverage'), {}, { leverage: 1.5 }),
  row('expiration_seconds 0 is good-til-cancelled', ok, { expiration: 0 }),
  row('expiration_seconds in the future', ok, { expiration: 'soon' }),
  row('expiration_seconds in the past', no('ORDER_EXPIRED', 'expiration_seconds'), { expiration: 'past' }),
  row('expiration_seconds is not in milliseconds', no('EXPIRATION_RANGE', 'expiration_seconds'), {
    expiration: 1_790_000_000_000,
  }),
  row(
    'trigger_price is needed by conditional types',
    no('TRIGGER_REQUIRED', 'trigger_price'),
    {
      ...{ order_type: 'STOP_MARKET', trigger: 1100 },
    },
    { trigger_price: undefined },
  ),
  row(
    'trigger_price is for conditional types only',
    no('TRIGGER_NOT_ALLOWED', 'trigger_price'),
    {},
    { trigger_price: 100 },
  ),
  row(
    'trigger_price is a multiple of the tick size',
    no('TICK_SIZE', 'trigger_price'),
    {
      ...{ order_type: 'STOP_MARKET', trigger: 1100 },
    },
    { trigger_price: 60000.05 },
  ),
  row('reduce_only without a position', no('REDUCE_ONLY_NO_POSITION', 'reduce_only'), { reduce_only: true }),
  row('reduce_only is a boolean', no('INVALID_FIELD', 'reduce_only'), {}, { reduce_only: 'yes' }),
  row('reduce_only is set for take-profit types', no('REDUCE_ONLY_REQUIRED', 'reduce_only'), {
    ...{ order_type: 'TAKE_PROFIT_MARKET', trigger: 900 },
  }),
  row('reduce_only is set for stop-loss types', no('REDUCE_ONLY_REQUIRED', 'reduce_only'), {
    ...{ order_type: 'STOP_LOSS_MARKET', trigger: 1100 },
  }),
  missing('salt'),
  row('salt is a decimal string', no('INVALID_FIELD', 'salt'), {}, { salt: 5 }),
  row('salt just below 2^53', ok, { salt: 2n ** 53n - 1n }),
  row('salt is not negative', no('INVALID_FIELD', 'salt'), {}, { salt: '-1' }),
  row('salt is below 2^53', no('SALT_RANGE', 'salt'), { salt: 2n ** 53n }),
  missing('signature'),
  row('signature_type 1', ok, {}, { signature_type: 1 }),
  row('signature_type is 1', no('SIGNATURE_TYPE', 'signature_type'), {}, { signature_type: 2 }),
  forbidden('usd_amount'),
  forbidden('sizing_intent'),
  forbidden('sizing_value'),
  forbidden('margin_fraction'),
  row('an opening order that cannot be paid', no('INSUFFICIENT_MARGIN', 'quantity'), { quantity: '900' }),
]

// ------------------------------------------------------------------ commands over several orders

export interface CommandRow {
  readonly id: string
  readonly path: string
  /** Names of what `commands.ts` fills in: `orders:2`, `hashes:3`, `id`; anything else stands as it is. */
  readonly body: Readonly<Record<string, unknown>>
  readonly expected: Expected
}

const batch = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `place batch: ${id}`, path: '/v0/orders/place/batch', expected },
  body: { client_request_id: '$id', mode: 'best_effort', orders: '$orders:2', ...body },
})
const cancels = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `cancel batch: ${id}`, path: '/v0/orders/cancel/batch', expected },
  body: { client_request_id: '$id', orderHashes: '$hashes:2', ...body },
})
const all = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `cancel all: ${id}`, path: '/v0/orders/cancel/all', expected, body },
})
const one = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `cancel by hash: ${id}`, path: '/v0/orders/cancel/by-hash/$hash', expected, body },
})
const switched = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `dead-man switch: ${id}`, path: '/v0/orders/cancel/all-after', expected, body },
})
const estimate = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `estimate: ${id}`, path: '/v0/orders/estimate', expected },
  body: { market_id: 1, side: 'LONG', order_type: 'MARKET', sizing_intent: 'units', size: 0.01, ...body },
})
const quantityOf = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `calculate quantity: ${id}`, path: '/v0/orders/calculate-quantity', expected },
  body: { market_id: 1, side: 'LONG', usd_amount: 1000, ...body },
})
const REASON = { longest: 'r'.repeat(200), tooLong: 'r'.repeat(201) }

export const COMMANDS: readonly CommandRow[] = [
  batch('client_request_id is required', no('MISSING_FIELD', 'client_request_id'), {
    client_request_id: undefined,
  }),
  batch('orders is required', no('MISSING_FIELD', 'orders'), { orders: undefined }),
  batch('mode is required', no('MISSING_FIELD', 'mode'), { mode: undefined }),
  batch('mode atomic', ok, { mode: 'atomic' }),
  batch('mode best_effort', ok, { mode: 'best_effort' }),
  batch('mode is one of two', no('INVALID_FIELD', 'mode'), { mode: 'most' }),
  batch('50 orders', ok, { orders: '$orders:50' }),
  batch('no orders', no('INVALID_FIELD', 'orders'), { orders: [] }),
  batch('client_request_id is text', no('INVALID_FIELD', 'client_request_id'), { client_request_id: 7 }),
  batch('client_request_id is not empty', no('INVALID_FIELD', 'client_request_id'), {
    client_request_id: '',
  }),
  batch('51 orders', no('INVALID_FIELD', 'orders'), { orders: '$orders:51' }),
  batch('unknown fields are refused', no('UNKNOWN_FIELD', 'atomic'), { atomic: true }),
  cancels('client_request_id is required', no('MISSING_FIELD', 'client_request_id'), {
    client_request_id: undefined,
  }),
  cancels('orderHashes is required', no('MISSING_FIELD', 'orderHashes'), { orderHashes: undefined }),
  cancels('cancelSignature is removed', no('UNKNOWN_FIELD', 'cancelSignature'), { cancelSignature: '0x00' }),
  cancels('a reason of 200 characters', ok, { reason: REASON.longest }),
  cancels('a reason of 201 characters', no('INVALID_FIELD', 'reason'), { reason: REASON.tooLong }),
  cancels('100 hashes', ok, { orderHashes: '$hashes:100' }),
  cancels('no hashes', no('INVALID_FIELD', 'orderHashes'), { orderHashes: [] }),
  cancels('a hash is 0x and 64 hex digits', no('INVALID_FIELD', 'orderHashes.0'), { orderHashes: ['0x12'] }),
  cancels('order_hashes is not its name', no('UNKNOWN_FIELD', 'order_hashes'), { order_hashes: [] }),
  cancels('101 hashes', no('INVALID_FIELD', 'orderHashes'), { orderHashes: '$hashes:101' }),
  all('everything', ok),
  all('one market', ok, { market_id: 2 }),
  all('a reason of 200 characters', ok, { reason: REASON.longest }),
  all('a reason of 201 characters', no('INVALID_FIELD', 'reason'), { reason: REASON.tooLong }),
  all('a market that is not there', no('MARKET_NOT_FOUND', 'market_id', 404), { market_id: 999 }),
  one('without a body', ok),
  one('a reason of 200 characters', ok, { reason: REASON.longest }),
  one('a reason of 201 characters', no('INVALID_FIELD', 'reason'), { reason: REASON.tooLong }),
  one('unknown fields are refused', no('UNKNOWN_FIELD', 'why'), { why: 'x' }),
  estimate('units', ok),
  estimate('notional', ok, { sizing_intent: 'notional', size: 1000 }),
  estimate('available margin', ok, { sizing_intent: 'available_margin', size: 50 }),
  estimate('max', ok, { sizing_intent: 'max', size: undefined }),
  estimate('reduce percentage', ok, { sizing_intent: 'reduce_percentage', size: 100 }),
  estimate('another intent', no('INVALID_FIELD', 'sizing_intent'), { sizing_intent: 'all_in' }),
  estimate('size 0 for the maximum alone', ok, { size: 0 }),
  estimate('more than 100 per cent', no('INVALID_FIELD', 'size'), {
    sizing_intent: 'reduce_percentage',
    size: 101,
  }),
  estimate('a limit order needs a price', no('PRICE_REQUIRED', 'price'), { order_type: 'LIMIT', size: 0 }),
  estimate('a conditional order needs a trigger', no('TRIGGER_REQUIRED', 'trigger_price'), {
    order_type: 'STOP_MARKET',
  }),
  switched('5 seconds', ok, { timeout_seconds: 5 }),
  switched('900 seconds', ok, { timeout_seconds: 900 }),
  switched('0 disarms', ok, { timeout_seconds: 0 }),
  switched('4 seconds', no('INVALID_FIELD', 'timeout_seconds'), { timeout_seconds: 4 }),
  switched('901 seconds', no('INVALID_FIELD', 'timeout_seconds'), { timeout_seconds: 901 }),
  switched('timeout_seconds is a whole number', no('INVALID_FIELD', 'timeout_seconds'), {
    timeout_seconds: 7.5,
  }),
  switched('timeout_seconds is required', no('MISSING_FIELD', 'timeout_seconds')),
  switched('unknown fields are refused', no('UNKNOWN_FIELD', 'market_id'), {
    timeout_seconds: 0,
    market_id: 1,
  }),
  quantityOf('a budget', ok),
  quantityOf('usd_amount is required', no('MISSING_FIELD', 'usd_amount'), { usd_amount: undefined }),
  quantityOf('a budget for less than the smallest order', no('MIN_ORDER_SIZE', 'usd_amount'), {
    usd_amount: 1,
  }),
]
