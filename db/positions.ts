/** The `positions` table. The mined columns are what the chain has; the matched columns are mined and unsettled fills together. The engine writes it. */
import { type Selectable, sql } from 'kysely'
import type { Position } from '../domain/positions/position.ts'
import type { Quote, Steps } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'
import type { PositionsTable } from './schema.ts'

type PositionRow = Selectable<PositionsTable>

export const minedPosition = (row: PositionRow): Position => ({
  size: row.size as Steps,
  entryNotional: row.entry_notional as Quote,
  foldedMargin: row.folded_margin as Quote,
  leverage: row.leverage,
})

export const matchedPosition = (
  row: Pick<
    PositionRow,
    'matched_size' | 'matched_entry_notional' | 'matched_folded_margin' | 'matched_leverage'
  >,
): Position => ({
  size: row.matched_size as Steps,
  entryNotional: row.matched_entry_notional as Quote,
  foldedMargin: row.matched_folded_margin as Quote,
  leverage: row.matched_leverage,
})

/** An open position, mined, with its account. */
/** At most about `most` open matched positions of each side of the market, evenly by account. */
export async function sampleMatched(db: Db | Tx, marketId: number, most: number): Promise<Position[]> {
  const { rows } = await sql<PositionRow>`
    select * from (
      select *, count(*) over side as of_side, row_number() over (side order by user_id) as place
      from positions where market_id = ${marketId} and matched_size <> 0
      window side as (partition by matched_size > 0)
    ) open
    where (place - 1) % ceil(of_side / ${most}::numeric)::bigint = 0
  `.execute(db)
  return rows.map(matchedPosition)
}

export type OpenPositionRow = PositionRow & { readonly address: string }

/** The market's open positions after this account, by account. */
export async function openPositions(
  db: Db | Tx,
  marketId: number,
  after: number,
  limit: number,
): Promise<OpenPositionRow[]> {
  const { rows } = await sql<OpenPositionRow>`
    select p.*, u.address from positions p join users u on u.user_id = p.user_id
    where p.market_id = ${marketId} and p.size <> 0 and p.user_id > ${after} order by p.user_id limit ${limit}
  `.execute(db)
  return rows
}
