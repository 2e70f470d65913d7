/** A signed order, step by step, for the description of the placement. It is one of `docs/signing-vectors.json`; a test compares both. */

const MAKER = '0x69371f33d5e195cd17af6f551bad60e92519b782'

export const SIGNED_ORDER = {
  market_id: 1,
  side: 'LONG',
  order_type: 'LIMIT',
  price: '40.2',
  quantity: '1.002',
  leverage: 3,
  expiration_seconds: 1900000002,
  salt: '2',
  signature:
    '0xd82ecbe51d08de4a987555b62fbbf401e37ed5882971fc81c6f5d6b9f56185c46eecbe5e3c603f54720abdf6307cb0b386b27dc7757f377acbd69ce7d7bdede31b01',
  signature_type: 1,
} as const

/** EIP-712 domain, struct and digest of the order. */
export const SIGNING = {
  private_key: '0xa25393b74b4c520a4c3517774985d89ba690537fe7830410d341e04b2c8f24a8',
  domain: {
    name: 'IsolatedTrader',
    version: '2.0',
    chainId: '6343',
    verifyingContract: '0x1111111111111111111111111111111111111111',
  },
  struct: {
    flags: '0x0000000000000021',
    quantity: '1002000000000000000',
    price: '40200000000000000000',
    triggerPrice: '0',
    triggerCondition: 0,
    leverage: '3000000000000000000',
    maker: MAKER,
    expiration: '1900000002',
  },
  order_hash: '0x2d9d271b30b257321d26ee9be53ee8bf0dbc064cedab57ea8327dcbdea77acb9',
} as const

const TYPE =
  'Order(bytes8 flags,uint128 quantity,uint128 price,uint128 triggerPrice,uint8 triggerCondition,uint128 leverage,address maker,uint128 expiration)'

export const SIGNING_STEPS = `
To sign an order:

1. Fill the struct \`${TYPE}\`. Amounts are times 1e18. \`flags\` is \`salt << 4 | reduce_only << 1 | buy\` as 8 bytes.
   \`triggerCondition\` is 0 without a trigger.
2. Hash it by EIP-712 in the domain of the market: \`verifyingContract\` is its \`trader_address\`. The digest is the order's hash.
3. Sign the 32 bytes of the digest as a personal message (EIP-191), and append the byte 01 to r, s and v.

The example of this operation was signed by \`${MAKER}\` with the private key \`${SIGNING.private_key}\`:

\`\`\`json
${JSON.stringify({ domain: SIGNING.domain, struct: SIGNING.struct, digest: SIGNING.order_hash, signature: SIGNED_ORDER.signature }, null, 2)}
\`\`\`

\`POST /v0/orders/validate\` returns struct and digest of an order without a signature. \`docs/signing-vectors.json\` has more vectors.
`.trimEnd()
