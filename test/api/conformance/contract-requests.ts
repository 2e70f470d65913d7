/** The contract with traders as tables: valid and invalid values of each request field. */

export interface Expected {
  readonly status: number
  readonly code?: string
  readonly field?: string
}

const ok: Expected = { status: 200 }
const no = (code: string, field: string, status = 400): Expected => ({ status, code, field })

/** Terms of a placement in human units; prices and triggers in permille of the oracle price, rounded to a tick. */
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
  /** The signed terms. */
  readonly terms?: Terms
  /** Overrides fields of the body after signing; undefined removes a field. */
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
  row(`no ${field}`, no('MISSING_FIELD', field), {}, { [field]: undefined })
const forbidden = (field: string): PlacementRow =>
  row(`${field}, a field of another endpoint`, no('UNKNOWN_FIELD', field), {}, { [field]: 1 })
const STEP = '0.001'

/** POST /v0/orders, field by field. Without terms: a limit buy of 0.01 at 970 permille of the oracle price. */
export const PLACEMENTS: readonly PlacementRow[] = [
  missing('market_id'),
  row('a market_id that is not an integer', no('INVALID_FIELD', 'market_id'), {}, { market_id: 'one' }),
  row('market_id 0', no('INVALID_FIELD', 'market_id'), {}, { market_id: 0 }),
  row('the market_id of no market', no('MARKET_NOT_FOUND', 'market_id', 404), {}, { market_id: 999 }),
  missing('side'),
  row('side LONG', ok, { side: 'LONG' }),
  row('side SHORT', ok, { side: 'SHORT', price: 1030 }),
  row('a side other than LONG and SHORT', no('INVALID_FIELD', 'side'), {}, { side: 'BUY' }),
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
  row('an unknown order_type', no('ORDER_TYPE_UNKNOWN', 'order_type'), {}, { order_type: 'ICEBERG' }),
  row('no price on a limit order', no('PRICE_REQUIRED', 'price'), {}, { price: undefined }),
  row('price 0 on a market order', ok, { order_type: 'MARKET' }, { price: 0 }),
  row(
    'a price above 0 on a market order',
    no('PRICE_NOT_ALLOWED', 'price'),
    { order_type: 'MARKET' },
    { price: 100 },
  ),
  row('a price off the tick size', no('TICK_SIZE', 'price'), {}, { price: 60000.05 }),
  row('a price as a decimal string', ok),
  row('a price with 19 decimals', no('INVALID_FIELD', 'price'), {}, { price: '1.0000000000000000001' }),
  row('a price in exponent notation as text', no('INVALID_FIELD', 'price'), {}, { price: '1e5' }),
  row('a price above the maximum of the market', no('MAX_ORDER_PRICE', 'price'), {}, { price: 1e30 }),
  row('a price that is null', no('INVALID_FIELD', 'price'), {}, { price: null }),
  row('a negative price', no('INVALID_FIELD', 'price'), {}, { price: -1 }),
  row('a price beyond the band on the aggressive side', no('PRICE_BAND', 'price'), { price: 1060 }),
  row('a price beyond the band on the passive side', ok, { price: 900 }),
  row(
    'a limit price at which the order would open below its margin requirement',
    no('MARGIN_REQUIREMENT', 'price'),
    {
      ...{ price: 1040, leverage: 20 },
    },
  ),
  row('a conditional limit price that will be checked when the order triggers', ok, {
    ...{ order_type: 'STOP_LIMIT', trigger: 1100, price: 1150, leverage: 20 },
  }),
  row('a price below the minimum', no('MIN_ORDER_PRICE', 'price'), {}, { price: '0.01' }),
  row(
    'neither quantity nor quantity_e18_raw',
    no('QUANTITY_REQUIRED', 'quantity'),
    {},
    { quantity: undefined },
  ),
  row('quantity_e18_raw alone', ok, {}, { quantity: undefined, quantity_e18_raw: '10000000000000000' }),
  row('two quantities that match', ok, {}, { quantity_e18_raw: '10000000000000000' }),
  row(
    'two quantities that differ',
    no('QUANTITY_MISMATCH', 'quantity_e18_raw'),
    {},
    {
      quantity_e18_raw: '10000000000000001',
    },
  ),
  row(
    'a quantity_e18_raw with a sign',
    no('INVALID_FIELD', 'quantity_e18_raw'),
    {},
    { quantity_e18_raw: '-1' },
  ),
  row('a quantity off the step size', no('STEP_SIZE', 'quantity'), {}, { quantity: 0.0015 }),
  row('quantity at the minimum', ok, { quantity: STEP }),
  row('quantity 0', no('QUANTITY_REQUIRED', 'quantity'), {}, { quantity: 0 }),
  row('quantity above the maximum', no('MAX_ORDER_SIZE', 'quantity'), {}, { quantity: '1000.001' }),
  row('no leverage', ok, {}, { leverage: undefined }),
  row('leverage at the cap', ok, { leverage: 20 }),
  row('leverage above the cap', no('LEVERAGE_CAP', 'leverage'), { leverage: 21 }),
  row('leverage 0', no('LEVERAGE_CAP', 'leverage'), {}, { leverage: 0 }),
  row('a fractional leverage', no('LEVERAGE_CAP', 'leverage'), {}, { leverage: 1.5 }),
  row('expiration_seconds 0', ok, { expiration: 0 }),
  row('expiration_seconds in the future', ok, { expiration: 'soon' }),
  row('expiration_seconds in the past', no('ORDER_EXPIRED', 'expiration_seconds'), { expiration: 'past' }),
  row('expiration_seconds in milliseconds', no('EXPIRATION_RANGE', 'expiration_seconds'), {
    expiration: 1_790_000_000_000,
  }),
  row(
    'no trigger_price on a conditional type',
    no('TRIGGER_REQUIRED', 'trigger_price'),
    {
      ...{ order_type: 'STOP_MARKET', trigger: 1100 },
    },
    { trigger_price: undefined },
  ),
  row(
    'a trigger_price on a plain type',
    no('TRIGGER_NOT_ALLOWED', 'trigger_price'),
    {},
    { trigger_price: 100 },
  ),
  row(
    'a trigger_price off the tick size',
    no('TICK_SIZE', 'trigger_price'),
    {
      ...{ order_type: 'STOP_MARKET', trigger: 1100 },
    },
    { trigger_price: 60000.05 },
  ),
  row('reduce_only without a position', no('REDUCE_ONLY_NO_POSITION', 'reduce_only'), { reduce_only: true }),
  row('a reduce_only that is not a boolean', no('INVALID_FIELD', 'reduce_only'), {}, { reduce_only: 'yes' }),
  row('a take-profit type without reduce_only', no('REDUCE_ONLY_REQUIRED', 'reduce_only'), {
    ...{ order_type: 'TAKE_PROFIT_MARKET', trigger: 900 },
  }),
  row('a stop-loss type without reduce_only', no('REDUCE_ONLY_REQUIRED', 'reduce_only'), {
    ...{ order_type: 'STOP_LOSS_MARKET', trigger: 1100 },
  }),
  row('time_in_force gtc', ok, {}, { time_in_force: 'gtc' }),
  row('time_in_force ioc', ok, {}, { time_in_force: 'ioc' }),
  row('time_in_force fok', no('FOK_NOT_SUPPORTED', 'time_in_force'), {}, { time_in_force: 'fok' }),
  row('an unknown time_in_force', no('INVALID_FIELD', 'time_in_force'), {}, { time_in_force: 'day' }),
  row(
    'time_in_force ioc on a market order',
    no('TIME_IN_FORCE_NOT_ALLOWED', 'time_in_force'),
    { order_type: 'MARKET' },
    { time_in_force: 'ioc' },
  ),
  row('post_only far from the other side', ok, { price: 950 }, { post_only: true }),
  row('post_only that is not a boolean', no('INVALID_FIELD', 'post_only'), {}, { post_only: 1 }),
  row(
    'post_only on a market order',
    no('POST_ONLY_NOT_ALLOWED', 'post_only'),
    { order_type: 'MARKET' },
    { post_only: true },
  ),
  row(
    'post_only with time_in_force ioc',
    no('POST_ONLY_IOC', 'post_only'),
    {},
    { post_only: true, time_in_force: 'ioc' },
  ),
  row('a bracket_id', ok, {}, { bracket_id: 4_294_967_295 }),
  row('bracket_id 0', no('INVALID_FIELD', 'bracket_id'), {}, { bracket_id: 0 }),
  row('a bracket_id that is a string', no('INVALID_FIELD', 'bracket_id'), {}, { bracket_id: '7' }),
  row('a bracket_id above 2^32 - 1', no('INVALID_FIELD', 'bracket_id'), {}, { bracket_id: 4_294_967_296 }),
  row('a builder label', ok, {}, { builder: 'a-terminal-2' }),
  row('a builder of 33 characters', no('INVALID_FIELD', 'builder'), {}, { builder: 'b'.repeat(33) }),
  row('a builder with a capital letter', no('INVALID_FIELD', 'builder'), {}, { builder: 'Terminal' }),
  row('an empty builder', no('INVALID_FIELD', 'builder'), {}, { builder: '' }),
  row('a builder that is not a string', no('INVALID_FIELD', 'builder'), {}, { builder: 7 }),
  missing('salt'),
  row('a salt that is a number', no('INVALID_FIELD', 'salt'), {}, { salt: 5 }),
  row('a salt just below 2^53', ok, { salt: 2n ** 53n - 1n }),
  row('a negative salt', no('INVALID_FIELD', 'salt'), {}, { salt: '-1' }),
  row('a salt of 2^53', no('SALT_RANGE', 'salt'), { salt: 2n ** 53n }),
  missing('signature'),
  row('signature_type 1', ok, {}, { signature_type: 1 }),
  row('signature_type 2', no('SIGNATURE_TYPE', 'signature_type'), {}, { signature_type: 2 }),
  forbidden('usd_amount'),
  forbidden('sizing_intent'),
  forbidden('sizing_value'),
  forbidden('margin_fraction'),
  row('a margin above the available balance', no('INSUFFICIENT_MARGIN', 'quantity'), { quantity: '900' }),
]

// ------------------------------------------------------------------ commands over several orders

export interface CommandRow {
  readonly id: string
  readonly path: string
  /** `$orders:2`, `$hashes:3` and `$id` are replaced by values when the row is tested; other values are sent unchanged. */
  readonly body: Readonly<Record<string, unknown>>
  readonly expected: Expected
}

const batch = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `a batch of placements has ${id}`, path: '/v0/orders/place/batch', expected },
  body: { client_request_id: '$id', mode: 'best_effort', orders: '$orders:2', ...body },
})
const cancels = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `a batch of cancels has ${id}`, path: '/v0/orders/cancel/batch', expected },
  body: { client_request_id: '$id', orderHashes: '$hashes:2', ...body },
})
const all = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `a cancel of all orders has ${id}`, path: '/v0/orders/cancel/all', expected, body },
})
const one = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `a cancel by hash has ${id}`, path: '/v0/orders/cancel/by-hash/$hash', expected, body },
})
const switched = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `a dead-man switch has ${id}`, path: '/v0/orders/cancel/all-after', expected, body },
})
const estimate = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `an estimate has ${id}`, path: '/v0/orders/estimate', expected },
  body: { market_id: 1, side: 'LONG', order_type: 'MARKET', sizing_intent: 'units', size: 0.01, ...body },
})
const quantityOf = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  ...{ id: `a quantity calculation has ${id}`, path: '/v0/orders/calculate-quantity', expected },
  body: { market_id: 1, side: 'LONG', usd_amount: 1000, ...body },
})
const HASH = `0x${'12'.repeat(32)}`
const replaced = (id: string, expected: Expected, body: CommandRow['body'] = {}): CommandRow => ({
  id: `a batch of replacements has ${id}`,
  path: '/v0/orders/replace/batch',
  expected,
  body: {
    client_request_id: '$id',
    mode: 'best_effort',
    orders: [{ cancel: { order_hash: HASH }, order: {} }],
    ...body,
  },
})
const replace = (id: string, expected: Expected, body: CommandRow['body']): CommandRow => ({
  id: `a replacement has ${id}`,
  path: '/v0/orders/replace',
  expected,
  body,
})
const close = (id: string, expected: Expected, body: CommandRow['body']): CommandRow => ({
  id: `a close has ${id}`,
  path: '/v0/positions/close',
  expected,
  body: { market_id: 1, side: 'SHORT', quantity: 1, salt: '5', signature: '0x', ...body },
})
const REASON = { longest: 'r'.repeat(200), tooLong: 'r'.repeat(201) }

export const COMMANDS: readonly CommandRow[] = [
  batch('no client_request_id', no('MISSING_FIELD', 'client_request_id'), {
    client_request_id: undefined,
  }),
  batch('no orders field', no('MISSING_FIELD', 'orders'), { orders: undefined }),
  batch('no mode', no('MISSING_FIELD', 'mode'), { mode: undefined }),
  batch('mode atomic', ok, { mode: 'atomic' }),
  batch('mode best_effort', ok, { mode: 'best_effort' }),
  batch('an unknown mode', no('INVALID_FIELD', 'mode'), { mode: 'most' }),
  batch('50 orders', ok, { orders: '$orders:50' }),
  batch('an empty list of orders', no('INVALID_FIELD', 'orders'), { orders: [] }),
  batch('a client_request_id that is a number', no('INVALID_FIELD', 'client_request_id'), {
    client_request_id: 7,
  }),
  batch('an empty client_request_id', no('INVALID_FIELD', 'client_request_id'), {
    client_request_id: '',
  }),
  batch('51 orders', no('INVALID_FIELD', 'orders'), { orders: '$orders:51' }),
  batch('an unknown field', no('UNKNOWN_FIELD', 'atomic'), { atomic: true }),
  replaced('no client_request_id', no('MISSING_FIELD', 'client_request_id'), {
    client_request_id: undefined,
  }),
  replaced('no mode', no('MISSING_FIELD', 'mode'), { mode: undefined }),
  replaced('an empty list of orders', no('INVALID_FIELD', 'orders'), { orders: [] }),
  replaced('items that are refused alone', ok),
  replaced('an unknown field', no('UNKNOWN_FIELD', 'replacements'), { replacements: [] }),
  close('a price', no('UNKNOWN_FIELD', 'price'), { price: 1000 }),
  close('time_in_force', no('UNKNOWN_FIELD', 'time_in_force'), { time_in_force: 'ioc' }),
  close('a limit order', no('CLOSE_NOT_MARKET', 'order_type'), { order_type: 'LIMIT' }),
  close('reduce_only false', no('CLOSE_NOT_REDUCE_ONLY', 'reduce_only'), { reduce_only: false }),
  close('no salt', no('MISSING_FIELD', 'salt'), { salt: undefined }),
  close('a signature of another form', no('SIGNATURE_FORMAT', 'signature'), {}),
  replace('no order', no('MISSING_FIELD', 'order'), { cancel: { order_hash: HASH } }),
  replace('no cancel', no('MISSING_FIELD', 'cancel'), { order: '$order' }),
  replace('an order_hash of no order', no('ORDER_NOT_FOUND', 'order_hash', 404), {
    cancel: { order_hash: HASH },
    order: '$order',
  }),
  replace('a client_order_id of no live order', no('ORDER_NOT_FOUND', 'client_order_id', 404), {
    cancel: { client_order_id: 'absent' },
    order: '$order',
  }),
  replace('neither order_hash nor client_order_id', no('REPLACE_TARGET_REQUIRED', 'cancel'), {
    cancel: {},
    order: '$order',
  }),
  replace('an unknown if_filled', no('INVALID_FIELD', 'if_filled'), {
    cancel: { order_hash: HASH },
    order: '$order',
    if_filled: 'keep',
  }),
  cancels('no client_request_id', no('MISSING_FIELD', 'client_request_id'), {
    client_request_id: undefined,
  }),
  cancels('no orderHashes', no('MISSING_FIELD', 'orderHashes'), { orderHashes: undefined }),
  cancels('the removed cancelSignature', no('UNKNOWN_FIELD', 'cancelSignature'), { cancelSignature: '0x00' }),
  cancels('a reason of 200 characters', ok, { reason: REASON.longest }),
  cancels('a reason of 201 characters', no('INVALID_FIELD', 'reason'), { reason: REASON.tooLong }),
  cancels('100 hashes', ok, { orderHashes: '$hashes:100' }),
  cancels('an empty list of hashes', no('INVALID_FIELD', 'orderHashes'), { orderHashes: [] }),
  cancels('a malformed hash', no('INVALID_FIELD', 'orderHashes.0'), { orderHashes: ['0x12'] }),
  cancels('order_hashes instead of orderHashes', no('UNKNOWN_FIELD', 'order_hashes'), { order_hashes: [] }),
  cancels('101 hashes', no('INVALID_FIELD', 'orderHashes'), { orderHashes: '$hashes:101' }),
  all('no market', ok),
  all('one market', ok, { market_id: 2 }),
  all('a reason of 200 characters', ok, { reason: REASON.longest }),
  all('a reason of 201 characters', no('INVALID_FIELD', 'reason'), { reason: REASON.tooLong }),
  all('an unknown market', no('MARKET_NOT_FOUND', 'market_id', 404), { market_id: 999 }),
  one('no body', ok),
  one('a reason of 200 characters', ok, { reason: REASON.longest }),
  one('a reason of 201 characters', no('INVALID_FIELD', 'reason'), { reason: REASON.tooLong }),
  one('an unknown field', no('UNKNOWN_FIELD', 'why'), { why: 'x' }),
  estimate('units', ok),
  estimate('notional', ok, { sizing_intent: 'notional', size: 1000 }),
  estimate('available margin', ok, { sizing_intent: 'available_margin', size: 50 }),
  estimate('max', ok, { sizing_intent: 'max', size: undefined }),
  estimate('reduce percentage', ok, { sizing_intent: 'reduce_percentage', size: 100 }),
  estimate('an unknown intent', no('INVALID_FIELD', 'sizing_intent'), { sizing_intent: 'all_in' }),
  estimate('size 0', ok, { size: 0 }),
  estimate('more than 100 percent', no('INVALID_FIELD', 'size'), {
    sizing_intent: 'reduce_percentage',
    size: 101,
  }),
  estimate('no price on a limit order', no('PRICE_REQUIRED', 'price'), { order_type: 'LIMIT', size: 0 }),
  estimate('no trigger on a conditional order', no('TRIGGER_REQUIRED', 'trigger_price'), {
    order_type: 'STOP_MARKET',
  }),
  switched('5 seconds', ok, { timeout_seconds: 5 }),
  switched('900 seconds', ok, { timeout_seconds: 900 }),
  switched('0 seconds', ok, { timeout_seconds: 0 }),
  switched('4 seconds', no('INVALID_FIELD', 'timeout_seconds'), { timeout_seconds: 4 }),
  switched('901 seconds', no('INVALID_FIELD', 'timeout_seconds'), { timeout_seconds: 901 }),
  switched('a fractional timeout_seconds', no('INVALID_FIELD', 'timeout_seconds'), {
    timeout_seconds: 7.5,
  }),
  switched('no timeout_seconds', no('MISSING_FIELD', 'timeout_seconds')),
  switched('an unknown field', no('UNKNOWN_FIELD', 'market_id'), {
    timeout_seconds: 0,
    market_id: 1,
  }),
  quantityOf('a budget', ok),
  quantityOf('no usd_amount', no('MISSING_FIELD', 'usd_amount'), { usd_amount: undefined }),
  quantityOf('a budget below the smallest order', no('MIN_ORDER_SIZE', 'usd_amount'), {
    usd_amount: 1,
  }),
]
