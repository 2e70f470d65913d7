/** The `actions` table: each market's queue of operator actions, sent in the order of `queue_no`. The engine writes it. */
import type { Selectable } from 'kysely'
import type { SingleAction, SingleKind } from '../domain/actions/action.ts'
import { fromStoredPayload } from '../domain/actions/stored-action.ts'
import { invariant } from '../domain/invariant.ts'
import type { Millis } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'
import type { ActionsTable } from './schema.ts'
import { constant } from './values.ts'

export type ActionRow = Selectable<ActionsTable>

export type SingleRow = ActionRow & { readonly kind: SingleKind }

export const isSingle = (row: ActionRow): row is SingleRow => row.kind !== 'settle_part'

export function toSingleAction({ kind, as_of, payload }: SingleRow): SingleAction {
  invariant(payload !== null, 'a single action has a payload')
  return fromStoredPayload(kind, as_of as Millis, payload)
}

/**
 * SQL of the last report of the market's feed that an action uses, queued or mined, as `used_price` and `used_at`. `marketId`: an SQL
 * expression. The report of a finalization is of another feed.
 */
export const usedReportSql = (marketId: string): string => `
  select coalesce(b.oracle_price, (a.payload->'report'->>'price')::numeric) as used_price,
    coalesce(b.oracle_at, (a.payload->'report'->>'observed_at')::bigint) as used_at
  from actions a left join batches b on b.market_id = a.market_id and b.batch_id = a.batch_id
  where a.market_id = ${marketId} and a.kind <> 'finalize_market' and a.status not in ('REVERTED', 'VOIDED')
  order by a.queue_no desc limit 1
`

// ---------------------------------------------------------------------- from queued to mined

/** The market's actions that are neither mined nor ended, in their order. */
export const loadPending = (db: Db | Tx, marketId: number): Promise<ActionRow[]> =>
  db
    .selectFrom('actions')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('status', 'in', [constant('QUEUED'), constant('SIGNED'), constant('SUBMITTED')])
    .orderBy('queue_no')
    .execute()
