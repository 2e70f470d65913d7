/** Keys of relayer lanes. */
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import { DATABASE_NOW } from '../../../db/clock.ts'
import { KeyTaken, type RelayerKey } from '../../../db/relayers.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import { appendRows, lockShard } from './journal.ts'

/** Makes the key the lane's present one. `firstNonce` is used unless a higher one has been assigned. Throws if the key belongs to another lane. */
export const registerRelayer = (
  db: Db,
  { name, relayer, chainId }: RelayerKey & { readonly name: string },
  firstNonce: number,
): Promise<void> =>
  db.transaction().execute(async (tx) => {
    const head = await lockShard(tx, ACCOUNTS_SHARD)
    const { lane, next_nonce } = await tx
      .insertInto('relayers')
      .values({
        address: relayer,
        chain_id: chainId,
        lane: name,
        next_nonce: firstNonce,
        registered_at: DATABASE_NOW,
      })
      .onConflict((conflict) =>
        conflict.columns(['address', 'chain_id']).doUpdateSet({
          next_nonce: sql<number>`greatest(relayers.next_nonce, excluded.next_nonce)`,
          registered_at: DATABASE_NOW,
        }),
      )
      .returning(['lane', 'next_nonce'])
      .executeTakeFirstOrThrow()
    if (lane !== name) throw new KeyTaken(relayer, lane, name)
    await appendRows(tx, head, [{ kind: 'lane_registered', relayer, chain_id: chainId, lane, next_nonce }])
  })
