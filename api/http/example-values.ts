/** Values of fields in the examples of the description, by the name of the field. A field that is not listed is null if it may be. */

const ADDRESS = '0x69371f33d5e195cd17af6f551bad60e92519b782'
const CONTRACT = '0x1111111111111111111111111111111111111111'
const HASH = '0x2d9d271b30b257321d26ee9be53ee8bf0dbc064cedab57ea8327dcbdea77acb9'
const SIGNATURE =
  '0xd82ecbe51d08de4a987555b62fbbf401e37ed5882971fc81c6f5d6b9f56185c46eecbe5e3c603f54720abdf6307cb0b386b27dc7757f377acbd69ce7d7bdede31b01'
const UUID = '0f8fad5b-d9cb-469f-a165-70867728950e'

/** Example values: a market at about 40 USDM, and an order that rests in its book. */
export const EXAMPLE_VALUES: Readonly<Record<string, unknown>> = {
  // Names and ids.
  ...{ symbol: 'SOL-PERP', market_symbol: 'SOL-PERP', ticker: 'SOL-PERP', full_name: 'CLEARBATCH:SOL-PERP' },
  ...{
    user_id: 7,
    market_id: 1,
    batch_id: 1024,
    last_batch_id: 1024,
    order_id: '1-42',
    fill_id: '1-1024-1-42',
  },
  ...{ event_id: '1-42-0', shard_id: 'm1', shard_seq: '42', request_id: 11, adjustment_id: UUID },
  ...{ challenge_id: UUID, client_request_id: 'bot-7-0001', liquidation_id: '1-50', step_id: '1-50-1' },
  ...{ id: '1-42', withdrawal_id: '1-42', session_key_id: '7-0x6937', operation_id: HASH },
  // Signatures and the chain.
  ...{
    maker: ADDRESS,
    signer: ADDRESS,
    wallet: ADDRESS,
    address: ADDRESS,
    addresses: [ADDRESS],
    from: ADDRESS,
  },
  ...{ to: CONTRACT, trader: CONTRACT, verifyingContract: CONTRACT, called_by: CONTRACT },
  ...{ session_public_address: '0x2222222222222222222222222222222222222222' },
  ...{ digest: HASH, order_hash: HASH, commitment: HASH, transaction_hash: HASH, signature: SIGNATURE },
  ...{
    orderHashes: [HASH],
    chain_id: 6343,
    chainId: 6343,
    data: '0x',
    flags: '0x0000000000000021',
    salt: '2',
  },
  ...{
    block: 120_000,
    block_number: 120_000,
    gas: 200_000,
    gas_used: '200000',
    nonce: 1,
    next_forward_nonce: 1,
  },
  ...{ deadline: 1_900_000_000, new_minimum: '2', minimum_margin_nonce: '2', new_leverage_raw: '5' },
  // Prices, quantities and terms of an order.
  ...{ price: 40.2, oracle_price: 40, mark_price: 40.01, last_price: 40.2, quantity: 1.002, leverage: 3 },
  ...{
    remaining_quantity: 1.002,
    filled_quantity: 0,
    settling_quantity: 0,
    openable: 0,
    triggerCondition: 0,
  },
  ...{ bid_price: 40.1, bid_quantity: 12, ask_price: 40.3, ask_quantity: 8, open: 40, high: 40.4, low: 39.9 },
  ...{ close: 40.2, lowest: 38, highest: 42, lowest_price: 38, highest_price: 42, tick_size: 0.01 },
  ...{
    step_size: 0.001,
    min_order_size: 0.01,
    max_order_size: 10_000,
    min_order_price: 0.01,
    max_leverage: 20,
  },
  ...{
    initial_margin_requirement: 0.05,
    maintenance_margin_requirement: 0.03,
    maker_fee: 0,
    taker_fee: 0.0005,
  },
  ...{ amount: 100, usd_amount: 1000, order_type: 'LIMIT', expiration_seconds: 0, trigger_price: 0 },
  ...{ fee: 0, free: 1000, total: 1013.5, reserved: 13.5, available: 1000, reserved_margin: 13.5 },
  ...{ position_margin: 0, pending_withdrawals: 0, reduce_only: false, trigger: null, status_reason: null },
  ...{ max_margin_in_e18_raw: '50000000000000000000', min_margin_out_e18_raw: '0' },
  // Limits, times and progress.
  ...{ limit: 500, window_seconds: 5, remaining: 499, reset_seconds: 5, timeout_seconds: 60 },
  ...{ unix_ms: 1_790_000_000_000, unix_seconds: 1_790_000_000, seen_ms_ago: 120, read_model_lag: 0 },
  ...{ next_cursor: null, is_duplicate: false, forced: false, refused: 0, cancelled_count: 1 },
  // Credentials.
  ...{ api_key: 'cb_example_not_a_key', prefix: 'cb_examp', scope: 'trade', allowed_addresses: null },
  ...{ message: 'exchange.example wants you to sign in with your Ethereum account', code: 'TICK_SIZE' },
}
