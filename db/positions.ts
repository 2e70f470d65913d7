/**
 * The `positions` table. The mined columns are what the chain has; the matched columns are mined and unsettled fills together. The caller
 * holds the lock of the market's shard.
 */
import { type Selectable, sql } from 'kysely'
import type { PositionChange } from '../domain/journal/batch-rows.ts'
import type { Position } from '../domain/positions/position.ts'
import type { Quote, Steps, UserId } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'
import { toJson } from './json.ts'
import type { PositionsTable } from './schema.ts'
import { anyOf } from './values.ts'

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

/** Positions of those of the accounts that have a row, mined or matched by `of`. */
export async function loadPositions(
  tx: Tx,
  marketId: number,
  accounts: ReadonlySet<number>,
  of: (row: PositionRow) => Position,
): Promise<ReadonlyMap<UserId, Position>> {
  if (accounts.size === 0) return new Map()
  const rows = await tx
    .selectFrom('positions')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('user_id', '=', anyOf('bigint', accounts))
    .execute()
  return new Map(rows.map((row) => [row.user_id as UserId, of(row)]))
}

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

/** Sets the matched columns, after a match or a void. */
export async function setMatchedPositions(
  tx: Tx,
  marketId: number,
  positions: ReadonlyMap<UserId, Position>,
): Promise<void> {
  if (positions.size === 0) return
  const rows = [...positions].map(([account, position]) => ({ account, ...position }))
  await sql`
    insert into positions
      (user_id, market_id, matched_size, matched_entry_notional, matched_folded_margin, matched_leverage)
    select x.account, ${marketId}, x.size, x."entryNotional", x."foldedMargin", x.leverage
    from jsonb_to_recordset(${toJson(rows)}::jsonb) as x(
      account bigint, size bigint, "entryNotional" numeric, "foldedMargin" numeric, leverage integer
    )
    on conflict (user_id, market_id) do update set
      matched_size = excluded.matched_size, matched_entry_notional = excluded.matched_entry_notional,
      matched_folded_margin = excluded.matched_folded_margin, matched_leverage = excluded.matched_leverage
  `.execute(tx)
}

/** Changes of mined positions, as a journal row states them. */
export interface MinedChanges {
  readonly positions: readonly PositionChange[]
  /** The block has left the chain: the changes are subtracted. */
  readonly rollback: boolean
}

/** Moves the mined columns. `unmatched`: accounts whose matched position moves along, because the auction had matched none of it. */
export async function movePositions(
  tx: Tx,
  marketId: number,
  { positions, rollback }: MinedChanges,
  unmatched: ReadonlySet<number>,
): Promise<void> {
  const sign = rollback ? -1n : 1n
  const changes = positions.map((change) => ({
    market_id: marketId,
    user_id: change.user_id,
    size: Number(sign) * change.size_delta,
    entry_notional: (sign * BigInt(change.entry_notional_delta)).toString(),
    folded_margin: (sign * BigInt(change.folded_margin_delta)).toString(),
    leverage: rollback ? change.leverage_before : change.leverage_after,
    unmatched: unmatched.has(change.user_id),
  }))
  await moveMined(tx, changes)
  if (positions.length === 0 || unmatched.size === 0) return
  await sql`
    update positions set matched_leverage = leverage where market_id = ${marketId} and user_id = any(${[...unmatched]}::bigint[])
  `.execute(tx)
}

/** What is added to a mined position, and its new leverage. `unmatched`: the matched position moves along. */
export interface MinedChange {
  readonly market_id: number
  readonly user_id: number
  readonly size: number
  readonly entry_notional: string
  readonly folded_margin: string
  readonly leverage: number
  readonly unmatched: boolean
}

/** Moves mined positions, each at most once. */
export async function moveMined(tx: Tx, changes: readonly MinedChange[]): Promise<void> {
  if (changes.length === 0) return
  await sql`
    with changes as (
      select * from json_to_recordset(${JSON.stringify(changes)}::json) as x (
        market_id integer, user_id bigint, size bigint, entry_notional numeric, folded_margin numeric, leverage integer,
        unmatched boolean
      )
    )
    insert into positions as p (
      user_id, market_id, size, entry_notional, folded_margin, leverage,
      matched_size, matched_entry_notional, matched_folded_margin, matched_leverage
    )
    select user_id, market_id, size, entry_notional, folded_margin, leverage,
      case when unmatched then size else 0 end, case when unmatched then entry_notional else 0 end,
      case when unmatched then folded_margin else 0 end, case when unmatched then leverage else 0 end
    from changes
    on conflict (user_id, market_id) do update set
      size = p.size + excluded.size,
      entry_notional = p.entry_notional + excluded.entry_notional,
      folded_margin = p.folded_margin + excluded.folded_margin,
      leverage = excluded.leverage,
      matched_size = p.matched_size + excluded.matched_size,
      matched_entry_notional = p.matched_entry_notional + excluded.matched_entry_notional,
      matched_folded_margin = p.matched_folded_margin + excluded.matched_folded_margin
  `.execute(tx)
}
