/** Fills as their owner and as the public see them, and the settlement stage of each fill. */
import Type, { type Static } from 'typebox'
import { ORDER_STATUSES } from '../orders/schema.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  maybeAmountOf,
  NextCursor,
  named,
  nullable,
  PositiveInteger,
  pageQuery,
  rangeQuery,
  Side,
  Time,
  words,
} from '../wire/schema.ts'

export const FILL_STATUSES = ['MATCHED', 'SUBMITTED', 'MINED', 'CONFIRMED', 'RETRYING', 'FAILED'] as const

const STAGES =
  'Usually MATCHED, SUBMITTED, MINED, CONFIRMED in this order; RETRYING and FAILED if settlement meets an error.'
const Hash = Type.String({ description: 'Hash of the transaction that settles the fill.' })

const Forced = Type.Boolean({ description: 'Whether the order belongs to a liquidation.' })

export const Fill = named('Fill', {
  fill_id: Type.String(),
  order_id: Type.String(),
  user_id: Type.Integer(),
  market_id: Type.Integer(),
  symbol: Type.String(),
  batch_id: Type.Integer({ description: 'The auction that matched the fill.' }),
  part: Type.Integer({ description: 'The part of the batch; each part is one transaction.' }),
  action_id: nullable(Type.Integer({ description: 'Number of the action in the market contract.' })),
  side: Side,
  forced: Forced,
  status: words(FILL_STATUSES, STAGES),
  ...amountOf('price', 'Clearing price of the batch.'),
  ...amountOf('quantity', 'Filled quantity.'),
  ...amountOf('taker_quantity', 'Share of the quantity that was matched as taker.'),
  ...maybeAmountOf('protection_price', 'Protection price of the order in this batch; null for limit orders.'),
  ...amountOf('fee', 'Fee charged to this side; 0 until the fill is mined.'),
  ...maybeAmountOf('realized_pnl', 'Profit or loss that the fill realized; null until the fill is mined.'),
  ...maybeAmountOf(
    'available_margin_delta',
    'Change of the free balance: margin, profit and fee; null until the fill is mined.',
  ),
  tx_hash: nullable(Type.String()),
  block_number: nullable(Type.Integer()),
  created_at: Time('Time of the match.'),
  updated_at: Time('Time of the last status change.'),
  builder: nullable(Type.String({ description: 'The `builder` of its order; null if it has none.' })),
})
export type Fill = Static<typeof Fill>

export const FillsQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only fills of this market.')),
  side: Type.Optional(Side),
  ...rangeQuery('fills of auctions'),
  ...pageQuery,
  ...bookmarkQuery,
})
export const OrderFillsQuery = closed({ ...rangeQuery('fills of auctions'), ...pageQuery, ...bookmarkQuery })
export const FillProcessingQuery = closed({ ...pageQuery, ...bookmarkQuery })
export const Fills = named('Fills', { fills: Type.Array(Fill), next_cursor: NextCursor })

export const FillStage = named('FillStage', {
  fill_id: Type.String(),
  stage: words(FILL_STATUSES, STAGES),
  batch_id: Type.Integer({ description: 'The auction that matched the fill.' }),
  part: Type.Integer({ description: 'The part of the batch; each part is one transaction.' }),
  action_id: nullable(Type.Integer({ description: 'Number of the action in the market contract.' })),
  tx_hash: nullable(Hash),
  block_number: nullable(Type.Integer()),
  ...amountOf('price', 'Clearing price of the batch.'),
  ...amountOf('quantity', 'Filled quantity.'),
  failure: nullable(Type.String({ description: 'Why the fill will not settle.' })),
  matched_at: Time('Time at which the batch cleared.'),
  submitted_at: nullable(Time('Time at which the transaction was sent.')),
  mined_at: nullable(Time('Time at which the transaction was mined.')),
  confirmed_at: nullable(Time('Time at which the block reached the configured confirmations.')),
  failed_at: nullable(Time('Time at which the match was voided.')),
  updated_at: Time('Time of the last stage change.'),
})
export type FillStage = Static<typeof FillStage>

export const FillProcessing = named('FillProcessing', {
  order_id: Type.String(),
  order_hash: Type.String(),
  market_id: Type.Integer(),
  symbol: Type.String(),
  status: words(ORDER_STATUSES, 'Status of the order.'),
  settlement_pending: Type.Boolean({
    description: 'Whether a fill is matched and not yet mined: MATCHED, SUBMITTED or RETRYING.',
  }),
  confirmation_pending: Type.Boolean({
    description: 'Whether a fill is not yet mined, or mined in a block without the configured confirmations.',
  }),
  ...amountOf('quantity', 'Quantity as signed.'),
  ...amountOf('filled_quantity', 'Quantity settled on the chain.'),
  ...amountOf('settling_quantity', 'Quantity matched in a batch that is settling.'),
  stages: Type.Object(
    Object.fromEntries(FILL_STATUSES.map((stage) => [stage, Type.Integer()])) as Record<
      (typeof FILL_STATUSES)[number],
      ReturnType<typeof Type.Integer>
    >,
    { description: 'Number of fills of the order at each stage, over all pages.' },
  ),
  fills: Type.Array(FillStage, { description: 'Newest first.' }),
  next_cursor: NextCursor,
})
export type FillProcessing = Static<typeof FillProcessing>

/** Fields that differ between the fills of a part. */
const own = {
  fill_id: Type.String({
    description: '`<market>-<batch>-<part>-<place>`; differs from the `fill_id` that the owner sees.',
  }),
  side: Side,
  forced: Forced,
  ...amountOf('quantity', 'Filled quantity.'),
  ...amountOf('taker_quantity', 'Share of the quantity that was matched as taker.'),
}

/** Fields that all fills of a part share, because a part is one transaction. */
const common = {
  batch_id: Type.Integer({ description: 'The auction that matched the fill.' }),
  part: Type.Integer({ description: 'The part of the batch; each part is one transaction.' }),
  status: words(FILL_STATUSES, STAGES),
  ...amountOf('price', 'Clearing price of the batch.'),
  tx_hash: nullable(Hash),
  block_number: nullable(Type.Integer()),
  created_at: Time('Time of the match.'),
  updated_at: Time('Time of the last status change.'),
}

export const PublicFill = named('PublicFill', {
  ...{ market_id: Type.Integer(), symbol: Type.String() },
  ...own,
  ...common,
})
export type PublicFill = Static<typeof PublicFill>

/** Public fills of a part; shared fields are stated once. */
export const PublicPart = named('PublicPart', {
  ...common,
  fills: Type.Optional(
    Type.Array(Type.Object(own), {
      description:
        'The fills that have these values. Absent: all fills of the part that were received before.',
    }),
  ),
})
export type PublicPart = Static<typeof PublicPart>

export const PublicFills = named('PublicFills', { fills: Type.Array(PublicFill), next_cursor: NextCursor })
export const PublicFillsQuery = closed({
  side: Type.Optional(Side),
  ...rangeQuery('fills of auctions'),
  ...pageQuery,
  ...bookmarkQuery,
})
