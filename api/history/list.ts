/** The list of files: every kind, market and day that is final and not expired, whether it was built or not. */

import type { Db } from '../../db/client.ts'
import { type FileKey, type StoredFile, storedFiles } from '../../db/history-files.ts'
import { HISTORY_KINDS, type HistoryKind } from '../../domain/market-data/history-kind.ts'
import { DAY } from '../wire/days.ts'
import type { HistoryDays } from './query.ts'

export interface HistoryRange {
  readonly kind: HistoryKind | undefined
  /** First day, inclusive, and last day, exclusive. */
  readonly from: number | null
  readonly to: number | null
  readonly limit: number
  /** The last file of the page before. */
  readonly after: FileKey | null
}

/** First and last day of which the market has files; null if there is none. */
export function availableDays(
  { first, last, finalUntil }: HistoryDays,
  oldest: number,
): { readonly first: number; readonly last: number } | null {
  if (first === null) return null
  const newest = Math.min(Math.floor(finalUntil / DAY) * DAY - DAY, last ?? Number.POSITIVE_INFINITY)
  const begin = Math.max(first, oldest)
  return begin <= newest ? { first: begin, last: newest } : null
}

/** At most `limit + 1` keys. Each step of the outer loop has at least one file, or is one of the days of the exchange. */
export function filesInRange(
  markets: readonly HistoryDays[],
  oldest: number,
  { kind, from, to, limit, after }: HistoryRange,
): FileKey[] {
  const kinds = kind === undefined ? HISTORY_KINDS : [kind]
  const days = markets.flatMap((market) => {
    const available = availableDays(market, oldest)
    return available === null ? [] : [{ marketId: market.marketId, ...available }]
  })
  const newest = Math.max(...days.map(({ last }) => last))
  const begin = Math.max(from ?? 0, Math.min(...days.map(({ first }) => first)))
  const files: FileKey[] = []
  let day = Math.min(newest, (to ?? Number.POSITIVE_INFINITY) - DAY, after?.day ?? Number.POSITIVE_INFINITY)
  for (; day >= begin && files.length <= limit; day -= DAY) {
    const keys = days
      .filter(({ first, last }) => day >= first && day <= last)
      .flatMap(({ marketId }) => kinds.map((each) => ({ kind: each, marketId, day })))
    files.push(...keys.filter((key) => after === null || isBehind(key, after)))
  }
  return files.slice(0, limit + 1)
}

const placeOf = (kind: HistoryKind): number => HISTORY_KINDS.indexOf(kind)

function isBehind(key: FileKey, after: FileKey): boolean {
  if (key.day !== after.day) return key.day < after.day
  if (key.marketId !== after.marketId) return key.marketId > after.marketId
  return placeOf(key.kind) > placeOf(after.kind)
}

export interface ListedFile {
  readonly key: FileKey
  /** Undefined until the file was requested once. */
  readonly built: StoredFile | undefined
}

export async function withBuilds(db: Db, keys: readonly FileKey[]): Promise<ListedFile[]> {
  if (keys.length === 0) return []
  const days = keys.map(({ day }) => day)
  const marketIds = [...new Set(keys.map(({ marketId }) => marketId))]
  const stored = await storedFiles(db, { marketIds, from: Math.min(...days), to: Math.max(...days) })
  const nameOf = (kind: string, marketId: number, day: number): string => `${kind} ${marketId} ${day}`
  const builds = new Map(stored.map((file) => [nameOf(file.kind, file.market_id, file.day), file]))
  return keys.map((key) => ({ key, built: builds.get(nameOf(key.kind, key.marketId, key.day)) }))
}
