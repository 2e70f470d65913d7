/** The way of fills to the chain, and fills as everybody sees them. */
import Type, { type Static } from 'typebox'
import { FILL_STATUSES, ORDER_STATUSES } from '../orders/schema.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  NextCursor,
  nullable,
  pageQuery,
  Side,
  Time,
  words,
} from '../wire/schema.ts'

const STAGES = 'MATCHED, SUBMITTED, MINED, CONFIRMED; or RETRYING, FAILED.'
const Hash = Type.String({ description: 'Transaction that settles it.' })

export const FillStage = Type.Object({
  fill_id: Type.String(),
  stage: words(FILL_STATUSES, STAGES),
  batch_id: Type.Integer({ description: 'The auction that matched it.' }),
  part: Type.Integer({ description: 'The part of the batch; each is one transaction.' }),
  action_id: nullable(Type.Integer({ description: "The market contract's number of that action." })),
  tx_hash: nullable(Hash),
  block_number: nullable(Type.Integer()),
  ...amountOf('price', 'Clearing price of the batch.'),
  ...amountOf('quantity', 'Quantity.'),
  failure: nullable(Type.String({ description: 'Why it will not settle.' })),
  matched_at: Time('When the batch cleared.'),
  submitted_at: nullable(Time('When its transaction was sent.')),
  mined_at: nullable(Time('When its transaction was mined.')),
  confirmed_at: nullable(Time('When the block was sealed.')),
  failed_at: nullable(Time('When it was taken back.')),
  updated_at: Time('When its stage last changed.'),
})
export type FillStage = Static<typeof FillStage>

export const FillProcessing = Type.Object({
  order_id: Type.String(),
  order_hash: Type.String(),
  market_id: Type.Integer(),
  symbol: Type.String(),
  status: words(ORDER_STATUSES, 'Status of the order.'),
  settlement_pending: Type.Boolean({
    description: 'Whether some fill is matched and not mined yet: MATCHED, SUBMITTED or RETRYING.',
  }),
  confirmation_pending: Type.Boolean({
    description: 'Whether some fill is mined in a block that is not sealed yet, or not mined yet.',
  }),
  ...amountOf('quantity', 'Quantity as signed.'),
  ...amountOf('filled_quantity', 'Settled on the chain.'),
  ...amountOf('settling_quantity', 'Matched in a batch that is settling.'),
  stages: Type.Object(
    Object.fromEntries(FILL_STATUSES.map((stage) => [stage, Type.Integer()])) as Record<
      (typeof FILL_STATUSES)[number],
      ReturnType<typeof Type.Integer>
    >,
    { description: 'Fills of the order at each stage, all pages together.' },
  ),
  fills: Type.Array(FillStage, { description: 'Newest first.' }),
  next_cursor: NextCursor,
})
export type FillProcessing = Static<typeof FillProcessing>

export const PublicFill = Type.Object({
  fill_id: Type.String({
    description: '`<market>-<batch>-<part>-<place>`; not the name that its owner sees.',
  }),
  market_id: Type.Integer(),
  symbol: Type.String(),
  batch_id: Type.Integer({ description: 'The auction that matched it.' }),
  part: Type.Integer({ description: 'The part of the batch; each is one transaction.' }),
  side: Side,
  status: words(FILL_STATUSES, STAGES),
  ...amountOf('price', 'Clearing price of the batch.'),
  ...amountOf('quantity', 'Quantity.'),
  ...amountOf('taker_quantity', 'Share of the quantity that was matched as taker.'),
  tx_hash: nullable(Hash),
  block_number: nullable(Type.Integer()),
  created_at: Time('When it was matched.'),
  updated_at: Time('When its status last changed.'),
})
export type PublicFill = Static<typeof PublicFill>

export const PublicFills = Type.Object({ fills: Type.Array(PublicFill), next_cursor: NextCursor })
export const PublicFillsQuery = closed({ side: Type.Optional(Side), ...pageQuery, ...bookmarkQuery })
