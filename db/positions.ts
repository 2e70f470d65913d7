/** A market's open positions for workers and operators, from the read model: mined, as the chain has them. */
import { type Selectable, sql } from 'kysely'
import { marketShard } from '../domain/journal/journal-row.ts'
import type { Position } from '../domain/positions/position.ts'
import type { Quote, Steps } from '../domain/units.ts'
import type { Db } from './client.ts'
import type { ReadPositionsTable } from './read-schema.ts'

type PositionRow = Selectable<ReadPositionsTable>

export const minedPosition = (
  row: Pick<PositionRow, 'size' | 'entry_notional' | 'folded_margin' | 'leverage'>,
): Position => ({
  size: row.size as Steps,
  entryNotional: row.entry_notional as Quote,
  foldedMargin: row.folded_margin as Quote,
  leverage: row.leverage,
})

/** Whether the positions contain every row of the market's journal that the engine's tables contain. */
export async function arePositionsCurrent(db: Db, marketId: number): Promise<boolean> {
  const { rows } = await sql<{ is_current: boolean }>`
    select p.fill_to is null and p.epoch = s.epoch and p.seq >= s.head as is_current
    from shards s join read.places p on p.shard = s.shard and p.projection = 'orders'
    where s.shard = ${marketShard(marketId)}
  `.execute(db)
  return rows[0]?.is_current ?? false
}

/** At most about `most` open positions of each side of the market, evenly by account. */
export async function samplePositions(db: Db, marketId: number, most: number): Promise<Position[]> {
  const { rows } = await sql<PositionRow>`
    select * from (
      select *, count(*) over side as of_side, row_number() over (side order by user_id) as place
      from read.positions where market_id = ${marketId} and size <> 0
      window side as (partition by size > 0)
    ) open
    where (place - 1) % ceil(of_side / ${most}::numeric)::bigint = 0
  `.execute(db)
  return rows.map(minedPosition)
}

export type OpenPositionRow = PositionRow & { readonly address: string }

/** The market's open positions after this account, by account. */
export async function openPositions(
  db: Db,
  marketId: number,
  after: number,
  limit: number,
): Promise<OpenPositionRow[]> {
  const { rows } = await sql<OpenPositionRow>`
    select p.*, u.address from read.positions p join users u on u.user_id = p.user_id
    where p.market_id = ${marketId} and p.size <> 0 and p.user_id > ${after} order by p.user_id limit ${limit}
  `.execute(db)
  return rows
}
