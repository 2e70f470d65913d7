/** What triggered a conditional order. */
import Type, { type Static } from 'typebox'
import { amountOf, nullableObject, Time } from '../wire/schema.ts'

const Trigger = Type.Object({
  at: Time('When it was triggered.'),
  ...amountOf('mark_price', 'The mark price that crossed the trigger.'),
  ...amountOf('oracle_price', 'The oracle price at that moment.'),
  oracle_price_at: Time('When that oracle price was observed.'),
  batch_id: Type.Integer({ description: 'The first batch that the order could take part in.' }),
})
export type Trigger = Static<typeof Trigger>

export const MaybeTrigger = nullableObject(
  Trigger,
  'What triggered the order; null for one that still waits, or is not conditional.',
)
