/** What belongs to one account: positions, balance, lookup, faucet. */
import Type, { type Static } from 'typebox'
import { Balance } from '../orders/schema.ts'
import {
  amountOf,
  bookmarkQuery,
  closed,
  expects,
  maybeAmountOf,
  nullable,
  PositiveInteger,
  Time,
  words,
} from '../wire/schema.ts'

export const Position = Type.Object({
  user_id: Type.Integer(),
  market_id: Type.Integer(),
  symbol: Type.String(),
  side: nullable(Type.String({ description: 'LONG or SHORT; null if flat.' })),
  ...amountOf('size', 'Signed: long positive. Settled on the chain.'),
  ...amountOf('pending_size', 'Signed: matched and not settled yet.'),
  ...maybeAmountOf('entry_price', 'Average price of what is open, rounded down at 18 decimals.'),
  ...amountOf('entry_notional', 'Price paid for what is open.'),
  ...amountOf('margin', 'Collateral of this position.'),
  leverage: Type.Integer(),
  ...maybeAmountOf('mark_price', 'Mark price.'),
  ...maybeAmountOf('oracle_price', 'Oracle price.'),
  ...maybeAmountOf('unrealized_pnl', 'At the mark price.'),
  ...maybeAmountOf('notional', 'At the oracle price.'),
  ...maybeAmountOf(
    'margin_ratio',
    'Equity divided by notional at the oracle price; liquidation below maintenance + 0.005.',
  ),
  ...maybeAmountOf('liquidation_price', 'Oracle price at which liquidation begins; null where none does.'),
  ...amountOf('realized_pnl', 'Realized in this market so far.'),
  ...amountOf('fees', 'Fees paid in this market so far.'),
  updated_at: Time('When it last changed.'),
})
export type Position = Static<typeof Position>

export const PositionsQuery = closed({
  market_id: Type.Optional(PositiveInteger('Only this market.')),
  ...bookmarkQuery,
})
export const Positions = Type.Object({ positions: Type.Array(Position) })

export const MarginBalance = Type.Object({
  user_id: Type.Integer(),
  asset: words(['USDM'], 'Asset.'),
  balance: Balance,
})

export const AddressParams = closed({
  address: Type.String({
    pattern: '^0x[0-9a-fA-F]{40}$',
    ...expects('0x and 40 hex digits'),
    description: 'Wallet of the account.',
  }),
})
export const User = Type.Object({
  user_id: Type.Integer(),
  address: Type.String(),
  created_at: Time('First deposit or login.'),
})

export const FaucetBody = closed({})
export const FaucetAnswer = Type.Object({
  tx_hash: Type.String({ description: 'Mints test USDM and gas to the wallet; nothing is deposited.' }),
  request_id: Type.Integer(),
  wallet: Type.String(),
  status: words(['SIGNED', 'MINED'], 'Of the transaction.'),
})
