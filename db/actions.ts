/**
 * The `actions` table: each market's queue of operator actions, sent in the order of `queue_no`. Actions are queued under the lock of the
 * market's shard.
 */
import { type Selectable, sql } from 'kysely'
import { reportsOf, type SingleAction, type SingleKind, touchedAccounts } from '../domain/actions/action.ts'
import { type FundingStep, fundingStepOf as stepOf } from '../domain/actions/queue.ts'
import { fromStoredPayload, toStoredPayload } from '../domain/actions/stored-action.ts'
import { invariant } from '../domain/invariant.ts'
import type { ActionQueued } from '../domain/journal/queue-rows.ts'
import type { OracleReport } from '../domain/settlement/settlement.ts'
import type { Millis, Price } from '../domain/units.ts'
import { adjustingSql } from './adjustments.ts'
import type { Db, Tx } from './client.ts'
import type { PartKey } from './fills.ts'
import { keepReport } from './oracle-reports.ts'
import type { ActionsTable } from './schema.ts'
import { anyOf, constant } from './values.ts'

export type ActionRow = Selectable<ActionsTable>

// ---------------------------------------------------------------------- kinds

/** The part of a batch that the action settles; null for a single action. */
export const partOf = ({ batch_id, part }: ActionRow): PartKey | null =>
  batch_id === null || part === null ? null : { batch_id, part }

/** The parts among the actions. */
export const partsOf = (actions: readonly ActionRow[]): PartKey[] =>
  actions.map(partOf).filter((part) => part !== null)

export type SingleRow = ActionRow & { readonly kind: SingleKind }

export const isSingle = (row: ActionRow): row is SingleRow => row.kind !== 'settle_part'

export function toSingleAction({ kind, as_of, payload }: SingleRow): SingleAction {
  invariant(payload !== null, 'a single action has a payload')
  return fromStoredPayload(kind, as_of as Millis, payload)
}

/** What funding needs of the action. */
export const fundingStepOf = (row: ActionRow): FundingStep => ({
  asOf: row.as_of as Millis,
  sets: isSingle(row) ? stepOf(toSingleAction(row)).sets : null,
})

// ---------------------------------------------------------------------- queueing

/** Queues one action per part of the batch, behind those of the market that are queued already. */
export async function queueParts(
  tx: Tx,
  marketId: number,
  { batchId, parts }: { readonly batchId: number; readonly parts: number },
  asOf: Millis,
): Promise<void> {
  await sql`
    insert into actions (market_id, queue_no, kind, batch_id, part, as_of, status, created_at)
    select ${marketId}, coalesce((select max(queue_no) from actions where market_id = ${marketId}), 0) + part,
      'settle_part', ${batchId}, part, ${asOf}, 'QUEUED', ${asOf}
    from generate_series(1, ${parts}::integer) part
  `.execute(tx)
}

/** Queues a single action behind all others of the market, and keeps its reports as evidence. Returns its row for the journal. */
export async function queueSingle(tx: Tx, marketId: number, action: SingleAction): Promise<ActionQueued> {
  for (const { feed, report } of reportsOf(action)) await keepReport(tx, { marketId, feed }, report)
  const payload = toStoredPayload(action)
  const { rows } = await sql<Pick<ActionQueued, 'queue_no' | 'touches'>>`
    insert into actions (market_id, queue_no, kind, payload, touches, as_of, status, created_at)
    select ${marketId}, coalesce((select max(queue_no) from actions where market_id = ${marketId}), 0) + 1, ${action.kind},
      ${JSON.stringify(payload)}::jsonb,
      array(select user_id from users where address = any(${touchedAccounts(action)}::text[]) order by user_id),
      ${action.asOf}, 'QUEUED', ${action.asOf}
    returning queue_no, touches
  `.execute(tx)
  const { queue_no, touches } = rows[0] as (typeof rows)[number]
  // An array of bigints is read as texts.
  const accounts = touches.map(Number)
  return {
    kind: 'action_queued',
    queue_no,
    action: action.kind,
    payload,
    touches: accounts,
    as_of: action.asOf,
  }
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

/**
 * The report that the market's action with this id uses or will use. Null if it has none, if it reports on another feed, or if the id
 * is not of an action that is signed or mined.
 */
export async function reportOfAction(
  tx: Tx,
  marketId: number,
  actionId: number,
): Promise<Pick<OracleReport, 'price' | 'observedAt'> | null> {
  const { rows } = await sql<{ price: bigint | null; observed_at: number | null }>`
    select coalesce(b.oracle_price, (a.payload->'report'->>'price')::numeric) as price,
      coalesce(b.oracle_at, (a.payload->'report'->>'observed_at')::bigint) as observed_at
    from actions a left join batches b on b.market_id = a.market_id and b.batch_id = a.batch_id
    where a.market_id = ${marketId} and a.action_id = ${actionId} and a.kind <> 'finalize_market'
      and a.status in ('SIGNED', 'SUBMITTED', 'MINED')
    limit 1
  `.execute(tx)
  const [row] = rows
  if (row === undefined || row.price === null || row.observed_at === null) return null
  return { price: row.price as Price, observedAt: row.observed_at as Millis }
}

/**
 * SQL of the accounts whose positions a pending single action of the market or an adjustment in flight may change, as JSON. `marketId`: an SQL
 * expression.
 */
export const touchedSql = (marketId: string): string => `
  select coalesce(json_agg(distinct account), '[]') as touched from (
    select account from actions a cross join unnest(a.touches) account
    where a.market_id = ${marketId} and a.status in ('QUEUED', 'SIGNED', 'SUBMITTED')
    union all ${adjustingSql(marketId)}
  ) both_kinds
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

export interface ActionNumbers {
  readonly action_id: number
  readonly relayer: string
  readonly nonce: number
}

/** The action is signed with its reserved numbers. False if it no longer waits for that. */
export async function signAction(
  tx: Tx,
  { market_id, queue_no }: Pick<ActionRow, 'market_id' | 'queue_no'>,
  nonce: number,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('actions')
    .set({ status: 'SIGNED' })
    .where('market_id', '=', market_id)
    .where('queue_no', '=', queue_no)
    .where('nonce', '=', nonce)
    .where('status', '=', constant('QUEUED'))
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** The action that was signed with this nonce of this key has been broadcast. Undefined if it was marked before. */
export async function submitAction(
  tx: Tx,
  marketId: number,
  { relayer, nonce }: Pick<ActionNumbers, 'relayer' | 'nonce'>,
): Promise<ActionRow | undefined> {
  return tx
    .updateTable('actions')
    .set({ status: 'SUBMITTED' })
    .where('market_id', '=', marketId)
    .where('relayer', '=', relayer)
    .where('nonce', '=', nonce)
    .where('status', '=', constant('SIGNED'))
    .returningAll()
    .executeTakeFirst()
}

// ---------------------------------------------------------------------- failures

/** Why the action was dropped, or had no effect. */
export async function noteFailure(
  tx: Tx,
  { market_id, queue_no }: Pick<ActionRow, 'market_id' | 'queue_no'>,
  failure: string,
): Promise<void> {
  await tx
    .updateTable('actions')
    .set({ failure })
    .where('market_id', '=', market_id)
    .where('queue_no', '=', queue_no)
    .execute()
}

/** `REVERTED`: the action that the chain refused. `VOIDED`: those behind it, which can no longer be mined, and one that was never sent. */
export async function endActions(
  tx: Tx,
  marketId: number,
  queueNos: readonly number[],
  status: 'REVERTED' | 'VOIDED',
): Promise<void> {
  await tx
    .updateTable('actions')
    .set({ status })
    .where('market_id', '=', marketId)
    .where('queue_no', '=', anyOf('bigint', queueNos))
    .execute()
}
