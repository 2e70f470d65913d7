/** Liquidations as the public sees them, and their steps as the accounts concerned see them. */
import Type, { type Static } from 'typebox'
import {
  amountOf,
  bookmarkQuery,
  closed,
  maybeAmountOf,
  NextCursor,
  named,
  nullable,
  nullableObject,
  PositiveInteger,
  pageQuery,
  rangeQuery,
  Time,
  words,
} from '../wire/schema.ts'

const SIDES = ['LONG', 'SHORT'] as const
export const LIQUIDATION_KINDS = ['forced_fill', 'inherited', 'deleveraged'] as const
const STEPS = [
  ...(['started', 'forced', 'widened', 'inherit_queued', 'deleverage_queued', 'failed', 'ended'] as const),
]

export const Liquidation = named('Liquidation', {
  liquidation_id: Type.String({ description: 'Unique id; the same after a rebuild.' }),
  market_id: Type.Integer(),
  symbol: Type.String(),
  kind: words(
    LIQUIDATION_KINDS,
    'How a part of the position left it: by a forced order in a batch, to the backstop, or against profitable positions of the other side.',
  ),
  side: words(SIDES, 'Side of the position.'),
  ...amountOf('quantity', 'Quantity that left the position.'),
  ...maybeAmountOf(
    'price',
    'Clearing price of the batch, or the bankruptcy price of a deleveraging, rounded down at 18 decimals; null if inherited.',
  ),
  ...maybeAmountOf('notional', 'Quantity at that price; if inherited at the oracle price.'),
  ...maybeAmountOf(
    'oracle_price',
    'Oracle price that decided it; null for a forced fill, whose batch has it.',
  ),
  oracle_price_at: nullable(Time('Its observation.')),
  batch_id: nullable(Type.Integer({ description: 'Batch of a forced fill.' })),
  part: nullable(Type.Integer({ description: 'Part of that batch.' })),
  tx_hash: Type.String(),
  block_number: Type.Integer(),
  created_at: Time('Time of the block, or of the batch if that is later.'),
})
export type Liquidation = Static<typeof Liquidation>

export const Liquidations = named('Liquidations', {
  liquidations: Type.Array(Liquidation),
  next_cursor: NextCursor,
})

export const LiquidationsQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only liquidations in this market.')),
  ...rangeQuery('liquidations'),
  ...pageQuery,
  ...bookmarkQuery,
})

const Leg = Type.Object({
  rank: Type.Integer({ description: 'Place in the ranking; 1 is closed first.' }),
  ...amountOf('quantity', 'Quantity to close.'),
  ...amountOf('score', '(profit / entry notional) x (notional / equity) of the counterparty.'),
})

const Evidence = Type.Object({
  as_of: Time('Time up to which funding was settled.'),
  ...amountOf('oracle_price', 'Oracle price.'),
  oracle_price_at: Time(
    'Its observation; with it `GET /v0/markets/:market_id/oracle` has the signed report.',
  ),
  ...amountOf('funding_index', 'USDM that a long has paid per quantity step since listing.'),
  ...maybeAmountOf(
    'margin_ratio',
    'Equity divided by notional, rounded down; null if the position was closed.',
  ),
  ...amountOf('threshold', 'A liquidation starts below this ratio, and ends at it.'),
  ...maybeAmountOf('size', 'Signed size of the position; null for counterparties, as are the next two.'),
  ...maybeAmountOf('entry_notional', 'Price paid for it.'),
  ...maybeAmountOf('margin', 'Its margin.'),
})

export const LiquidationStep = named('LiquidationStep', {
  step_id: Type.String(),
  liquidation_id: Type.String({ description: 'Of the liquidation; all of its steps have it.' }),
  market_id: Type.Integer(),
  symbol: Type.String(),
  role: words(
    ['owner', 'counterparty'],
    'Whether the position is of the caller, or closes positions of the caller.',
  ),
  step: words(STEPS, 'What was decided. Transactions and fills show what was executed.'),
  reason: Type.String({ description: 'Why.' }),
  order_id: nullable(
    Type.String({ description: 'The forced order; null without one, and for counterparties.' }),
  ),
  widenings: Type.Integer({ description: 'Batches in sequence that left the forced order without a fill.' }),
  evidence: nullableObject(Evidence, 'On what it was decided; null if not on a report.'),
  legs: Type.Array(Leg, {
    description: 'Of a deleveraging, by rank: all of them for the owner, its own for a counterparty.',
  }),
  created_at: Time('Time of the decision.'),
})
export type LiquidationStep = Static<typeof LiquidationStep>

export const LiquidationSteps = named('LiquidationSteps', {
  steps: Type.Array(LiquidationStep),
  next_cursor: NextCursor,
})

export const LiquidationStepsQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only steps in this market.')),
  ...rangeQuery('steps decided'),
  ...pageQuery,
  ...bookmarkQuery,
})
