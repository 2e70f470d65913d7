/** What tests write into tables of the exchange beside the engine, adopted into its state: rows that another transaction has changed, and rows that are gone. */
import { type Selectable, sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import type { OrdersTable } from '../../db/schema.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import { keyOfLiquidation, keyOfSessionKey } from '../../domain/exchange/tables/chain.ts'
import type { OrderRow } from '../../domain/exchange/tables/orders.ts'
import { acceptedSeq } from '../../domain/orders/order.ts'
import type { MarketId, Millis, Quote, Seq, Steps, UserId } from '../../domain/units.ts'
import { withMirror } from './mirror.ts'

/** Documents of the state that have the columns of these tables. */
const DOCUMENTS = {
  sessionKeys: 'session_keys',
  forwarderNonces: 'forwarder_nonces',
  nonceFloors: 'margin_nonce_floors',
  usedNonces: 'used_margin_nonces',
  relays: 'relay_operations',
} as const satisfies Partial<Record<keyof ExchangeState, string>>

type StoredOrder = Selectable<OrdersTable>

export class AdoptedTables {
  readonly #state: ExchangeState
  /** The transaction that adopted last: rows of later ones were written beside the engine, whose own transactions begin with an adoption. */
  #since = 0n

  constructor(state: ExchangeState) {
    this.#state = state
  }

  /** In the transaction that will store the engine's next rows. */
  async adopt(tx: Tx): Promise<void> {
    for (const name of Object.keys(DOCUMENTS) as (keyof typeof DOCUMENTS)[])
      for (const row of await this.#changed<object>(tx, DOCUMENTS[name]))
        this.#state[name].put(withoutBigints(row) as never)
    for (const row of await this.#changed<StoredOrder>(tx, 'orders')) this.#adoptOrder(row)
    for (const { market_id, spec } of await this.#changed<{ market_id: number; spec: never }>(tx, 'markets'))
      this.#state.markets.put({ ...this.#state.markets.need(String(market_id)), spec })
    await this.#adoptLiquidations(tx)
    await this.#removeAbsent(tx)
    const { rows } = await sql<{ id: string }>`select pg_current_xact_id()::text as id`.execute(tx)
    this.#since = BigInt(rows[0]?.id as string)
  }

  async #changed<Row>(tx: Tx, table: string): Promise<readonly Row[]> {
    const { rows } = await sql<Row>`
      select * from ${sql.table(table)} where xmin::text::bigint > ${this.#since.toString()}::bigint
    `.execute(tx)
    return rows
  }

  /** Only what changes after the acceptance of an order. */
  #adoptOrder(row: StoredOrder): void {
    const marketId = row.market_id as MarketId
    const before = this.#state.orders.get(marketId, acceptedSeq(row.order_id))
    if (before === undefined) return
    const after: OrderRow = {
      ...before,
      status: row.status,
      statusReason: row.status_reason,
      closingReason: row.closing_reason as OrderRow['closingReason'],
      forced: row.forced,
      filled: row.filled as Steps,
      settling: row.settling as Steps,
      openable: row.openable as Steps,
      reserved: row.reserved as Quote,
      held: row.held as Quote,
      partialSlot: row.partial_slot,
      endedAt: row.ended_at as Millis | null,
      endedSeq: row.ended_at === null ? (0 as Seq) : this.#state.heads.need(marketId).seq,
    }
    const isSame = (Object.keys(after) as (keyof OrderRow)[]).every(
      (name) => name === 'endedSeq' || after[name] === before[name],
    )
    if (!isSame) this.#state.orders.put(after)
  }

  async #adoptLiquidations(tx: Tx): Promise<void> {
    const rows = await this.#changed<Record<string, never>>(tx, 'liquidations')
    for (const row of rows)
      this.#state.liquidations.put({
        marketId: row.market_id as never,
        account: row.user_id as never,
        number: row.number as never,
        stage: row.stage as never,
        startSize: row.start_size as never,
        orderId: row.order_id as never,
        widenings: row.widenings as never,
        resting: row.resting as never,
        queueNo: row.queue_no as never,
        attempts: row.attempts as never,
        failedKind: row.failed_kind as never,
        retryAt: row.retry_at as never,
        seenSeq: row.seen_seq as never,
        startedAt: row.started_at as never,
      })
  }

  async #removeAbsent(tx: Tx): Promise<void> {
    const keys = await tx.selectFrom('session_keys').select(['owner', 'key']).execute()
    removeOthers(this.#state.sessionKeys, keyOfSessionKey, keys.map(keyOfSessionKey))
    const running = await tx.selectFrom('liquidations').select(['market_id', 'user_id']).execute()
    removeOthers(
      this.#state.liquidations,
      ({ marketId, account }) => keyOfLiquidation(marketId, account),
      running.map(({ market_id, user_id }) => keyOfLiquidation(market_id, user_id)),
    )
    const positions = await withMirror(tx).selectFrom('positions').select(['user_id', 'market_id']).execute()
    const left = new Set(positions.map(({ user_id, market_id }) => `${user_id}-${market_id}`))
    for (const { userId, marketId } of [...this.#state.positions.rows()])
      if (!left.has(`${userId}-${marketId}`))
        this.#state.positions.remove(userId as UserId, marketId as MarketId)
  }
}

interface Documents<Row> {
  rows(): IterableIterator<Row>
  remove(key: string): void
}

function removeOthers<Row>(
  table: Documents<Row>,
  keyOf: (row: Row) => string,
  stored: readonly string[],
): void {
  const left = new Set(stored)
  for (const key of [...table.rows()].map(keyOf)) if (!left.has(key)) table.remove(key)
}

const withoutBigints = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? value.toString() : value]),
  )
