/** What the processes behind the intake did meanwhile: how far readers were behind, and how long auctions took. */
import { sql } from 'kysely'
import pg from 'pg'
import type { Exchange } from './exchange.ts'

/** Milliseconds from an order's acceptance to the commit that shows it to readers. */
export interface ReadModelLag {
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
}

export interface Turns {
  readonly turns: number
  readonly mean_ms: number
  /** Upper bound of the bucket that it falls into. */
  readonly p99_below_ms: number
}

export interface Behind {
  readonly readable: ReadModelLag
  readonly turns: Turns
}

interface Projected {
  readonly shard: string
  readonly seq: number
  readonly at: number
}

export interface Watch {
  /** After the read model has caught up. */
  finish(): Promise<Behind>
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN

export async function watchBehind({ db, databaseUrl }: Exchange, keeperUrl: string): Promise<Watch> {
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
  const turnsBefore = await turnBuckets(keeperUrl)
  return {
    async finish() {
      const turns = turnsBetween(turnsBefore, await turnBuckets(keeperUrl))
      await client.end()
      const lags: number[] = []
      for (const { shard, head } of heads) lags.push(...(await lagsOf({ db }, shard, head, projected)))
      const sorted = lags.sort((a, b) => a - b)
      const [p50_ms, p99_ms, max_ms] = [0.5, 0.99, 1].map((share) => quantile(sorted, share))
      return { readable: { p50_ms, p99_ms, max_ms } as ReadModelLag, turns }
    },
  }
}

/** Of every order of the shard behind `after`. */
async function lagsOf(
  { db }: Pick<Exchange, 'db'>,
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
  /** Turns that took at most so many seconds, all markets together. */
  readonly upTo: ReadonlyMap<number, number>
}

async function turnBuckets(keeperUrl: string): Promise<Buckets> {
  const text = await (await fetch(`${keeperUrl}/metrics`)).text()
  const upTo = new Map<number, number>()
  for (const [, le, count] of text.matchAll(/^keeper_auction_seconds_bucket\{le="([^"]+)".*\} (\d+)$/gm)) {
    const bound = le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le)
    upTo.set(bound, (upTo.get(bound) ?? 0) + Number(count))
  }
  const sums = [...text.matchAll(/^keeper_auction_seconds_sum\{.*\} (\S+)$/gm)]
  return { seconds: sums.reduce((sum, [, value]) => sum + Number(value), 0), upTo }
}

function turnsBetween(before: Buckets, after: Buckets): Turns {
  const counts = [...after.upTo].map(
    ([bound, count]) => [bound, count - (before.upTo.get(bound) ?? 0)] as const,
  )
  const turns = counts.at(-1)?.[1] ?? 0
  const p99 = counts.find(([, count]) => count >= turns * 0.99)?.[0] ?? Number.NaN
  return {
    turns,
    mean_ms: Number((((after.seconds - before.seconds) / turns) * 1000).toFixed(1)),
    p99_below_ms: p99 * 1000,
  }
}
