/** `history list` and `history get`: the files of the public history. */
import { writeFileSync } from 'node:fs'
import type { HistoryFile } from '../../client/market-history.ts'
import { PublicHistory } from '../../client/public-history.ts'
import { HISTORY_KINDS, type HistoryKind } from '../../domain/market-data/history-kind.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'
import { given } from './account.ts'

export interface ListedHistory {
  readonly kind: HistoryKind | undefined
  readonly market: string | undefined
  readonly from: string | undefined
  readonly to: string | undefined
  readonly limit: number
}

export async function list(context: Context, { kind, market, from, to, limit }: ListedHistory) {
  const client = context.anonymous()
  const marketId = market === undefined ? undefined : (await context.market(client, market)).market_id
  const { files } = await new PublicHistory(client).page({ limit, ...given({ kind, marketId, from, to }) })
  return files.map(({ kind: each, symbol, day, rows, size, content_sha256 }) => ({
    day,
    market: symbol,
    kind: each,
    rows,
    size,
    content_sha256,
  }))
}

export interface FetchedHistory {
  readonly positionals: readonly string[]
  readonly market: string
  readonly output: string
}

export async function get(context: Context, { positionals, market, output }: FetchedHistory) {
  const [name, day = ''] = positionals
  const kind = HISTORY_KINDS.find((each) => each === name)
  if (kind === undefined)
    throw new CommandError(
      `expected one of ${HISTORY_KINDS.join(', ')}; received ${name ?? 'nothing'}`,
      EXIT.usage,
    )
  const at = Date.parse(`${day}T00:00:00Z`)
  if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(at))
    throw new CommandError(`expected a day such as 2026-11-22; received ${day || 'nothing'}`, EXIT.usage)
  if (!output.endsWith('.csv.gz'))
    throw new CommandError(`--output must end with .csv.gz; received ${output}`, EXIT.usage)
  const client = context.anonymous()
  const history = new PublicHistory(client)
  const { market_id, symbol } = await context.market(client, market)
  const path = `/v0/history/${kind}/${market_id}/${day}.csv.gz`
  const to = new Date(at + 86_400_000).toISOString().slice(0, 10)
  const listed = async (): Promise<HistoryFile | undefined> =>
    (await history.page({ kind, marketId: market_id, from: day, to })).files[0]
  const bytes = await history.download((await listed()) ?? { path, content_sha256: null })
  writeFileSync(output, bytes)
  const rows = (await listed())?.rows ?? null
  return { market: symbol, kind, day, rows, bytes: bytes.length, file: output }
}
