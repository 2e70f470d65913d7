/** The proof of a batch, and the commitment to one order. Prices are ticks, quantities steps, and orders are named by their place. */
import Type, { type Static, type TSchema } from 'typebox'
import { bookmarkQuery, closed, maybeWords, named, nullable, PositiveInteger, words } from '../wire/schema.ts'
import { AUCTION_STATUSES } from './schema.ts'

const SIDE = words(['LONG', 'SHORT'], 'LONG buys, SHORT sells.')
const count = (description: string) => Type.Integer({ description })
const flag = (description: string) => Type.Boolean({ description })
const hash = (description: string) => Type.String({ pattern: '^0x[0-9a-f]{64}$', description })
/** An amount times 1e18, exact. */
const e18 = (description: string) =>
  Type.String({ pattern: '^-?\\d+$', description: `${description} Times 1e18, exact.` })
const list = <Item extends TSchema>(item: Item, description: string) => Type.Array(item, { description })
const place = () => count('Place of an order in `orders`, from 1.')
const group = () =>
  count('Orders with the same number belong to one account. The numbers of different batches are unrelated.')

const Market = Type.Object({
  market_id: Type.Integer(),
  symbol: Type.String(),
  kind: words(['perpetual', 'future', 'binary_future'], 'Kind of the market.'),
  trader: Type.String({ description: "Address of the market's contract." }),
  chain_id: Type.Integer(),
  tick_e18_raw: e18('Unit of prices.'),
  step_e18_raw: e18('Unit of quantities.'),
  min_price: count('Lowest price, in ticks.'),
  min_quantity: count('Smallest order, in steps.'),
  max_quantity: count('Largest order, in steps.'),
  max_leverage: Type.Integer(),
  imr_e18_raw: e18('Initial margin requirement.'),
  mmr_e18_raw: e18('Maintenance margin requirement.'),
  mtb_long_e18_raw: e18('Width of the band above the oracle price.'),
  mtb_short_e18_raw: e18('Width of the band below it.'),
  maker_fee_e18_raw: e18('Rate of makers in force.'),
  taker_fee_e18_raw: e18('Rate of takers in force.'),
  funding_cap_e18_raw: e18('Largest funding rate per hour.'),
  funding_session: flag('Whether funding accrues only in sessions.'),
  final_low_e18_raw: e18('Lowest final price.'),
  final_high_e18_raw: e18('Highest final price.'),
  expires_at: count('Listed expiry, Unix time in milliseconds; 0 for a perpetual.'),
  dispute_window: count('Dispute window in milliseconds.'),
})

const StatedOrder = Type.Object({
  group: group(),
  side: SIDE,
  type: words(['MARKET', 'LIMIT'], 'A triggered order is one of both.'),
  limit: count('Signed limit in ticks; 0 for a market order.'),
  remaining: count('Quantity less everything matched before, in steps.'),
  unused: Type.Optional(
    count('Signed steps that the order must not fill, because it replaced an order that had filled them.'),
  ),
  leverage: Type.Integer(),
  reduce_only: Type.Boolean(),
  forced: flag('Of a liquidation.'),
  triggered: flag('A conditional order that has triggered.'),
  widenings: count('Batches that left a forced order without a fill.'),
  openable: count('Steps that its reservation covers as opening.'),
  reserved_price: count('Price of its reservation, in ticks.'),
  commitment: hash('keccak256(salt ‖ order hash ‖ market ‖ batch), 32 bytes each.'),
})

const Capacity = Type.Object({
  group: group(),
  reducing_side: maybeWords(
    ['LONG', 'SHORT'],
    'Side that reduces the position of the account; null if no order of the batch does.',
  ),
  reducible: count('Steps of the position that its orders can use.'),
  bankruptcy_limit: count('Limit of its reducing side, in ticks: beyond it a close would leave bad debt.'),
  may_open: flag('Whether the position meets the requirement to open.'),
})

const Result = Type.Object({
  price: nullable(count('Clearing price in ticks.')),
  rule: nullable(Type.String({ description: 'The rule that decided it, see `GET /v0/auctions`.' })),
  lo: count('Lower end of the band, in ticks.'),
  hi: count('Upper end of the band, in ticks.'),
  volume: count('Matched steps.'),
  demand: count('Eligible steps of buys.'),
  supply: count('Eligible steps of sells.'),
  tranches: list(
    Type.Object({
      order: place(),
      reducing: count('Steps that may reduce the position.'),
      reducing_limit: nullable(count('Effective limit of these steps, in ticks; null if there are none.')),
      opening: count('Steps that may open.'),
      opening_limit: nullable(count('Effective limit of these steps, in ticks; null if there are none.')),
    }),
    'How each order took part. Orders without an entry could not trade.',
  ),
  protections: list(
    Type.Object({
      order: place(),
      best: nullable(
        count('Best standing quote in ticks; null if the quotes do not reach five orders of minimum size.'),
      ),
      level: nullable(count('First limit at which they do.')),
      reference_e18_raw: e18('Reference price.'),
      price: count('Protection price in ticks.'),
    }),
    'Of every market order.',
  ),
  fills: list(
    Type.Object({
      order: place(),
      steps: count('Filled steps.'),
      taker_steps: count('Of these at the taker rate.'),
      maker_steps: count('Of these at the maker rate.'),
      reducing: count('Of these that reduce the position.'),
      opening: count('Of these that open.'),
      fee_e18_raw: e18('Fee by the schedule.'),
      remaining: count('Steps of the order that are left.'),
    }),
    'By place.',
  ),
  pairs: list(
    Type.Object({
      buy: place(),
      sell: place(),
      steps: Type.Integer(),
      maker_order: count('The one of both that pays the maker rate.'),
      buy_fee_e18_raw: e18('Fee of the buy.'),
      sell_fee_e18_raw: e18('Fee of the sell.'),
    }),
    'In pairing order.',
  ),
  cancels: list(
    Type.Object({ order: place(), reason: Type.String({ description: 'As `status_reason` of an order.' }) }),
    'Orders that end with the batch.',
  ),
  parts: list(
    Type.Object({
      fills: list(
        Type.Object({
          order: place(),
          steps: Type.Integer(),
          taker_steps: Type.Integer(),
          fee_e18_raw: e18('Fee by the schedule.'),
        }),
        'By place.',
      ),
    }),
    'The settlement transactions, in their order.',
  ),
})

const Statement = Type.Object({
  rule_version: count('Version of the rules that cleared the batch.'),
  market: Market,
  batch_id: Type.Integer(),
  as_of: count('Time of the auction, Unix time in milliseconds.'),
  oracle: Type.Object({
    price_e18_raw: e18('Oracle price.'),
    observed_at: count('Its observation time, Unix time in milliseconds.'),
    signatures: Type.String({
      description: 'Proof of the report, as in `GET /v0/markets/:market_id/oracle`.',
    }),
  }),
  price_protection_e18_raw: e18('Width of price protection.'),
  standing: count('Orders up to this place stood in the previous auction.'),
  orders: list(
    StatedOrder,
    'By sequence: every order that could trade, and the quotes that decided protections.',
  ),
  capacities: list(Capacity, 'Accounts whose position binds their orders.'),
  result: Result,
})

export const ProofPart = named('ProofPart', {
  part: count('From 1.'),
  status: words(
    ['settling', 'settled', 'failed'],
    'settled while its transaction is mined; failed if it will not be.',
  ),
  transaction_hash: nullable(hash('Of a settled part.')),
  fills: list(
    Type.Object({
      order: place(),
      steps: Type.Integer(),
      taker_steps: Type.Integer(),
      order_hash: nullable(hash('The order, once its part is settled; null for a forced order.')),
      salt: nullable(hash('Opens its commitment.')),
    }),
    'By place.',
  ),
})
export type ProofPart = Static<typeof ProofPart>

export const BatchProof = named('BatchProof', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  batch_id: Type.Integer(),
  status: words(AUCTION_STATUSES, 'As in `GET /v0/auctions`.'),
  digest: hash('keccak256 of the JSON of `statement` with sorted names and without spaces.'),
  statement: Statement,
  parts: Type.Array(ProofPart),
})
export type BatchProof = Static<typeof BatchProof>

export const ProofParams = closed({
  market_id: PositiveInteger('Number of the market.'),
  batch_id: PositiveInteger('Number of the batch.'),
})

export const CommitmentQuery = closed({
  batch_id: PositiveInteger('Number of a batch of its market.'),
  ...bookmarkQuery,
})

export const Commitment = named('Commitment', {
  order_id: Type.String(),
  order_hash: Type.String(),
  market_id: Type.Integer(),
  batch_id: Type.Integer(),
  salt: hash('Known to the exchange and to the account of the order.'),
  commitment: hash('What the statement of the batch contains if the order could trade in it.'),
})
export type Commitment = Static<typeof Commitment>
