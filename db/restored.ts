/** The first transaction on a database that was restored from a backup. */
import { sql } from 'kysely'
import { postAnnouncement } from './announcements.ts'
import type { Db } from './client.ts'

/** Start of the seconds that epochs are counted in: a bookmark has nine digits for an epoch. */
const EPOCHS_BEGAN_S = Date.UTC(2020, 0, 1) / 1000

const isoOf = (at: number): string => new Date(at).toISOString()

/**
 * Starts a new incarnation, against memories of the lost history, and new epochs, against its bookmarks. `restoredTo`:
 * the announced point. Returns the incarnation.
 */
export async function beginIncarnation(
  db: Db,
  { restoredTo, now }: { readonly restoredTo: number; readonly now: number },
): Promise<number> {
  // Depends on the time: after a second restore to an earlier point, the next numbers would repeat those of a lost
  // history.
  const seconds = Math.floor(now / 1000)
  return db.transaction().execute(async (tx) => {
    const { incarnation } = await tx
      .updateTable('engine_ownership')
      .set({
        incarnation: sql`greatest(incarnation + 1, ${seconds})`,
        restored_to: isoOf(restoredTo),
      })
      .returning('incarnation')
      .executeTakeFirstOrThrow()
    await sql`update shards set epoch = greatest(epoch + 1, ${seconds - EPOCHS_BEGAN_S})`.execute(tx)
    // The read model was restored with its journal: each projection stays where it was.
    await sql`update read.places p set epoch = s.epoch from shards s where s.shard = p.shard`.execute(tx)
    await postAnnouncement(tx, {
      kind: 'notice',
      title: `The exchange was restored to ${isoOf(restoredTo)}`,
      body: [
        `Orders, cancels and API keys that were acknowledged after ${isoOf(restoredTo)} are lost, except for fills, deposits and withdrawals, which the chain has.`,
        'Orders that were cancelled after that time are open again. Markets are cancel-only until the operator resumes them:',
        'read your open orders, cancel those that you no longer want, and place lost orders again. Order ids of lost orders are assigned to other orders.',
      ].join('\n'),
      market_id: null,
      starts_at: null,
      ends_at: null,
      created_at: now,
    })
    return incarnation
  })
}
