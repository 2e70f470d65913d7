/** Trying an order without placing it. */
import Type, { type Static } from 'typebox'
import { Balance } from '../accounts/schema.ts'
import { PriceBand, reservationFields } from '../orders/reservation-schema.ts'
import { amountOf, closed, nullable, Side } from '../wire/schema.ts'
import { PlaceOrderBody } from './schema.ts'

const { signature: _, signature_type, ...unsigned } = PlaceOrderBody.properties

/** As a placement, with or without its signature. */
export const ValidateBody = closed(
  {
    ...unsigned,
    signature: Type.Optional(
      Type.String({
        description: 'Hex of r, s, v and the suffix 01. Without it everything else is checked.',
      }),
    ),
    signature_type,
  },
  { 'x-hints': (PlaceOrderBody as { 'x-hints'?: unknown })['x-hints'] },
)
export type ValidateBody = Static<typeof ValidateBody>

const Field = Type.Object({ name: Type.String(), type: Type.String() })

const TypedData = Type.Object(
  {
    domain: Type.Object({
      name: Type.String(),
      version: Type.String(),
      chainId: Type.Integer(),
      verifyingContract: Type.String(),
    }),
    primaryType: Type.String(),
    types: Type.Object({ Order: Type.Array(Field) }),
    message: Type.Object({
      flags: Type.String(),
      quantity: Type.String(),
      price: Type.String(),
      triggerPrice: Type.String(),
      triggerCondition: Type.Integer(),
      leverage: Type.String(),
      maker: Type.String(),
      expiration: Type.String(),
    }),
  },
  {
    description:
      'What the order is hashed from. Its EIP-712 hash is `digest`; sign those 32 bytes as a personal message and append the byte 01.',
  },
)

export const ValidateAnswer = Type.Object({
  valid: Type.Boolean({
    description: 'Always true: what is not valid is an error, the same as of a placement.',
  }),
  order_hash: Type.String(),
  digest: Type.String({
    description: 'The 32 bytes to sign as a personal message; the same as `order_hash`.',
  }),
  signer: nullable(
    Type.String({ description: 'Who signed: the account or a session key of it. Null without a signature.' }),
  ),
  is_duplicate: Type.Boolean({
    description: 'This order has been placed already; the rest tells of it as it is.',
  }),
  status: Type.String({
    description: 'What it would be: OPEN or PENDING_TRIGGER. Of a duplicate, what it is.',
  }),
  side: Side,
  ...reservationFields,
  price_band: PriceBand,
  nearest_valid: Type.Object(
    {
      ...amountOf('lowest_price', 'Lowest limit that would be taken on this side.'),
      ...amountOf('highest_price', 'Highest limit that would be taken on this side.'),
      ...amountOf('tick_size', 'Prices are multiples of it.'),
      ...amountOf('min_quantity', 'Least quantity, full closes excepted.'),
      ...amountOf('max_quantity', 'Most of one order.'),
      ...amountOf('step_size', 'Quantities are multiples of it.'),
      max_leverage: Type.Integer(),
    },
    { description: 'The bounds that it was checked against.' },
  ),
  balance: Type.Object(Balance.properties, { description: 'As it would be with the order.' }),
  typed_data: TypedData,
})
export type ValidateAnswer = Static<typeof ValidateAnswer>
