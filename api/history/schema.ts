/** Files of the public history of markets, and their list. */
import Type, { type Static } from 'typebox'
import { HISTORY_KINDS } from '../../domain/market-data/history-kind.ts'
import { Day } from '../wire/days.ts'
import { closed, NextCursor, named, nullable, PositiveInteger, pageQuery, words } from '../wire/schema.ts'

const Kind = words(HISTORY_KINDS, 'What the rows are.')

export const HistoryFile = named('HistoryFile', {
  kind: Kind,
  market_id: Type.Integer(),
  symbol: Type.String(),
  day: Day('The day, in UTC.'),
  path: Type.String({ description: 'Where the file is served.' }),
  rows: nullable(
    Type.Integer({ description: 'Lines without the header; null until the file was requested once.' }),
  ),
  size: nullable(
    Type.Integer({ description: 'Bytes of the compressed file; null until it was requested once.' }),
  ),
  sha256: nullable(
    Type.String({
      description: 'SHA-256 of the compressed file, its `ETag`; null until it was requested once.',
    }),
  ),
  content_sha256: nullable(
    Type.String({
      description:
        'SHA-256 of the CSV in the file, which never changes; null until the file was requested once. Another compressor can change `sha256`.',
    }),
  ),
})
export type HistoryFile = Static<typeof HistoryFile>

export const History = named('History', {
  files: Type.Array(HistoryFile, { description: 'The newest day first, then by market and kind.' }),
  retention_days: nullable(
    Type.Integer({
      description: 'Days after which a file is no longer served; null: files are kept for good.',
    }),
  ),
  next_cursor: NextCursor,
})

export const HistoryQuery = closed({
  kind: Type.Optional(words(HISTORY_KINDS, 'Only files of this kind.')),
  market_id: Type.Optional(PositiveInteger('Only files of this market.')),
  from: Type.Optional(Day('Only this day and later ones.')),
  to: Type.Optional(Day('Only days before this one.')),
  ...pageQuery,
})

export const HistoryFileParams = closed({
  kind: words(HISTORY_KINDS, 'What the rows are.'),
  market_id: PositiveInteger('Number of the market.'),
  day: Day('The day, in UTC.'),
})
