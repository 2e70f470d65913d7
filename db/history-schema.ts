/** The table of the files of the public history. */
import type { HistoryKind } from '../domain/market-data/history-kind.ts'

/** Files of the public history as they were when they were first built. Written by: api. */
export interface HistoryFilesTable {
  kind: HistoryKind
  market_id: number
  /** Its start. */
  day: number
  rows: number
  /** Digest of the CSV. */
  content_sha256: string
  /** Digest of the compressed file; another compressor can change digest and size. */
  sha256: string
  size: number
  built_at: number
}
