/** The feeds of a market, and the reports that decisions were based on. */
import Type, { type Static } from 'typebox'
import { FEEDS } from '../../domain/prices/feed.ts'
import { SourceReading, statusFields } from '../markets/oracle.ts'
import {
  closed,
  maybeAmountOf,
  named,
  nullable,
  nullableObject,
  Time,
  timeInput,
  words,
} from '../wire/schema.ts'

const FEED = words(
  FEEDS,
  'index (the oracle price), session (trading session of the underlying) or final (final price).',
)

const reportFields = {
  feed: FEED,
  ...maybeAmountOf('price', 'The reported price; null for a session feed, and before the first report.'),
  session_ends_at: nullable(
    Time('Only of a session feed: the reported end of the running trading session; null outside one.'),
  ),
  signatures: nullable(
    Type.String({
      description:
        'Proof of the report: the signatures of its signers, 65 bytes each, or the number of an aggregator round in 10 bytes.',
    }),
  ),
}

export const Oracle = named('Oracle', {
  market_id: Type.Integer(),
  symbol: Type.String(),
  feeds: Type.Array(Type.Object({ ...reportFields, ...statusFields })),
  evidence: nullableObject(
    Type.Object({
      ...reportFields,
      observed_at: Time('Observation time of the report.'),
      sources: Type.Array(SourceReading, { description: 'The readings of the sources behind the report.' }),
    }),
    'The report of `observed_at`, if a batch, a trigger, a funding update, a liquidation or a final price was decided on it; null without ' +
      '`observed_at`, and for a report that nothing was decided on.',
  ),
})
export type Oracle = Static<typeof Oracle>

export const OracleQuery = closed({
  observed_at: Type.Optional(
    timeInput('Observation time of a report, such as `oracle_price_at` of an auction or of a trigger.'),
  ),
  feed: Type.Optional(FEED),
})
