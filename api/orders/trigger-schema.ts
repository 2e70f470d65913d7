/** The mark price that triggered a conditional order. */
import Type, { type Static } from 'typebox'
import { amountOf, nullableObject, Time } from '../wire/schema.ts'

const Trigger = Type.Object({
  at: Time('Time of the trigger.'),
  ...amountOf('mark_price', 'The mark price that crossed the trigger.'),
  ...amountOf('oracle_price', 'The oracle price at that time.'),
  oracle_price_at: Time('Observation time of that oracle price.'),
  batch_id: Type.Integer({ description: 'The first batch that the order could take part in.' }),
})
export type Trigger = Static<typeof Trigger>

export const MaybeTrigger = nullableObject(
  Trigger,
  'What triggered the order; null if it still waits or is not conditional.',
)
