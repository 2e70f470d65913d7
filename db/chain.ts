/** The chain as the exchange has recorded it: `chain_progress` and `chain_blocks`. */
import type { Db, Tx } from './client.ts'

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
  const { next_block, number, hash } = await db
    .selectFrom('chain_progress')
    .leftJoinLateral(
      (from) =>
        from
          .selectFrom('chain_blocks')
          .select(['number', 'hash'])
          .orderBy('number', 'desc')
          .limit(1)
          .as('tip'),
      (join) => join.onTrue(),
    )
    .select(['next_block', 'number', 'hash'])
    .where('chain_id', '=', chainId)
    .executeTakeFirstOrThrow()
  return { nextBlock: next_block, tip: number === null || hash === null ? null : { number, hash } }
}

/** The engine has applied only a part of the newest stored block. */
export const isOpen = ({ nextBlock, tip }: Progress): boolean => tip !== null && tip.number >= nextBlock

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

/** The chain was followed up to `head` at the time `at`. An older pass than the stored one changes nothing. */
export async function recordHead(db: Db, chainId: number, head: number, at: number): Promise<void> {
  await db
    .updateTable('chain_progress')
    .set({ head, completed_at: at })
    .where('chain_id', '=', chainId)
    .where('completed_at', '<=', at)
    .execute()
}
