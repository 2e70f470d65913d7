/** Public ledger of builders: volume, fills and orders with a builder's label, by day. */
import Type, { type Static } from 'typebox'
import { Builder } from '../order-entry/schema.ts'
import { Day } from '../wire/days.ts'
import { amountOf, bookmarkQuery, closed, NextCursor, named, pageQuery } from '../wire/schema.ts'

export const BuilderDay = named('BuilderDay', {
  builder: Type.String({ description: 'The label.' }),
  day: Day('The day, in UTC.'),
  ...amountOf(
    'volume',
    'Notional of the mined fills of auctions of the day. A trade between two orders with the label counts for each of them.',
  ),
  fills: Type.Integer({ description: 'Their number.' }),
  orders: Type.Integer({ description: 'Orders with the label that were accepted on the day.' }),
})
export type BuilderDay = Static<typeof BuilderDay>

export const Builders = named('Builders', { builders: Type.Array(BuilderDay), next_cursor: NextCursor })

export const BuildersQuery = closed({
  day: Type.Optional(Day('Only this day, in UTC. Default without `builder`: the current day.')),
  builder: Type.Optional(
    Type.String({ ...Builder, description: 'Only this builder: its days, newest first.' }),
  ),
  ...pageQuery,
  ...bookmarkQuery,
})
