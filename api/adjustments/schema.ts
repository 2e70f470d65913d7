/** Adjustments of margin and leverage, and their attempts. */
import Type, { type Static } from 'typebox'
import { ADJUSTMENT_KINDS, ATTEMPT_STATUSES } from '../../domain/positions/adjustment-attempt.ts'
import { FAILURE_KINDS } from '../../domain/settlement/receipt.ts'
import {
  closed,
  countInput,
  decimalInput,
  expects,
  MAX_INTEGER,
  MAX_PAGE,
  maybeWords,
  named,
  namedInput,
  nullable,
  PositiveInteger,
  ReadAfter,
  rangeQuery,
  signedDecimalInput,
  Time,
  words,
} from '../wire/schema.ts'

const digits = (description: string) =>
  Type.String({
    pattern: '^\\d{1,78}$',
    ...expects('an amount in wei as a string of at most 78 digits'),
    description,
  })

/** Both adjustments have these fields. */
const common = {
  symbol: Type.String({ minLength: 1, maxLength: 100, description: 'Symbol of the market.' }),
  market_id: Type.Optional(PositiveInteger('Id of the same market.')),
  address: Type.String({
    pattern: '^0x[0-9a-fA-F]{40}$',
    ...expects("the caller's wallet address"),
    description: "The account: the caller's own wallet address.",
  }),
  signature: Type.String({
    maxLength: 200,
    description:
      'Of the account or of a session key that may change margin: 65 bytes over the typed data, or 66 bytes (the last one 01) over it as a personal message.',
  }),
  nonce: Type.Integer({
    ...{ minimum: 0, maximum: MAX_INTEGER },
    ...expects('a whole number from 0'),
    description: 'As signed. Valid once per account and market, in any order.',
  }),
  deadline: PositiveInteger('As signed, in Unix seconds: the adjustment is not executed later.'),
}

export const AdjustLeverageBody = namedInput('AdjustLeverageBody', {
  ...common,
  leverage: PositiveInteger('As signed, a whole number. The struct has it times 1e18.'),
  max_margin_in_e18_raw: digits(
    'As signed: the most that may be debited from the free balance. It is reserved meanwhile.',
  ),
  min_margin_out_e18_raw: digits('As signed: the least that must be credited to the free balance.'),
  order_action: Type.Optional(
    words(['cancel'], "The account's open orders in the market are cancelled first."),
  ),
})
export type AdjustLeverageBody = Static<typeof AdjustLeverageBody>

export const AdjustMarginBody = namedInput('AdjustMarginBody', {
  ...common,
  amount: signedDecimalInput('As signed: positive adds margin, negative removes it.'),
  remove_mode: Type.Optional(
    words(['exact', 'up_to'], 'As signed. `up_to` removes at most the amount; only with a negative amount.'),
  ),
  min_amount: Type.Optional(decimalInput('As signed: refused if less than this moves. Default 0.')),
})
export type AdjustMarginBody = Static<typeof AdjustMarginBody>

const answer = {
  success: Type.Boolean(),
  adjustment_id: Type.String(),
  read_after: ReadAfter,
  execution: Type.Object(
    {
      relayer_id: Type.String({ description: 'Relayer lane that sent the transaction.' }),
      nonce: Type.String({ description: "The transaction's nonce." }),
      tx_hash: Type.String(),
    },
    { description: 'The transaction of the exchange that executed the adjustment.' },
  ),
  market_id: Type.Integer(),
  symbol: Type.String(),
  perpetual_address: Type.String({ description: "Address of the market's trading contract." }),
  tx_hash: Type.String(),
  called_by: Type.String({ description: 'Address of the operator that executed the adjustment.' }),
  gas_used: Type.Optional(Type.String()),
}

export const AdjustLeverageAnswer = named('AdjustLeverageAnswer', {
  ...answer,
  cancelled_orders: Type.Integer({
    description: 'Open orders of the account in the market that were cancelled.',
  }),
  recreated_orders: Type.Integer({ description: 'Always 0.' }),
})
export type AdjustLeverageAnswer = Static<typeof AdjustLeverageAnswer>

export const AdjustMarginAnswer = named('AdjustMarginAnswer', {
  ...answer,
  amount: Type.Number({ description: 'What has moved: positive into the position, negative out of it.' }),
  amount_e18_raw: Type.String({ description: 'The same times 1e18, exact.' }),
  max_removable_amount: Type.Optional(
    Type.Number({ description: 'Of a removal: the most that could be removed when it was signed.' }),
  ),
})
export type AdjustMarginAnswer = Static<typeof AdjustMarginAnswer>

export const Attempt = named('Attempt', {
  adjustment_id: Type.String(),
  user_id: Type.Integer(),
  market_id: Type.Integer(),
  kind: words(ADJUSTMENT_KINDS, 'What the account has signed.'),
  status: words(ATTEMPT_STATUSES, 'PREPARED, SIGNED and SUBMITTED are in flight.'),
  amount_e18_raw: Type.String({
    description:
      'As requested, and what has moved once it is committed. Positive into the position, negative out of it.',
  }),
  new_leverage_raw: nullable(Type.String({ description: 'The requested leverage, a whole number.' })),
  tx_hash: nullable(Type.String()),
  failure_kind: maybeWords(FAILURE_KINDS, 'How the receipt differs from what was expected.'),
  failure_reason: nullable(Type.String({ description: 'Why the attempt was aborted, or what differs.' })),
  created_at: Time('When it was accepted.'),
  updated_at: Time('Of its present status.'),
})
export type Attempt = Static<typeof Attempt>
export const Attempts = named('Attempts', { attempts: Type.Array(Attempt) })

export const AttemptsQuery = closed({
  adjustment_id: Type.Optional(
    Type.String({
      pattern: '^[\\w-]{1,100}$',
      ...expects('the `adjustment_id` of an attempt'),
      description: 'Only this attempt.',
    }),
  ),
  market_id: Type.Optional(PositiveInteger('Only attempts in this market.')),
  kind: Type.Optional(words(ADJUSTMENT_KINDS, 'Only attempts of this kind.')),
  status: Type.Optional(words(ATTEMPT_STATUSES, 'Only attempts with this status.')),
  ...rangeQuery('attempts requested'),
  limit: Type.Optional(countInput(MAX_PAGE, 100, 'Most attempts, newest first.')),
  read_after_shard_id: Type.Optional(Type.String({ description: '`read_after.shard_id` of a write.' })),
  read_after_shard_seq: Type.Optional(
    Type.String({ description: '`read_after.shard_seq` of the same write.' }),
  ),
})
