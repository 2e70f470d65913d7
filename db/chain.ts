/**
 * What the database has of the chain: `chain_progress`, `chain_blocks`, `chain_logs`, `chain_steps` and `settlement_mismatches`. A
 * follower that moves `next_block` holds the lock of the `chain_progress` row, so no block is recorded twice.
 */
import { type Insertable, type Selectable, sql } from 'kysely'
import type {
  ChainBlocksTable,
  ChainLogsTable,
  ChainStepsTable,
  SettlementMismatchesTable,
} from './chain-schema.ts'
import type { Db, Tx } from './client.ts'
import { anyOf, constant } from './values.ts'

export interface StoredBlock {
  readonly number: number
  readonly hash: string
}

export interface Progress {
  readonly nextBlock: number
  /** The newest stored block; null before the first. */
  readonly tip: StoredBlock | null
}

export interface Genesis {
  readonly chainId: number
  readonly hash: string
}

/** Inserts the chain's row unless it exists. */
export async function insertProgress(db: Db, { chainId, hash }: Genesis, nextBlock: number): Promise<void> {
  await db
    .insertInto('chain_progress')
    .values({ chain_id: chainId, genesis_hash: hash, next_block: nextBlock, head: 0, completed_at: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function loadProgress(db: Db | Tx, chainId: number): Promise<Progress> {
  const { next_block } = await db
    .selectFrom('chain_progress')
    .select('next_block')
    .where('chain_id', '=', chainId)
    .executeTakeFirstOrThrow()
  return { nextBlock: next_block, tip: await newestBlock(db) }
}

/** The newest stored block is not applied in every shard yet: what is left is in `chain_steps`. */
export const isOpen = ({ nextBlock, tip }: Progress): boolean => tip !== null && tip.number >= nextBlock

/** Locks the chain's progress until the transaction ends. Several transactions may share it, and exclude the others meanwhile. */
export async function lockProgress(
  tx: Tx,
  chainId: number,
  mode: 'exclusive' | 'shared' = 'exclusive',
): Promise<Progress> {
  const row = tx.selectFrom('chain_progress').select('next_block').where('chain_id', '=', chainId)
  const locked = mode === 'shared' ? row.forShare() : row.forUpdate()
  const { next_block } = await locked.executeTakeFirstOrThrow()
  // Read after the lock, so that it sees what the transaction before has committed.
  return { nextBlock: next_block, tip: await newestBlock(tx) }
}

export async function newestBlock(db: Db | Tx): Promise<StoredBlock | null> {
  const tip = await db
    .selectFrom('chain_blocks')
    .select(['number', 'hash'])
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
  return tip ?? null
}

/** The newest stored block that is not above `number`. */
export async function blockAtOrBelow(db: Db, number: number): Promise<StoredBlock | null> {
  const block = await db
    .selectFrom('chain_blocks')
    .select(['number', 'hash'])
    .where('number', '<=', number)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
  return block ?? null
}

export async function insertBlock(tx: Tx, block: Insertable<ChainBlocksTable>): Promise<void> {
  await tx.insertInto('chain_blocks').values(block).execute()
}

export async function insertChainLogs(tx: Tx, logs: readonly Insertable<ChainLogsTable>[]): Promise<void> {
  await sql`
    insert into chain_logs (block, log_index, tx_hash, address, topics, data, shard, seq)
    select * from json_to_recordset(${JSON.stringify(logs)}::json) as x (
      block bigint, log_index integer, tx_hash text, address text, topics text[], data text, shard text, seq bigint
    )
  `.execute(tx)
}

/** The journal row that a stored log became. */
export interface PlacedLog {
  readonly logIndex: number
  readonly shard: string
  readonly seq: number
}

/** Notes the places of the logs that a step has applied. */
export async function placeChainLogs(tx: Tx, block: number, placed: readonly PlacedLog[]): Promise<void> {
  if (placed.length === 0) return
  await sql`
    update chain_logs l set shard = p.shard, seq = p.seq
    from unnest(
      ${placed.map(({ logIndex }) => logIndex)}::integer[], ${placed.map(({ shard }) => shard)}::text[],
      ${placed.map(({ seq }) => seq)}::bigint[]
    ) as p (log_index, shard, seq)
    where l.block = ${block} and l.log_index = p.log_index
  `.execute(tx)
}

export type StoredStep = Readonly<Selectable<ChainStepsTable>>

export async function insertSteps(tx: Tx, steps: readonly StoredStep[]): Promise<void> {
  await tx
    .insertInto('chain_steps')
    .values([...steps])
    .execute()
}

/** The steps of the block's earliest stage that are not applied yet. */
export async function openStage(db: Db | Tx, block: number): Promise<StoredStep[]> {
  return db
    .selectFrom('chain_steps')
    .selectAll()
    .where('block', '=', block)
    .where('stage', '=', (stages) =>
      stages
        .selectFrom('chain_steps')
        .select(({ fn }) => fn.min('stage').as('stage'))
        .where('block', '=', block),
    )
    .orderBy('step')
    .execute()
}

/** Claims the steps for this transaction. Returns those that were not applied yet. */
export async function deleteSteps(tx: Tx, block: number, steps: readonly number[]): Promise<Set<number>> {
  const deleted = await tx
    .deleteFrom('chain_steps')
    .where('block', '=', block)
    .where('step', '=', anyOf('bigint', steps))
    .returning('step')
    .execute()
  return new Set(deleted.map(({ step }) => step))
}

export async function setNextBlock(tx: Tx, chainId: number, nextBlock: number): Promise<void> {
  await tx
    .updateTable('chain_progress')
    .set({ next_block: nextBlock })
    .where('chain_id', '=', chainId)
    .execute()
}

/** Deletes a block that has left the chain, with its logs and what was left to apply of it. */
export async function deleteBlock(tx: Tx, number: number): Promise<void> {
  await tx.deleteFrom('chain_steps').where('block', '=', number).execute()
  await tx.deleteFrom('chain_logs').where('block', '=', number).execute()
  await tx.deleteFrom('chain_blocks').where('number', '=', number).execute()
}

/** Marks the logs of every block up to `block` as confirmed. */
export async function confirmChainLogs(tx: Tx, block: number): Promise<void> {
  await tx
    .updateTable('chain_logs')
    .set({ confirmed: true })
    .where('confirmed', '=', constant(false))
    .where('block', '<=', block)
    .execute()
}

/** The chain was followed up to `head` at the time `at`. An older pass than the stored one changes nothing. */
export async function recordHead(db: Db, chainId: number, head: number, at: number): Promise<void> {
  await db
    .updateTable('chain_progress')
    .set({ head, completed_at: at })
    .where('chain_id', '=', chainId)
    .where('completed_at', '<=', at)
    .execute()
}

/** Sets the end of the bank's last pause, in Unix seconds. Returns the one before. A database belongs to one chain, so it has one row. */
export async function setBankPause(tx: Tx, endsAt: number): Promise<number> {
  const { bank_pause_ends_at: before } = await tx
    .selectFrom('chain_progress')
    .select('bank_pause_ends_at')
    .executeTakeFirstOrThrow()
  await tx.updateTable('chain_progress').set({ bank_pause_ends_at: endsAt }).execute()
  return before
}

/** Stores a mismatch for the operator. The same failure of the same transaction is stored once. */
export async function insertMismatch(tx: Tx, mismatch: Insertable<SettlementMismatchesTable>): Promise<void> {
  await tx
    .insertInto('settlement_mismatches')
    .values(mismatch)
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
