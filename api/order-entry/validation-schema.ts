/** A dry run of a placement. */
import Type, { type Static } from 'typebox'
import { Balance } from '../accounts/schema.ts'
import { expectedProtectionFields } from '../order-book/schema.ts'
import { PriceBand, reservationFields } from '../orders/reservation-schema.ts'
import { amountOf, named, namedInput, nullable, Side } from '../wire/schema.ts'
import { PlaceOrderBody } from './schema.ts'
import { SIGNED_ORDER } from './signing-example.ts'

const { signature: __, signature_type: ___, ...unsignedOrder } = SIGNED_ORDER
const { signature: _, signature_type, ...unsigned } = PlaceOrderBody.properties

/** The body of a placement; the signature is optional. */
export const ValidateBody = namedInput(
  'ValidateBody',
  {
    ...unsigned,
    signature: Type.Optional(
      Type.String({
        description: 'Hex of r, s, v and the suffix 01. If omitted, all other checks run.',
      }),
    ),
    signature_type,
  },
  { 'x-hints': (PlaceOrderBody as { 'x-hints'?: unknown })['x-hints'], examples: [unsignedOrder] },
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
      'The typed data of the order. Its EIP-712 hash is `digest`; sign those 32 bytes as a personal message and append the byte 01.',
  },
)

export const ValidateAnswer = named('ValidateAnswer', {
  valid: Type.Boolean({
    description: 'Always true: an invalid order returns the error that its placement would return.',
  }),
  order_hash: Type.String(),
  digest: Type.String({
    description: 'The 32 bytes to sign as a personal message; the same as `order_hash`.',
  }),
  signer: nullable(
    Type.String({
      description: 'The recovered signer: the account or one of its session keys. Null without a signature.',
    }),
  ),
  is_duplicate: Type.Boolean({
    description: 'Whether this order was placed before; the other fields then describe its current state.',
  }),
  status: Type.String({
    description: 'Status after the placement: OPEN or PENDING_TRIGGER. For a duplicate, its current status.',
  }),
  side: Side,
  ...reservationFields,
  ...expectedProtectionFields,
  price_band: PriceBand,
  nearest_valid: Type.Object(
    {
      ...amountOf('lowest_price', 'Lowest limit price that is accepted on this side.'),
      ...amountOf('highest_price', 'Highest limit price that is accepted on this side.'),
      ...amountOf('tick_size', 'Prices must be multiples of it.'),
      ...amountOf('min_quantity', 'Minimum quantity, except for full closes.'),
      ...amountOf('max_quantity', 'Maximum quantity of one order.'),
      ...amountOf('step_size', 'Quantities must be multiples of it.'),
      max_leverage: Type.Integer(),
    },
    { description: 'The bounds that the order was checked against.' },
  ),
  balance: Type.Object(Balance.properties, { description: 'The balance after the placement.' }),
  typed_data: TypedData,
})
export type ValidateAnswer = Static<typeof ValidateAnswer>
