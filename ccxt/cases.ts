/** The calls whose requests and responses are fixtures. */

export interface StaticCase {
  readonly method: string
  readonly description: string
  readonly input: readonly unknown[]
  /** Answers to requests that the method sends before the recorded one. */
  readonly answers?: readonly unknown[]
}

/** The key of `docs/signing-vectors.json`; no account has it. */
export const STATIC_CREDENTIALS = {
  apiKey: 'cb_static',
  walletAddress: '0x69371f33d5e195cd17af6f551bad60e92519b782',
  privateKey: '0xa25393b74b4c520a4c3517774985d89ba690537fe7830410d341e04b2c8f24a8',
  options: { userId: '7' },
} as const

const BTC = 'BTC/USDM:USDM'
const SINCE = 1795560000000
const call = (method: string, description: string, ...input: unknown[]): StaticCase => ({
  method,
  description,
  input,
})

/** A salt of its own makes the signature the same at every run. */
const SALT = { salt: 1838589123456789 }

/** An answer of the exchange about a position. */
const OPEN_LONG = {
  user_id: 7,
  market_id: 1,
  symbol: 'BTC-PERP',
  side: 'LONG',
  leverage: 5,
  adl_rank: 1,
  size: 0.25,
  size_e18_raw: '250000000000000000',
  pending_size: 0,
  pending_size_e18_raw: '0',
  entry_price: 60000,
  entry_price_e18_raw: '60000000000000000000000',
  entry_notional: 15000,
  entry_notional_e18_raw: '15000000000000000000000',
  margin: 3000,
  margin_e18_raw: '3000000000000000000000',
  mark_price: 61000,
  mark_price_e18_raw: '61000000000000000000000',
  oracle_price: 61000,
  oracle_price_e18_raw: '61000000000000000000000',
  unrealized_pnl: 250,
  unrealized_pnl_e18_raw: '250000000000000000000',
  notional: 15250,
  notional_e18_raw: '15250000000000000000000',
  margin_ratio: 0.2131,
  margin_ratio_e18_raw: '213100000000000000',
  liquidation_price: 49500,
  liquidation_price_e18_raw: '49500000000000000000000',
  bankruptcy_price: 48000,
  bankruptcy_price_e18_raw: '48000000000000000000000',
  realized_pnl: 0,
  realized_pnl_e18_raw: '0',
  fees: 0,
  fees_e18_raw: '0',
  updated_at: '2026-11-24T10:00:00.000Z',
}

export const REQUESTS: readonly StaticCase[] = [
  call('fetchTime', 'time'),
  call('fetchStatus', 'status'),
  call('fetchMarkets', 'all markets'),
  call('fetchTickers', 'all tickers'),
  call('fetchOrderBook', 'with a limit', BTC, 5),
  call('fetchTrades', 'since and until', BTC, SINCE, 10, { until: SINCE + 60_000 }),
  call('fetchOHLCV', 'the first candles from since on', BTC, '5m', SINCE, 3),
  call('fetchOHLCV', 'mark prices', BTC, '1h', undefined, 3, { price: 'mark' }),
  call('fetchFundingRate', 'one market', BTC),
  call('fetchFundingRateHistory', 'with a limit', BTC, undefined, 2),
  call('fetchOpenInterestHistory', 'with a limit', BTC, '1h', undefined, 2),
  call('fetchBalance', 'balance'),
  call('fetchPositions', 'all positions'),
  call('fetchOrder', 'by id', '1-12', BTC),
  call('fetchOrder', 'by label', '', BTC, { clientOrderId: 'mine' }),
  call('fetchOrders', 'one market', BTC, SINCE, 20),
  call('fetchClosedOrders', 'filled orders', BTC),
  call('fetchMyTrades', 'with a limit', BTC, undefined, 5),
  call('fetchOrderTrades', 'fills of an order', '1-12'),
  call('fetchFundingHistory', 'one market', BTC, undefined, 5),
  call('createOrder', 'a buy rounds down', BTC, 'limit', 'buy', 0.0125, 62000.19, SALT),
  call('createOrder', 'a sell rounds up', BTC, 'limit', 'sell', 0.01, 62000.11, SALT),
  call('createOrder', 'a price on the grid stays', BTC, 'limit', 'sell', 0.01, 62000.1, SALT),
  call('createOrder', 'all terms', BTC, 'limit', 'buy', 1, 60000, {
    ...SALT,
    leverage: 5,
    reduceOnly: true,
    clientOrderId: 'mine',
    expirationSeconds: 1900000000,
  }),
  call('createOrder', 'stop', BTC, 'limit', 'buy', 1, 63000, { ...SALT, triggerPrice: 62500 }),
  call('createOrder', 'stop loss of a long', BTC, 'market', 'sell', 1, undefined, {
    ...SALT,
    stopLossPrice: 60000,
  }),
  call('createOrder', 'take profit of a short', BTC, 'market', 'buy', 1, undefined, {
    ...SALT,
    takeProfitPrice: 60000,
  }),
  call('createOrder', 'post-only', BTC, 'limit', 'buy', 1, 60000, { ...SALT, postOnly: true }),
  call('createOrder', 'immediate or cancel', BTC, 'limit', 'buy', 1, 60000, { ...SALT, timeInForce: 'IOC' }),
  call('editOrder', 'by hash', `0x${'ab'.repeat(32)}`, BTC, 'limit', 'buy', 1, 60000.1, SALT),
  call('editOrder', 'by label, reduced', '', BTC, 'limit', 'buy', 1, 60000.1, {
    ...SALT,
    oldClientOrderId: 'mine',
    ifFilled: 'reduce',
  }),
  call('createOrders', 'a batch', [
    { symbol: BTC, type: 'limit', side: 'buy', amount: 1, price: 60000, params: SALT },
  ]),
  {
    // The latest expiration of a market order follows the clock; an earlier one stays.
    ...call('closePosition', 'a long, whole', BTC, undefined, { ...SALT, expirationSeconds: 1700000000 }),
    answers: [{ positions: [OPEN_LONG] }],
  },
  call('cancelOrder', 'by hash', `0x${'ab'.repeat(32)}`),
  call('cancelOrder', 'by label', '', BTC, { clientOrderId: 'mine' }),
  call('cancelOrders', 'two hashes', [`0x${'ab'.repeat(32)}`, `0x${'cd'.repeat(32)}`]),
  call('cancelAllOrders', 'one market', BTC),
  call('cancelAllOrdersAfter', 'in milliseconds', 30_000),
]

export const RESPONSES: readonly StaticCase[] = [
  call('fetchTime', 'time'),
  call('fetchStatus', 'status'),
  call('fetchTickers', 'all tickers'),
  call('fetchOrderBook', 'two levels', BTC, 2),
  call('fetchTrades', 'public fills', BTC, undefined, 2),
  call('fetchOHLCV', 'candles', BTC, '1m', undefined, 2),
  call('fetchFundingRate', 'one market', BTC),
  call('fetchFundingRateHistory', 'one market', BTC, undefined, 2),
  call('fetchOpenInterest', 'one market', BTC),
  call('fetchBalance', 'balance'),
  call('fetchPositions', 'positions'),
  call('fetchOrders', 'orders', BTC, undefined, 5),
  call('fetchMyTrades', 'own fills', BTC, undefined, 2),
  call('fetchFundingHistory', 'funding payments', BTC, undefined, 2),
]
