/** Reads liquidations: mined steps of all accounts, and the steps that concern one account. */
import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import type { ReadLiquidationStepsTable, ReadLiquidationsTable } from '../../db/read-risk-schema.ts'
import type { Cursor } from '../wire/cursor.ts'
import type { TimeRange } from '../wire/times.ts'

/** Tables that `minedLiquidations` reads. */
export const LIQUIDATION_TABLES = ['read.liquidations'] as const
/** Tables that `stepsOfUser` reads. */
export const STEP_TABLES = ['read.liquidation_steps', 'read.liquidation_legs'] as const

export type LiquidationRow = Selectable<ReadLiquidationsTable>

/** The range is of the time of the block, or of the decision. */
export interface LiquidationFilter extends TimeRange {
  readonly marketId: number | undefined
  readonly limit: number
  /** The last row of the page before. */
  readonly after: Cursor | null
}

/** Newest first; one row more than `limit` if there is a next page. */
export async function minedLiquidations(
  db: Db | Tx,
  { marketId, limit, ...range }: LiquidationFilter,
): Promise<LiquidationRow[]> {
  const place = { at: sql`at`, id: sql`id` }
  const { rows } = await sql<LiquidationRow>`
    select * from read.liquidations where ${isIn(place, marketId, range)} ${newestIn(place, marketId)} limit ${limit + 1}
  `.execute(db)
  return rows
}

const earlier = (a: Cursor, b: Cursor | null): Cursor => {
  if (b === null) return a
  return a.at < b.at || (a.at === b.at && a.id < b.id) ? a : b
}

interface Place {
  readonly at: RawBuilder<unknown>
  readonly id: RawBuilder<unknown>
}

const LATEST = Number.MAX_SAFE_INTEGER

/**
 * Filters by market as part of the range, not by equality: for "any market" the plan could otherwise scan by time alone
 * and read all rows for a market that has none.
 */
function isIn(
  { at, id }: Place,
  marketId: number | undefined,
  { from, to, after }: Omit<LiquidationFilter, 'marketId' | 'limit'>,
) {
  const end = earlier({ at: to ?? LATEST, id: '' }, after)
  return marketId === undefined
    ? sql`(${at}, ${id}) >= (${from ?? 0}::bigint, '') and (${at}, ${id}) < (${end.at}::bigint, ${end.id}::text)`
    : sql`(market_id, ${at}, ${id}) >= (${marketId}::bigint, ${from ?? 0}::bigint, '')
        and (market_id, ${at}, ${id}) < (${marketId}::bigint, ${end.at}::bigint, ${end.id}::text)`
}

const newestIn = ({ at, id }: Place, marketId: number | undefined) =>
  sql`order by ${marketId === undefined ? sql`` : sql`market_id desc, `}${at} desc, ${id} desc`

/** A step with the legs that its reader may see. */
export interface StepRow extends Selectable<ReadLiquidationStepsTable> {
  readonly role: 'owner' | 'counterparty'
  readonly legs: readonly { readonly place: number; readonly steps: number; readonly score: string }[]
}

/**
 * Steps of the account's own liquidations, with all legs, and those in which it was a counterparty, with its own leg. Newest first; one row
 * more than `limit` if there is a next page.
 */
export async function stepsOfUser(db: Db | Tx, userId: number, page: LiquidationFilter): Promise<StepRow[]> {
  const { rows } = await sql<StepRow>`
    select s.*, p.role, (
      select coalesce(json_agg(json_build_object('place', l.place, 'steps', l.steps, 'score', l.score::text) order by l.place), '[]')
      from read.liquidation_legs l where l.step_id = p.id and (p.role = 'owner' or l.user_id = ${userId})
    ) as legs
    from (
      select * from (
        ${placesOf('owner', sql`id`, sql`read.liquidation_steps`, userId, page)} union all
        ${placesOf('counterparty', sql`step_id`, sql`read.liquidation_legs`, userId, page)}
      ) places order by at desc, id desc limit ${page.limit + 1}
    ) p
    join read.liquidation_steps s on s.id = p.id
    order by p.at desc, p.id desc
  `.execute(db)
  return rows
}

function placesOf(
  role: StepRow['role'],
  id: RawBuilder<unknown>,
  table: RawBuilder<unknown>,
  userId: number,
  { marketId, limit, ...range }: LiquidationFilter,
) {
  const place = { at: sql`at`, id }
  return sql`
    (
      select ${id} as id, at, ${role} as role from ${table}
      where user_id = ${userId} and ${isIn(place, marketId, range)}
      ${newestIn(place, marketId)} limit ${limit + 1}
    )
  `
}
