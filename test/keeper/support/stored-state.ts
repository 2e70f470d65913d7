/** The state of the exchange beside a test's database: the fold of its journals, and what the test has written into tables without a row. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../../db/client.ts'
import { readRows } from '../../../db/journal.ts'
import { apply, type Entry, marketIdOf } from '../../../domain/exchange/apply.ts'
import { createState, type ExchangeState } from '../../../domain/exchange/state.ts'
import { BANK } from '../../../domain/exchange/tables/chain.ts'
import type { ActionRow } from '../../../domain/exchange/tables/markets.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import { acceptedSeq } from '../../../domain/orders/order.ts'
import type {
  Address,
  MarketId,
  Millis,
  OrderHash,
  Quote,
  Rate,
  Seconds,
  Seq,
  Steps,
  Ticks,
  UserId,
} from '../../../domain/units.ts'
import { withMirror } from '../../support/mirror.ts'

/** Sequences that are wanted: of all rows. Orders that a test has inserted in masses leave gaps. */
const EVERY = 1e9

export class StoredState {
  readonly state: ExchangeState = createState()
  readonly #db: Db
  readonly #skipsInvalid: boolean

  /** `skipsInvalid`: the journal has rows that a test has written for readers alone, such as a batch without its terms. */
  constructor(db: Db, skipsInvalid = false) {
    this.#db = db
    this.#skipsInvalid = skipsInvalid
  }

  /** Brings the state to what the database has. */
  follow(): Promise<void> {
    return this.#db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute((tx) => this.followIn(tx))
  }

  /** Brings the state to what the transaction sees. */
  async followIn(tx: Tx): Promise<void> {
    await this.#adoptUsers(tx)
    await this.#fold(tx)
    await this.#adopt(tx)
    this.state.core.undo.clear()
  }

  /** For tests that run the jobs of a market on another specification than the one that it was listed with. */
  adoptSpec(spec: MarketSpec): void {
    const market = this.state.markets.need(String(spec.marketId))
    const stored = toStoredSpec(spec)
    if (JSON.stringify(market.spec) === JSON.stringify(stored)) return
    this.state.markets.put({ ...market, spec: stored })
    this.state.core.undo.clear()
  }

  /** Rows of a market behind those that the state has. */
  async newRows(shard: string): Promise<Entry[]> {
    const rows = await readRows(this.#db, shard, this.state.heads.get(marketIdOf(shard))?.seq ?? 0, 100_000)
    return rows.map(({ seq, row }) => ({ shard, seq, row }))
  }

  /** Applies what the snapshot has. The accounts come first: rows of markets name users that they have created. */
  async #fold(tx: Tx): Promise<void> {
    const { rows: shards } = await sql<{ shard: string }>`
      select shard from shards order by shard <> 'accounts', shard
    `.execute(tx)
    for (const { shard } of shards) {
      const after = this.state.heads.get(marketIdOf(shard))?.seq ?? 0
      const rows = await readRows(tx, shard, after, EVERY)
      if (rows.some(({ seq }, at) => seq !== after + 1 + at)) await this.#adoptOrders(tx)
      for (const { seq, row } of rows) {
        // Orders that a test has inserted in masses have sequences without rows.
        const head = this.state.heads.get(marketIdOf(shard))?.seq ?? 0
        if (seq !== head + 1) this.#setHead(shard, seq - 1)
        this.#apply({ shard, seq, row })
      }
    }
    const { rows: heads } = await sql<{
      shard: string
      head: number
    }>`select shard, head from shards`.execute(tx)
    for (const { shard, head } of heads) {
      if (head === (this.state.heads.get(marketIdOf(shard))?.seq ?? 0)) continue
      await this.#adoptOrders(tx)
      this.#setHead(shard, head)
    }
  }

  #apply(entry: Entry): void {
    const { undo } = this.state.core
    const before = undo.mark
    try {
      apply(this.state, entry)
    } catch (error) {
      if (!this.#skipsInvalid) throw error
      undo.undoTo(before)
      this.#setHead(entry.shard, entry.seq)
    }
  }

  #setHead(shard: string, seq: number): void {
    this.state.heads.put({ marketId: marketIdOf(shard), seq: seq as Seq, releasedUpTo: 0 as Seq })
  }

  /** Adopts users that the test has inserted without a row. */
  async #adoptUsers(tx: Tx): Promise<void> {
    const rows = await readRows(tx, ACCOUNTS_SHARD, this.state.heads.get(0 as MarketId)?.seq ?? 0, 1_000_000)
    const created = new Set(rows.flatMap(({ row }) => (row.kind === 'user_created' ? [row.user_id] : [])))
    for (const { user_id, address, created_at } of await tx.selectFrom('users').selectAll().execute()) {
      const userId = user_id as UserId
      if (created.has(user_id) || this.state.users.has(userId)) continue
      this.state.users.put({ userId, address: address as Address, createdAt: created_at as Millis })
      const none = { free: 0n as Quote, pendingWithdrawal: 0n as Quote, reserved: 0n as Quote }
      this.state.accounts.put({ userId, ...none })
    }
  }

  async #adopt(tx: Tx): Promise<void> {
    await this.#adoptAccounts(tx)
    await this.#adoptMarkets(tx)
    await this.#adoptActions(tx)
    await this.#adoptChain(tx)
  }

  async #adoptAccounts(tx: Tx): Promise<void> {
    for (const row of await withMirror(tx).selectFrom('accounts').selectAll().execute()) {
      this.state.accounts.put({
        userId: row.user_id as UserId,
        free: row.free as Quote,
        pendingWithdrawal: row.pending_withdrawal as Quote,
        reserved: row.reserved as Quote,
      })
    }
    for (const row of await withMirror(tx).selectFrom('positions').selectAll().execute()) {
      this.state.positions.put({
        userId: row.user_id as UserId,
        marketId: row.market_id as MarketId,
        size: row.size as Steps,
        entryNotional: row.entry_notional as Quote,
        foldedMargin: row.folded_margin as Quote,
        leverage: row.leverage,
        matchedSize: row.matched_size as Steps,
        matchedEntryNotional: row.matched_entry_notional as Quote,
        matchedFoldedMargin: row.matched_folded_margin as Quote,
        matchedLeverage: row.matched_leverage,
      })
    }
  }

  async #adoptMarkets(tx: Tx): Promise<void> {
    const queued = await lastQueueNos(tx)
    for (const row of await tx.selectFrom('markets').selectAll().execute()) {
      const before = this.state.markets.need(String(row.market_id))
      const text = (amount: bigint | null): string | null => (amount === null ? null : amount.toString())
      this.state.markets.put({
        ...before,
        mode: row.mode,
        terms: row.terms,
        fee_periods: row.fee_periods,
        price_protection: row.price_protection.toString(),
        next_price_protection: text(row.next_price_protection),
        next_price_protection_at: row.next_price_protection_at,
        impact_notional: text(row.impact_notional),
        expires_at: row.expires_at,
        settling_at: row.settling_at,
        dispute_window: row.dispute_window,
        backstop: row.backstop,
        backstop_cap: row.backstop_cap.toString(),
      })
      const progress = this.state.progress.need(row.market_id)
      this.state.progress.put({
        ...progress,
        reservedFee: row.reserved_fee as Rate,
        lastActionId: row.last_action_id,
        lastBatchId: row.last_batch_id,
        lastBatchHead: row.last_batch_head as Seq,
        lastAsOf: row.last_as_of as Millis,
        lastPrice: row.last_price as Ticks | null,
        lastPriceAt: row.last_price_at as Millis | null,
        lastQueueNo: queued.get(row.market_id) ?? 0,
      })
      await this.#adoptBatch(tx, row.market_id, row.last_batch_id)
    }
  }

  /** A test has inserted the batch without a row. */
  async #adoptBatch(tx: Tx, marketId: number, batchId: number): Promise<void> {
    if (batchId === 0 || this.state.batches.get(`${marketId}-${batchId}`) !== undefined) return
    const row = await tx
      .selectFrom('batches')
      .selectAll()
      .where('market_id', '=', marketId)
      .where('batch_id', '=', batchId)
      .executeTakeFirst()
    if (row !== undefined) this.state.batches.put({ ...withoutBigints(row), changed: 0 } as never)
  }

  /** Tests without a chain end actions by themselves. */
  async #adoptActions(tx: Tx): Promise<void> {
    for (const row of await tx.selectFrom('actions').selectAll().execute()) {
      const { market_id, queue_no, kind, batch_id, part, payload, touches, as_of } = row
      const { status, action_id, relayer, nonce, failure } = row
      const before = this.state.actions.get(`${market_id}-${queue_no}`)
      const after: ActionRow = {
        market_id,
        queue_no,
        kind,
        batch_id,
        part,
        payload,
        touches: touches.map(Number),
        as_of,
        status,
        action_id,
        relayer,
        nonce,
        failure,
        changed: before?.changed ?? 0,
      }
      if (before?.status !== status || before.failure !== failure) this.state.actions.put(after)
    }
  }

  async #adoptChain(tx: Tx): Promise<void> {
    for (const row of await tx.selectFrom('adjustment_attempts').selectAll().execute())
      if (this.state.attempts.get(row.adjustment_id)?.status !== row.status)
        this.state.attempts.put(withoutBigints(row) as never)
    for (const { funding_index, rate, ...row } of await tx.selectFrom('funding_states').selectAll().execute())
      this.state.fundings.put({ ...row, funding_index: funding_index.toString(), rate: rate.toString() })
    for (const { basis, ...row } of await tx.selectFrom('price_averages').selectAll().execute())
      this.state.averages.put({ ...row, basis: basis.toString() })
    const bank = await tx.selectFrom('chain_progress').select('bank_pause_ends_at').executeTakeFirst()
    if (bank !== undefined && bank.bank_pause_ends_at !== this.state.bank.get(BANK)?.pause_ends_at)
      this.state.bank.put({ pause_ends_at: bank.bank_pause_ends_at })
  }

  async #adoptOrders(tx: Tx): Promise<void> {
    for (const row of await tx.selectFrom('orders').selectAll().where('ended_at', 'is', null).execute()) {
      const accepted = acceptedSeq(row.order_id)
      const marketId = row.market_id as MarketId
      if (this.state.orders.has(marketId, accepted)) continue
      this.state.orders.put({
        marketId,
        accepted,
        seq: row.seq as Seq,
        account: row.user_id as UserId,
        side: row.side,
        type: row.type,
        price: row.price as Ticks,
        quantity: row.quantity as Steps,
        trigger: row.trigger as Ticks,
        leverage: row.leverage,
        reduceOnly: row.reduce_only,
        timeInForce: row.time_in_force,
        postOnly: row.post_only,
        unused: row.unused as Steps,
        replaces: 0 as Seq,
        bracket: row.bracket,
        dormant: false,
        forced: row.forced,
        expiration: row.expiration as Seconds,
        aliveUntil: row.alive_until as Seconds,
        acceptedAt: row.accepted_at as Millis,
        salt: row.salt,
        labelHash: 0,
        status: row.status,
        statusReason: row.status_reason,
        closingReason: row.closing_reason as never,
        filled: row.filled as Steps,
        filledValue: BigInt(row.filled) * BigInt(row.price),
        fee: 0n as Quote,
        settling: row.settling as Steps,
        openable: row.openable as Steps,
        reservedPrice: row.reserved_price as Ticks,
        reserved: row.reserved as Quote,
        held: row.held as Quote,
        partialSlot: row.partial_slot,
        triggeredAt: null,
        widenings: 0,
        endedAt: null,
        endedSeq: 0 as Seq,
      })
      this.state.signatures.put({
        marketId,
        accepted,
        hash: `0x${accepted.toString(16).padStart(64, '0')}` as OrderHash,
        signer: null,
        signature: null,
        clientOrderId: null,
        builder: null,
      })
    }
  }
}

async function lastQueueNos(tx: Tx): Promise<ReadonlyMap<number, number>> {
  const rows = await tx
    .selectFrom('actions')
    .select(({ fn }) => ['market_id', fn.max('queue_no').as('last')])
    .groupBy('market_id')
    .execute()
  return new Map(rows.map(({ market_id, last }) => [market_id, Number(last)]))
}

const withoutBigints = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? value.toString() : value]),
  )
