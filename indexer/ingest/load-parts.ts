/** Reads what several mined parts apply to, with one statement per table. The caller holds the locks of their shards and of the accounts. */
import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { type MarketPart, partRows } from '../../db/fills.ts'
import { minedPosition } from '../../db/positions.ts'
import type { PositionsTable } from '../../db/schema.ts'
import { anyOf } from '../../db/values.ts'
import type { PartMined } from '../../domain/chain/facts.ts'
import type { Position } from '../../domain/positions/position.ts'
import type { PartExpectation } from '../../domain/settlement/receipt.ts'
import type { LedgerEntry, UnsettledFill } from '../../domain/settlement/settle-part.ts'
import type { SettlingOrder } from '../../domain/settlement/settling-order.ts'
import type { Address } from '../../domain/units.ts'
import { selectOrders, toSettlingOrder } from './settling-orders.ts'
import { loadLedger, toUnsettledFill } from './write-part.ts'

/** What a part was sent for, except its fills. */
type PartTerms = Omit<PartExpectation, 'kind' | 'fills'>

export interface StoredOrder {
  readonly marketId: number
  readonly order: SettlingOrder
}

export interface LoadedParts {
  readonly ledger: Map<number, LedgerEntry>
  /** Mined positions by market and account. */
  readonly positions: ReadonlyMap<number, Map<Address, Position>>
  /** The orders of the parts' fills, and those in `leaving`, by id. */
  readonly orders: Map<string, StoredOrder>
  /** Ids of orders that left the book with a position which a fill of one of the parts closed, by market and sequence. */
  readonly leaving: readonly string[]
  readonly terms: ReadonlyMap<string, PartTerms>
}

export const partKey = ({ spec, settled }: PartMined): string => keyOf(partOf({ spec, settled }))

const keyOf = ({ market_id, batch_id, part }: MarketPart): string => `${market_id}-${batch_id}-${part}`

export const partOf = ({ spec, settled }: Pick<PartMined, 'spec' | 'settled'>): MarketPart => ({
  market_id: spec.marketId,
  batch_id: settled.batchId,
  part: settled.part,
})

const inParts = (parts: readonly PartMined[]): RawBuilder<unknown> =>
  sql`${partRows(parts.map(partOf))} x (market_id, batch_id, part)`

/** The fills that wait for each part, by `partKey`. */
export async function waitingFills(
  tx: Tx,
  parts: readonly PartMined[],
): Promise<Map<string, UnsettledFill[]>> {
  interface Row extends MarketPart {
    readonly fill_id: string
    readonly order_id: string
    readonly side: UnsettledFill['side']
    readonly steps: number
    readonly taker_steps: number
    readonly held: bigint
    readonly maker: string
    readonly salt: number
    readonly forced: boolean
  }
  const { rows } = await sql<Row>`
    select f.market_id, f.batch_id, f.part, f.fill_id, f.order_id, f.side, f.steps, f.taker_steps, f.held,
      o.maker, o.salt, o.forced
    from ${inParts(parts)} join fills f using (market_id, batch_id, part) join orders o on o.order_id = f.order_id
    where f.status in ('MATCHED', 'SUBMITTED', 'RETRYING')
    order by f.market_id, f.batch_id, f.part, f.place
  `.execute(tx)
  const fills = new Map<string, UnsettledFill[]>()
  for (const [key, own] of Map.groupBy(rows, keyOf)) fills.set(key, own.map(toUnsettledFill))
  return fills
}

/** `waiting`: the fills of these parts. `users`: the ids of all their accounts. */
export async function loadParts(
  tx: Tx,
  parts: readonly PartMined[],
  waiting: readonly UnsettledFill[],
  users: ReadonlyMap<Address, number>,
): Promise<LoadedParts> {
  const accounts = accountsOf(parts, users)
  const leaving = await leavingIds(tx, accounts, waiting)
  const forced = waiting.filter(({ isForced }) => isForced).map(({ orderId }) => orderId)
  return {
    ledger: await loadLedger(tx, [...new Set(accounts.map(({ userId }) => userId))]),
    positions: await loadMarketPositions(tx, accounts),
    orders: await loadStored(tx, new Set([...(await settledIds(tx, parts)), ...forced, ...leaving])),
    leaving,
    terms: await loadTermsOf(tx, parts),
  }
}

interface MarketAccount {
  readonly marketId: number
  readonly userId: number
  readonly address: Address
}

function accountsOf(parts: readonly PartMined[], users: ReadonlyMap<Address, number>): MarketAccount[] {
  const accounts = new Map<string, MarketAccount>()
  for (const { spec, settled } of parts) {
    for (const { maker: address } of settled.fills) {
      const account = { marketId: spec.marketId, userId: users.get(address) as number, address }
      accounts.set(`${spec.marketId}-${address}`, account)
    }
  }
  return [...accounts.values()]
}

const inAccounts = (accounts: readonly MarketAccount[]): RawBuilder<unknown> => sql`
  unnest(${accounts.map(({ marketId }) => marketId)}::integer[], ${accounts.map(({ userId }) => userId)}::bigint[])
    as x (market_id, user_id)`

async function loadMarketPositions(
  tx: Tx,
  accounts: readonly MarketAccount[],
): Promise<Map<number, Map<Address, Position>>> {
  const markets = new Set(accounts.map(({ marketId }) => marketId))
  const positions = new Map([...markets].map((marketId) => [marketId, new Map<Address, Position>()]))
  const addresses = new Map(accounts.map(({ userId, address }) => [userId, address]))
  const { rows } = await sql<Selectable<PositionsTable>>`
    select p.* from ${inAccounts(accounts)} join positions p using (market_id, user_id)
  `.execute(tx)
  for (const row of rows) {
    positions.get(row.market_id)?.set(addresses.get(row.user_id) as Address, minedPosition(row))
  }
  return positions
}

/** The ids of the orders that the parts name by maker and salt. */
async function settledIds(tx: Tx, parts: readonly PartMined[]): Promise<string[]> {
  const named = parts.flatMap(({ spec, settled }) =>
    settled.fills
      .filter(({ isForced }) => !isForced)
      .map(({ maker, salt }) => ({ marketId: spec.marketId, maker, salt: salt.toString() })),
  )
  const { rows } = await sql<{ order_id: string }>`
    select o.order_id
    from unnest(
      ${named.map(({ marketId }) => marketId)}::integer[], ${named.map(({ maker }) => maker)}::text[],
      ${named.map(({ salt }) => salt)}::bigint[]
    ) as x (market_id, maker, salt) join orders o using (market_id, maker, salt)
    where not o.forced
  `.execute(tx)
  return rows.map(({ order_id }) => order_id)
}

/** The ids of live orders that left the book with a position which one of the fills closed, by market and sequence. */
async function leavingIds(
  tx: Tx,
  accounts: readonly MarketAccount[],
  fills: readonly UnsettledFill[],
): Promise<string[]> {
  const { rows } = await sql<{ order_id: string; market_id: number; user_id: number }>`
    select order_id, market_id, user_id from orders
    where ended_at is null and closed_by = any(${fills.map(({ fillId }) => fillId)}::text[])
    order by market_id, seq
  `.execute(tx)
  const known = new Set(accounts.map(({ marketId, userId }) => `${marketId}-${userId}`))
  return rows
    .filter(({ market_id, user_id }) => known.has(`${market_id}-${user_id}`))
    .map(({ order_id }) => order_id)
}

async function loadStored(tx: Tx, orderIds: Iterable<string>): Promise<Map<string, StoredOrder>> {
  const rows = await selectOrders(tx)
    .select('market_id')
    .where('order_id', '=', anyOf('text', orderIds))
    .execute()
  return new Map(rows.map((row) => [row.order_id, { marketId: row.market_id, order: toSettlingOrder(row) }]))
}

async function loadTermsOf(tx: Tx, parts: readonly PartMined[]): Promise<Map<string, PartTerms>> {
  interface Row extends MarketPart {
    readonly parts: number
    readonly price: number
    readonly as_of: number
    readonly action_id: number | null
  }
  const { rows } = await sql<Row>`
    select x.market_id, x.batch_id, x.part, b.parts, b.price, b.as_of, (
      select a.action_id from actions a
      where a.market_id = x.market_id and a.batch_id = x.batch_id and a.part = x.part order by a.queue_no desc limit 1
    ) as action_id
    from ${inParts(parts)} join batches b using (market_id, batch_id)
  `.execute(tx)
  return new Map(
    rows.map((row) => [
      keyOf(row),
      {
        ...{ batchId: row.batch_id, part: row.part, parts: row.parts, price: row.price, asOf: row.as_of },
        actionId: row.action_id,
      },
    ]),
  )
}
