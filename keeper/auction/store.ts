/** The auction's reads and writes in Postgres: one transaction under the shard's lock. */
import { sql } from 'kysely'
import { changeReserved, FundsChanged, lockFunds, readFunds, reserveCovered } from '../../db/accounts.ts'
import {
  isSingle,
  loadPending,
  queueParts,
  type SingleRow,
  toSingleAction,
  touchedSql,
  usedReportSql,
} from '../../db/actions.ts'
import { removalsSql } from '../../db/adjustments.ts'
import { insertBatch } from '../../db/batches.ts'
import type { Db, Tx } from '../../db/client.ts'
import { DATABASE_NOW, type DatabaseTime } from '../../db/clock.ts'
import type { Fence } from '../../db/fence.ts'
import { checkFence } from '../../db/fence.ts'
import { insertFills } from '../../db/fills.ts'
import { fundingColumn, type StoredFunding, toFunding } from '../../db/funding.ts'
import { appendRows, lockShard, readRows, type ShardHead } from '../../db/journal.ts'
import { recordBatch, setHeldMark, setReserving } from '../../db/markets.ts'
import { keepReport, type StoredSession, sessionColumn, toSession } from '../../db/oracle-reports.ts'
import { loadLiveOrders, toOpenOrder, updateOrders } from '../../db/orders.ts'
import { pipelined, together } from '../../db/pipeline.ts'
import { loadPositions, matchedPosition, setMatchedPositions } from '../../db/positions.ts'
import { loadAverages, storeAverages } from '../../db/price-averages.ts'
import { type ProtectionColumns, toSchedule } from '../../db/price-protection.ts'
import { TERMS_SQL, type TermsColumns, toMarketTerms } from '../../db/terms.ts'
import { findUsers } from '../../db/users.ts'
import { anyOf } from '../../db/values.ts'
import type { MarketPlan, PlannedBatch } from '../../domain/auction/batch-plan.ts'
import type { MarketSnapshot } from '../../domain/auction/market-snapshot.ts'
import { type MarketRow, marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Funds } from '../../domain/orders/recompute-reservations.ts'
import type { OracleReport } from '../../domain/settlement/settlement.ts'
import type {
  Address,
  MarketId,
  Millis,
  Price,
  Quote,
  Seconds,
  Seq,
  Ticks,
  UserId,
} from '../../domain/units.ts'
import { loadBook } from './book-store.ts'
import type { AuctionStore, MarketTransaction } from './ports.ts'

/** More journal rows than this are not replayed: the book is reloaded. */
export const REPLAY_MOST = 20_000

interface SnapshotRow extends ProtectionColumns, TermsColumns {
  now: number
  head: number
  reserving_after: number | null
  last_batch_id: number
  last_batch_head: number
  last_as_of: number
  last_price: number | null
  last_price_at: number | null
  held_mark: bigint | null
  impact_notional: bigint | null
  report_price: bigint | null
  report_at: number | null
  signatures: string | null
  unsettled: number
  queued: number
  oldest: number | null
  used_price: bigint | null
  used_at: number | null
  touched: number[]
  removals: bigint
  pause_ends_at: number
  backstop: string | null
  backstop_cap: bigint
  funding: StoredFunding
  session: StoredSession
}

const toSnapshot = (spec: MarketSpec, row: SnapshotRow): MarketSnapshot => ({
  now: row.now as Millis,
  head: row.head as Seq,
  terms: toMarketTerms(row, spec),
  reservingAfter: row.reserving_after as UserId | null,
  lastBatchId: row.last_batch_id,
  lastBatchHead: row.last_batch_head as Seq,
  lastAsOf: row.last_as_of as Millis,
  priceProtection: toSchedule(row),
  lastPrice:
    row.last_price === null ? null : { price: row.last_price as Ticks, at: row.last_price_at as Millis },
  heldMark: row.held_mark as Price | null,
  impactNotional: row.impact_notional as Quote | null,
  report:
    row.report_price === null
      ? null
      : {
          price: row.report_price as Price,
          observedAt: row.report_at as Millis,
          signatures: row.signatures as `0x${string}`,
        },
  usedReport:
    row.used_price === null ? null : { price: row.used_price as Price, observedAt: row.used_at as Millis },
  touched: new Set(row.touched as UserId[]),
  removals: row.removals as Quote,
  pauseEndsAt: row.pause_ends_at as Seconds,
  backstop:
    row.backstop === null ? null : { address: row.backstop as Address, cap: row.backstop_cap as Quote },
  funding: toFunding(row.funding),
  session: toSession(row.session),
  backlog: { unsettled: row.unsettled, queued: row.queued, oldest: row.oldest as Millis | null },
})

export async function readSnapshot(
  db: Db | Tx,
  spec: MarketSpec,
  now: DatabaseTime,
): Promise<MarketSnapshot> {
  const { marketId } = spec
  const { rows } = await sql<SnapshotRow>`
    select ${now()} as now, s.head, ${sql.raw(TERMS_SQL)}, m.reserving_after, m.last_batch_id, m.last_batch_head, m.last_as_of, m.last_price, m.last_price_at, m.held_mark,
      m.price_protection, m.next_price_protection, m.next_price_protection_at, m.backstop, m.backstop_cap, m.impact_notional,
      coalesce((select bank_pause_ends_at from chain_progress limit 1), 0) as pause_ends_at,
      r.price as report_price, r.observed_at as report_at, r.signatures,
      pending.unsettled, pending.oldest, coalesce(newest.queue_no, 0) as queued,
      used.used_price, used.used_at, touched.touched, removals.removals, ${sql.raw(fundingColumn('m.market_id'))} as funding,
      ${sql.raw(sessionColumn('m.market_id'))} as session
    from markets m
    join shards s on s.shard = ${marketShard(marketId)}
    left join oracle_reports r on r.market_id = m.market_id and r.feed = 'index' and r.status <> 'halted'
    cross join lateral (
      select count(*) as unsettled, min(created_at) as oldest from actions
      where market_id = m.market_id and status in ('QUEUED', 'SIGNED', 'SUBMITTED')
    ) pending
    left join lateral (
      select queue_no from actions where market_id = m.market_id order by queue_no desc limit 1
    ) newest on true
    left join lateral (${sql.raw(usedReportSql('m.market_id'))}) used on true
    cross join lateral (${sql.raw(touchedSql('m.market_id'))}) touched
    cross join lateral (${sql.raw(removalsSql('m.market_id'))}) removals
    where m.market_id = ${marketId}
  `.execute(db)
  return toSnapshot(spec, rows[0] as SnapshotRow)
}

async function ordersOf(tx: Tx, marketId: MarketId, orderIds: readonly string[]) {
  if (orderIds.length === 0) return new Map()
  const rows = await tx
    .selectFrom('orders')
    .selectAll()
    .where('order_id', '=', anyOf('text', orderIds))
    .where('market_id', '=', marketId)
    .execute()
  return new Map(rows.map((row) => [row.seq as Seq, toOpenOrder(row)]))
}

async function slotsOf(tx: Tx, marketId: MarketId, accounts: ReadonlySet<UserId>) {
  const slots = new Map<UserId, Set<number>>()
  if (accounts.size === 0) return slots
  const rows = await tx
    .selectFrom('orders')
    .select(['user_id', 'partial_slot'])
    .where('market_id', '=', marketId)
    .where('user_id', '=', anyOf('bigint', accounts))
    .where('ended_at', 'is', null)
    .where('partial_slot', 'is not', null)
    .execute()
  for (const { user_id, partial_slot } of rows) {
    const taken = slots.get(user_id as UserId) ?? new Set()
    slots.set(user_id as UserId, taken.add(partial_slot as number))
  }
  return slots
}

async function storeBatch(tx: Tx, marketId: MarketId, batch: PlannedBatch, asOf: Millis): Promise<void> {
  await together([
    insertBatch(tx, marketId, batch, asOf),
    keepReport(tx, { marketId, feed: 'index' }, batch.oracle),
    insertFills(tx, marketId, batch),
    queueParts(tx, marketId, batch, asOf),
    recordBatch(tx, marketId, {
      batchId: batch.batchId,
      head: batch.head,
      asOf,
      price: batch.clearing.price,
    }),
    setMatchedPositions(tx, marketId, batch.positions),
  ])
}

async function keepEvidence(tx: Tx, marketId: MarketId, { plan, report }: Decided): Promise<void> {
  if (report !== null && plan.rows.some(({ kind }) => kind === 'order_triggered'))
    await keepReport(tx, { marketId, feed: 'index' }, report)
}

/** A plan, and the report of the snapshot on which it was decided. */
interface Decided {
  readonly plan: MarketPlan
  readonly report: OracleReport | null
}

/** Writes a plan without its reservations. All statements are sent at once: placements wait for the shard's lock meanwhile. */
async function save(tx: Tx, marketId: MarketId, head: ShardHead, decided: Decided): Promise<number> {
  const { plan } = decided
  const [, , , last] = await together([
    plan.batch === null ? Promise.resolve() : storeBatch(tx, marketId, plan.batch, plan.asOf),
    keepEvidence(tx, marketId, decided),
    updateOrders(tx, plan.orders),
    appendRows(tx, head, plan.rows),
  ])
  return last
}

const movesPositions = ({ kind }: SingleRow): boolean => kind === 'inherit_position' || kind === 'deleverage'

/**
 * `late`: accounts are read without a lock, and their reservations change with the last statement, which checks them. `early`: accounts are
 * locked as they are read, so that the decision is final.
 */
type AccountLocks = 'late' | 'early'

interface TransactionScope {
  readonly fence: Fence
  readonly now: DatabaseTime
}

async function openTransaction(
  tx: Tx,
  spec: MarketSpec,
  { fence, now, locks }: TransactionScope & { readonly locks: AccountLocks },
) {
  const { marketId } = spec
  const reservations = new Reservations(tx, locks)
  // In this order: what is read under the lock is read by statements after it.
  const [locked, , snapshot] = await together([
    lockShard(tx, marketShard(marketId)),
    checkFence(tx, fence),
    readSnapshot(tx, spec, now),
  ])
  let head = locked
  const append = async (...rows: readonly MarketRow[]) => {
    head = { ...head, head: await appendRows(tx, head, rows) }
  }
  const transaction: MarketTransaction = {
    snapshot,
    rowsAfter: async (seq) =>
      head.head - seq > REPLAY_MOST ? null : readRows(tx, head.shard, seq, REPLAY_MOST),
    async pendingMoves() {
      const rows = (await loadPending(tx, marketId)).filter(isSingle)
      return rows.filter(movesPositions).map(toSingleAction)
    },
    async users(addresses) {
      const users = await findUsers(tx, [...addresses])
      return new Map([...users].map(([address, account]) => [address, account as UserId]))
    },
    async freeOf(account) {
      const row = await tx
        .selectFrom('accounts')
        .select('free')
        .where('user_id', '=', account)
        .executeTakeFirst()
      return (row?.free ?? 0n) as Quote
    },
    loadBook: () => loadBook(tx, marketId),
    matchedPositions: (accounts) => loadPositions(tx, marketId, accounts, matchedPosition),
    funds: (accounts) => reservations.funds(accounts),
    orders: (orderIds) => ordersOf(tx, marketId, orderIds),
    liveOrders: (accounts) => loadLiveOrders(tx, marketId, accounts),
    slots: (accounts) => slotsOf(tx, marketId, accounts),
    async holdMark(mark) {
      await setHeldMark(tx, marketId, mark)
      await append({ kind: 'mark_held', mark: mark === null ? null : mark.toString() })
    },
    averages: () => loadAverages(tx, marketId),
    saveAverages: (averages) => storeAverages(tx, marketId, averages),
    async setReserving(fee, after) {
      await setReserving(tx, marketId, fee, after)
      await append({ kind: 'reserved_fee_changed', fee: fee.toString(), after })
    },
    save: async (plan) => {
      reservations.add(plan.reserved)
      head = { ...head, head: await save(tx, marketId, head, { plan, report: snapshot.report }) }
    },
  }
  return { transaction, reservations, hasWritten: () => head !== locked }
}

/** What a transaction adds to the reservations of accounts, over all that it saves. */
class Reservations {
  readonly #tx: Tx
  readonly #locks: AccountLocks
  readonly #deltas = new Map<UserId, bigint>()

  constructor(tx: Tx, locks: AccountLocks) {
    this.#tx = tx
    this.#locks = locks
  }

  add(changes: ReadonlyMap<UserId, bigint>): void {
    for (const [account, delta] of changes)
      this.#deltas.set(account, (this.#deltas.get(account) ?? 0n) + delta)
  }

  /** With what the transaction has added so far. */
  async funds(accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Funds>> {
    const read = this.#locks === 'early' ? lockFunds : readFunds
    const stored = await read(this.#tx, accounts)
    return new Map(
      [...stored].map(([account, { free, reserved }]): [UserId, Funds] => [
        account,
        { free, reserved: (reserved + (this.#deltas.get(account) ?? 0n)) as Quote },
      ]),
    )
  }

  /** The last statement of the transaction. */
  write(): Promise<void> {
    return this.#locks === 'early'
      ? changeReserved(this.#tx, this.#deltas)
      : reserveCovered(this.#tx, this.#deltas)
  }
}

/**
 * Runs `work` in a transaction that holds the lock of the market's shard, and of accounts only while their reservations are written and
 * committed. If an account has less by then, `work` runs a second and last time, with the accounts locked from the start.
 */
export async function inMarketTransaction<T>(
  db: Db,
  spec: MarketSpec,
  scope: TransactionScope,
  work: (transaction: MarketTransaction, tx: Tx) => Promise<T>,
): Promise<T> {
  const run = (locks: AccountLocks): Promise<T> =>
    db.transaction().execute((opened) =>
      pipelined(opened, async (tx) => {
        const { transaction, reservations, hasWritten } = await openTransaction(tx, spec, { ...scope, locks })
        const result = await work(transaction, tx)
        if (hasWritten()) await reservations.write()
        // Without a write the commit only releases locks: placements must not wait for the disk.
        else await sql`set local synchronous_commit = off`.execute(tx)
        return result
      }),
    )
  try {
    return await run('late')
  } catch (err) {
    if (!(err instanceof FundsChanged)) throw err
  }
  return run('early')
}

/** `now`: the time of each snapshot; tests set it. */
export const createAuctionStore = (db: Db, now: DatabaseTime = () => DATABASE_NOW): AuctionStore => ({
  snapshot: (spec) => readSnapshot(db, spec, now),
  averages: (marketId) => loadAverages(db, marketId),
  transaction: (spec, fence, work) => inMarketTransaction(db, spec, { fence, now }, work),
})
