/**
 * Nonces and every transaction ever signed. The engine assigns a nonce before signing; if no transaction follows, the
 * relayer lane fills it (`keeper/relayer/nonces.ts`).
 */
import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { Address } from '../domain/units.ts'
import type { Db, Tx } from './client.ts'
import { DATABASE_NOW } from './clock.ts'
import type { RelayerTransactionsTable } from './relayer-schema.ts'
import { anyOf, constant } from './values.ts'

/** The lane that relays owners' requests. */
export const RELAY_LANE = 'relay'
/** The lane that executes adjustments: an operator of every market. */
export const ADJUSTMENT_LANE = 'adjust'
/** Names of relayer lanes, and the same in words. */
export const LANE_NAME = /^(m\d+|adjust|faucet|heartbeat|ending|relay)$/
export const LANE_NAMES = 'm<market_id>, adjust, faucet, heartbeat, ending or relay'

export type TransactionRow = Selectable<RelayerTransactionsTable>

/** A relayer's key on one chain: the owner of a sequence of nonces. */
export interface RelayerKey {
  readonly relayer: string
  readonly chainId: number
}

export interface NewTransaction {
  readonly hash: string
  readonly raw: string
  readonly nonce: number
  readonly purpose: string
  readonly signedAt: number
}

/** The addresses of all keys that the lane has had, as an array for a statement. A lane that is not registered has the present key alone. */
export const keysOfLane = ({
  name,
  relayer,
  chainId,
}: RelayerKey & { readonly name: string }): RawBuilder<string[]> =>
  sql<
    string[]
  >`array(select address from relayers where lane = ${name} and chain_id = ${chainId} union select ${relayer})`

/** A key belongs to one lane for ever: two lanes would assign its nonces twice. */
export class KeyTaken extends Error {
  override readonly name = 'KeyTaken'
  constructor(relayer: string, owner: string, lane: string) {
    super(`relayer ${relayer} belongs to lane ${owner}: give lane ${lane} a key of its own`)
  }
}

/** Records the key as the lane's present key. The engine writes its lane and nonces. */
export async function noteRegistered(db: Db, { relayer, chainId }: RelayerKey): Promise<void> {
  await db
    .updateTable('relayers')
    .set({ registered_at: DATABASE_NOW })
    .where('address', '=', relayer)
    .where('chain_id', '=', chainId)
    .execute()
}

/** All keys that the lanes have had. */
export async function loadKeysOf(db: Db, chainId: number, lanes: readonly string[]): Promise<Address[]> {
  const rows = await db
    .selectFrom('relayers')
    .select('address')
    .where('chain_id', '=', chainId)
    .where('lane', '=', anyOf('text', lanes))
    .orderBy('address')
    .execute()
  return rows.map(({ address }) => address as Address)
}

/** The address that an operator has chosen for the lane; null if none. */
export async function chosenKey(db: Db, lane: string): Promise<Address | null> {
  const row = await db
    .selectFrom('relayer_choices')
    .select('address')
    .where('lane', '=', lane)
    .executeTakeFirst()
  return (row?.address ?? null) as Address | null
}

/** An operator's choice of the lane's key. */
export async function chooseRelayer(
  db: Db,
  { lane, address, at }: { readonly lane: string; readonly address: Address; readonly at: number },
): Promise<void> {
  await db
    .insertInto('relayer_choices')
    .values({ lane, address, chosen_at: at })
    .onConflict((conflict) => conflict.column('lane').doUpdateSet({ address, chosen_at: at }))
    .execute()
}

const toRow = (
  { relayer, chainId }: RelayerKey,
  { hash, raw, nonce, purpose, signedAt }: NewTransaction,
) => ({
  ...{ tx_hash: hash, relayer, chain_id: chainId, nonce, purpose, raw },
  status: 'SIGNED' as const,
  error: null,
  signed_at: signedAt,
  broadcast_at: null,
  block: null,
  gas_used: null,
})

/** Stores the bytes of transactions that the engine has not accepted yet. Leaves those that are stored already. */
export async function storeTransactions(
  tx: Tx,
  key: RelayerKey,
  transactions: readonly NewTransaction[],
): Promise<void> {
  if (transactions.length === 0) return
  await tx
    .insertInto('relayer_transactions')
    .values(transactions.map((transaction) => ({ ...toRow(key, transaction), status: 'STORED' as const })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** The engine has accepted these transactions: they may be sent. Returns those of which this was not known. */
export async function acceptTransactions(db: Db, hashes: readonly string[]): Promise<TransactionRow[]> {
  if (hashes.length === 0) return []
  return db
    .updateTable('relayer_transactions')
    .set({ status: 'SIGNED' })
    .where('tx_hash', '=', anyOf('text', hashes))
    .where('status', '=', constant('STORED'))
    .returningAll()
    .execute()
}

/** The transaction has been broadcast at `at`. `error`: the node's answer; null where it accepted it. */
export async function recordSend(db: Db, hash: string, at: number, error: string | null): Promise<void> {
  await db
    .updateTable('relayer_transactions')
    .set({
      broadcast_at: at,
      error,
      status: sql`case status when 'SIGNED' then 'BROADCAST' else status end`,
    })
    .where('tx_hash', '=', hash)
    .execute()
}

export interface RecordedReceipt {
  readonly hash: string
  readonly succeeded: boolean
  /** Null while only preconfirmed. */
  readonly block: number | null
  readonly gasUsed?: bigint | null
}

/** Listeners are notified of a receipt with its block number. */
export const CHAIN_CHANNEL = 'chain'

/** The nonce is used: the transaction with the receipt is mined or reverted, others with its nonce are replaced. Notifies `chain`. */
export async function recordReceipt(
  db: Db,
  { relayer, chainId }: RelayerKey,
  nonce: number,
  { hash, succeeded, block, gasUsed = null }: RecordedReceipt,
): Promise<void> {
  await sql`
    with known as (
      update relayer_transactions set
        status = case when tx_hash <> ${hash} then 'REPLACED' when ${succeeded}::boolean then 'MINED' else 'REVERTED' end,
        block = case when tx_hash = ${hash} then ${block}::bigint else block end,
        gas_used = case when tx_hash = ${hash} then ${gasUsed}::bigint else gas_used end
      where relayer = ${relayer} and chain_id = ${chainId} and nonce = ${nonce} and status <> 'STORED'
      returning tx_hash
    )
    select pg_notify(${CHAIN_CHANNEL}, ${String(block ?? '')}) from known limit 1
  `.execute(db)
}

/** A transaction that is not stored has used the nonce, so no open transaction with this nonce can be mined. */
export async function replaceTransactions(
  db: Db,
  { relayer, chainId }: RelayerKey,
  nonce: number,
): Promise<void> {
  await db
    .updateTable('relayer_transactions')
    .set({ status: 'REPLACED' })
    .where('relayer', '=', relayer)
    .where('chain_id', '=', chainId)
    .where('nonce', '=', nonce)
    .where('status', 'in', ['SIGNED', 'BROADCAST'])
    .execute()
}

/** The blocks of these nonces have left the chain: their transactions wait for a receipt again. */
export async function reopenTransactions(
  db: Db,
  { relayer, chainId }: RelayerKey,
  nonces: readonly number[],
): Promise<void> {
  if (nonces.length === 0) return
  await db
    .updateTable('relayer_transactions')
    .set({ status: 'BROADCAST', block: null })
    .where('relayer', '=', relayer)
    .where('chain_id', '=', chainId)
    .where('nonce', '=', anyOf('bigint', nonces))
    .where('status', 'in', ['MINED', 'REVERTED', 'REPLACED'])
    .execute()
}

/** Stores why the reverted transaction with this nonce was refused. */
export async function recordRevert(
  tx: Tx,
  relayer: string | null,
  nonce: number,
  error: string,
): Promise<void> {
  await tx
    .updateTable('relayer_transactions')
    .set({ error })
    .where('relayer', '=', relayer)
    .where('nonce', '=', nonce)
    .where('status', '=', 'REVERTED')
    .execute()
}
