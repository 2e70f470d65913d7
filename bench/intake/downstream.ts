/** Measures keeper and indexer during a load: delay of the read model, and duration of auctions. */
import { sql } from 'kysely'
import pg from 'pg'
import type { Target } from './target.ts'

/** Milliseconds from an order's acceptance to the commit of its read-model row. */
export interface ReadModelLag {
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
}

export interface AuctionTimes {
  readonly count: number
  readonly mean_ms: number
  /** Upper bound of the histogram bucket that contains the 99th percentile. */
  readonly p99_below_ms: number
}

export interface Downstream {
  readonly readable: ReadModelLag
  readonly auctions: AuctionTimes
}

interface Projected {
  readonly shard: string
  readonly seq: number
  readonly at: number
}

export interface DownstreamWatch {
  /** Must be called after the read model has caught up. */
  finish(): Promise<Downstream>
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

export async function watchDownstream(
  { db, databaseUrl }: Target,
  keeperUrl: string,
): Promise<DownstreamWatch> {
  const projected: Projected[] = []
  const client = new pg.Client(databaseUrl)
  await client.connect()
  client.on('notification', ({ payload = '' }) => {
    const [shard = '', , seq] = payload.split(':')
    projected.push({ shard, seq: Number(seq), at: Date.now() })
  })
  await client.query('listen projected')
  const { rows: heads } = await sql<{ shard: string; head: number }>`select shard, head from shards`.execute(
    db,
  )
  const bucketsBefore = await auctionBuckets(keeperUrl)
  return {
    async finish() {
      const auctions = auctionsBetween(bucketsBefore, await auctionBuckets(keeperUrl))
      await client.end()
      const lags: number[] = []
      for (const { shard, head } of heads) lags.push(...(await lagsOf({ db }, shard, head, projected)))
      const sorted = lags.sort((a, b) => a - b)
      const [p50_ms, p99_ms, max_ms] = [0.5, 0.99, 1].map((share) => quantile(sorted, share))
      return { readable: { p50_ms, p99_ms, max_ms } as ReadModelLag, auctions }
    },
  }
}

/** The delays of all orders of the shard after sequence `after`. */
async function lagsOf(
  { db }: Pick<Target, 'db'>,
  shard: string,
  after: number,
  projected: readonly Projected[],
): Promise<number[]> {
  const { rows } = await sql<{ seq: number; at: number }>`
    select seq, (row->>'accepted_at')::bigint as at from journal
    where shard = ${shard} and seq > ${after} and row->>'kind' = 'order_placed' order by seq
  `.execute(db)
  const steps = projected.filter((step) => step.shard === shard)
  let next = 0
  return rows.flatMap(({ seq, at }) => {
    while ((steps[next]?.seq ?? Number.POSITIVE_INFINITY) < seq) next++
    const step = steps[next]
    return step === undefined ? [] : [step.at - at]
  })
}

interface Buckets {
  readonly seconds: number
  /** By upper bound in seconds: the number of auctions of all markets up to that duration. */
  readonly upTo: ReadonlyMap<number, number>
}

async function auctionBuckets(keeperUrl: string): Promise<Buckets> {
  const text = await (await fetch(`${keeperUrl}/metrics`)).text()
  const upTo = new Map<number, number>()
  for (const [, le, count] of text.matchAll(/^keeper_auction_seconds_bucket\{le="([^"]+)".*\} (\d+)$/gm)) {
    const bound = le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le)
    upTo.set(bound, (upTo.get(bound) ?? 0) + Number(count))
  }
  const sums = [...text.matchAll(/^keeper_auction_seconds_sum\{.*\} (\S+)$/gm)]
  return { seconds: sums.reduce((sum, [, value]) => sum + Number(value), 0), upTo }
}

function auctionsBetween(before: Buckets, after: Buckets): AuctionTimes {
  const counts = [...after.upTo].map(
    ([bound, count]) => [bound, count - (before.upTo.get(bound) ?? 0)] as const,
  )
  const count = counts.at(-1)?.[1] ?? 0
  const p99 = counts.find(([, upTo]) => upTo >= count * 0.99)?.[0] ?? Number.NaN
  return {
    count,
    mean_ms: Number((((after.seconds - before.seconds) / count) * 1000).toFixed(1)),
    p99_below_ms: p99 * 1000,
  }
}
