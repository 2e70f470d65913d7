/**
 * Expected shape of a proof: its fields and their kinds. A test compares it with the schema of the exchange.
 */

/**
 * A kind of value, a list of one shape, or an object with these fields.
 * Kinds ending in `?` may be null; kinds ending in `*` may be absent.
 */
export type Shape = string | readonly [Shape] | { readonly [field: string]: Shape }

const KINDS: Readonly<Record<string, readonly [description: string, test: (value: unknown) => boolean]>> = {
  integer: ['an integer', (value) => Number.isInteger(value)],
  text: ['a text', (value) => typeof value === 'string'],
  flag: ['true or false', (value) => typeof value === 'boolean'],
  amount: ['an integer as text', (value) => typeof value === 'string' && /^-?\d+$/.test(value)],
  hash: [
    '0x and 64 hexadecimal digits',
    (value) => typeof value === 'string' && /^0x[0-9a-f]{64}$/.test(value),
  ],
}

/** Bars separate the valid words. */
const side = 'LONG|SHORT'

const MARKET: Shape = {
  market_id: 'integer',
  symbol: 'text',
  kind: 'perpetual|future|binary_future',
  trader: 'text',
  chain_id: 'integer',
  tick_e18_raw: 'amount',
  step_e18_raw: 'amount',
  min_price: 'integer',
  min_quantity: 'integer',
  max_quantity: 'integer',
  max_leverage: 'integer',
  imr_e18_raw: 'amount',
  mmr_e18_raw: 'amount',
  mtb_long_e18_raw: 'amount',
  mtb_short_e18_raw: 'amount',
  maker_fee_e18_raw: 'amount',
  taker_fee_e18_raw: 'amount',
  funding_cap_e18_raw: 'amount',
  funding_session: 'flag',
  final_low_e18_raw: 'amount',
  final_high_e18_raw: 'amount',
  expires_at: 'integer',
  dispute_window: 'integer',
}

const ORDER: Shape = {
  group: 'integer',
  side,
  type: 'MARKET|LIMIT',
  limit: 'integer',
  remaining: 'integer',
  unused: 'integer*',
  leverage: 'integer',
  reduce_only: 'flag',
  forced: 'flag',
  triggered: 'flag',
  widenings: 'integer',
  openable: 'integer',
  reserved_price: 'integer',
  commitment: 'hash',
}

const RESULT: Shape = {
  price: 'integer?',
  rule: 'text?',
  lo: 'integer',
  hi: 'integer',
  volume: 'integer',
  demand: 'integer',
  supply: 'integer',
  tranches: [
    {
      order: 'integer',
      reducing: 'integer',
      reducing_limit: 'integer?',
      opening: 'integer',
      opening_limit: 'integer?',
    },
  ],
  protections: [
    { order: 'integer', best: 'integer?', level: 'integer?', reference_e18_raw: 'amount', price: 'integer' },
  ],
  fills: [
    {
      order: 'integer',
      steps: 'integer',
      taker_steps: 'integer',
      maker_steps: 'integer',
      reducing: 'integer',
      opening: 'integer',
      fee_e18_raw: 'amount',
      remaining: 'integer',
    },
  ],
  pairs: [
    {
      buy: 'integer',
      sell: 'integer',
      steps: 'integer',
      maker_order: 'integer',
      buy_fee_e18_raw: 'amount',
      sell_fee_e18_raw: 'amount',
    },
  ],
  cancels: [{ order: 'integer', reason: 'text' }],
  parts: [{ fills: [{ order: 'integer', steps: 'integer', taker_steps: 'integer', fee_e18_raw: 'amount' }] }],
}

export const PROOF: Shape = {
  market_id: 'integer',
  symbol: 'text',
  batch_id: 'integer',
  status: 'SETTLING|SETTLED|VOIDED',
  digest: 'hash',
  statement: {
    rule_version: 'integer',
    market: MARKET,
    batch_id: 'integer',
    as_of: 'integer',
    oracle: { price_e18_raw: 'amount', observed_at: 'integer', signatures: 'text' },
    price_protection_e18_raw: 'amount',
    standing: 'integer',
    orders: [ORDER],
    capacities: [
      {
        group: 'integer',
        reducing_side: `${side}?`,
        reducible: 'integer',
        bankruptcy_limit: 'integer',
        may_open: 'flag',
      },
    ],
    result: RESULT,
  },
  parts: [
    {
      part: 'integer',
      status: 'settling|settled|failed',
      transaction_hash: 'hash?',
      fills: [
        {
          order: 'integer',
          steps: 'integer',
          taker_steps: 'integer',
          order_hash: 'hash?',
          salt: 'hash?',
        },
      ],
    },
  ],
}

/** The first mismatch between value and shape; null if there is none. Additional fields are allowed. */
export function misshapen(value: unknown, shape: Shape = PROOF, path = ''): string | null {
  if (typeof shape === 'string') return kindProblem(value, shape, path)
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return `${path || 'it'} must be a list`
    return firstOf(value.map((item, at) => () => misshapen(item, shape[0], `${path}/${at}`)))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return `${path || 'it'} must be an object`
  const fields = value as Readonly<Record<string, unknown>>
  return firstOf(
    Object.entries(shape).map(
      ([name, inner]) =>
        () =>
          misshapen(fields[name], inner, `${path}/${name}`),
    ),
  )
}

function firstOf(checks: readonly (() => string | null)[]): string | null {
  for (const check of checks) {
    const problem = check()
    if (problem !== null) return problem
  }
  return null
}

function kindProblem(value: unknown, shape: string, path: string): string | null {
  if (shape.endsWith('?') && value === null) return null
  if (shape.endsWith('*') && value === undefined) return null
  const name = shape.replace(/[?*]$/, '')
  const [description, test] = KINDS[name] ?? [
    `one of ${name.replaceAll('|', ', ')}`,
    (word: unknown) => name.split('|').includes(word as string),
  ]
  return test(value) ? null : `${path} must be ${description}; received ${JSON.stringify(value)}`
}
