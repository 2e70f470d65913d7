/** The stages of an order after its acceptance, from the database's own times. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketId } from '../../domain/units.ts'
import type { Progress } from './database-watch.ts'

/** Milliseconds after the acceptance of each filled market order; of each filled order, if no market order has a fill. Limit orders may wait for a counterpart. */
export interface Stages {
  /** By the chain's time in whole seconds: a bound for delays, not a latency. */
  readonly batched: readonly number[]
  readonly readable: readonly number[]
  /** Number of orders accepted, and of fills of their first batches. */
  readonly orders: number
  readonly fills: number
}

interface FirstFill {
  readonly market_id: number
  readonly type: string
  readonly accepted_at: number
  readonly created_at: number
  /** Sequence of the batch's journal row. */
  readonly seq: number
}

/** Stages of the orders accepted from `from` until `until`. */
export async function stagesOf(
  db: Db,
  progress: ReadonlyMap<string, readonly Progress[]>,
  { from, until }: { readonly from: number; readonly until: number },
): Promise<Stages> {
  const { rows: fills } = await sql<FirstFill>`
    with cleared as materialized (
      select shard, (row->>'batch_id')::bigint as batch_id, min(seq) as seq
      from journal where row->>'kind' = 'batch_cleared' group by 1, 2
    ), first_fills as (
      select order_id, market_id, min(batch_id) as batch_id from read.fills group by 1, 2
    )
    select o.market_id, o.type, o.accepted_at, b.created_at, c.seq
    from first_fills f join orders o using (market_id, order_id) join batches b using (market_id, batch_id)
    join cleared c on c.shard = 'm' || f.market_id and c.batch_id = f.batch_id
    where o.accepted_at between ${from} and ${until}
  `.execute(db)
  const { rows } = await sql<{ orders: number }>`
    select count(*) as orders from orders where accepted_at between ${from} and ${until}
  `.execute(db)
  const markets = fills.filter(({ type }) => type === 'MARKET')
  // Recorded flow has none; there, orders fill in their first batch or wait for another.
  const crossing = markets.length > 0 ? markets : fills
  return {
    batched: crossing.map(({ accepted_at, created_at }) => created_at - accepted_at),
    readable: crossing.map(({ market_id, accepted_at, seq }) => {
      const seen = progress.get(marketShard(market_id as MarketId))?.find((step) => step.seq >= seq)
      return (seen?.at ?? Number.NaN) - accepted_at
    }),
    orders: rows[0]?.orders ?? 0,
    fills: fills.length,
  }
}
