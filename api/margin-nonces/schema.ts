/** The lowest valid nonce of margin and leverage adjustments. */
import Type, { type Static } from 'typebox'
import { addressInput, forwardFields, signatureField } from '../relays/forward-body.ts'
import { closed, expects, named, namedInput, PositiveInteger } from '../wire/schema.ts'

export const InvalidateBody = namedInput('InvalidateBody', {
  market_id: PositiveInteger('The market.'),
  new_minimum: Type.String({
    pattern: '^\\d{1,16}$',
    ...expects('digits: a whole number from 1 to 9007199254740991'),
    description: 'Adjustments with a lower nonce become invalid.',
  }),
  ...forwardFields,
  signature: signatureField,
})
export type InvalidateBody = Static<typeof InvalidateBody>

const market = {
  market_id: Type.Integer(),
  perpetual_address: Type.String({ description: "The market's contract." }),
  minimum_margin_nonce: Type.String({ description: 'Adjustments with a lower nonce are invalid.' }),
}

export const Invalidated = named('Invalidated', {
  success: Type.Boolean(),
  ...market,
  tx_hash: Type.String({ description: 'Of the transaction that executed the request.' }),
})

export const MinimumQuery = closed({
  market_id: PositiveInteger('The market.'),
  address: addressInput("The caller's own address."),
})

export const Minimum = named('Minimum', {
  address: Type.String(),
  ...market,
  next_forward_nonce: Type.Integer({ description: "The nonce of the account's next forward request." }),
})
