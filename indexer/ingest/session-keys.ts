/** What session keys may do, as the chain tells it. An order lives no longer than its signer's right to sign. */

import type { Tx } from '../../db/client.ts'
import {
  ACCOUNTS_SHARD,
  type SessionKeyChanged,
  type SessionKeyState,
} from '../../domain/journal/journal-row.ts'
import type { ChainLog } from '../ports.ts'
import { type Cancelling, cancelSignedBy } from './cancel-orders.ts'
import type { SessionKeyUpdated } from './facts.ts'
import type { RowPlace } from './locked-shards.ts'

/** The caller holds the lock of `accounts` and of every market. A key that is no longer approved takes its live orders with it. */
export async function updateSessionKey(
  cancelling: Cancelling,
  { owner, key, change }: SessionKeyUpdated,
  log: ChainLog,
): Promise<RowPlace> {
  const before = await load(cancelling.tx, owner, key)
  const known = before ?? { permissions: 0, registered_at: 0, expires_at: 0, revoked_at: null }
  const after: SessionKeyState =
    'revoked_at' in change ? { ...known, ...change } : { ...change, revoked_at: null }
  return write(cancelling, {
    kind: 'session_key_changed',
    rollback: false,
    ...{ owner, key, before, after },
    block: log.block,
    tx_hash: log.txHash,
    log_index: log.logIndex,
    at: cancelling.at,
  })
}

/** The block of the change left the chain. Orders that the key signed meanwhile end, unless it was approved before that block. */
export async function rollBackSessionKey(cancelling: Cancelling, row: SessionKeyChanged): Promise<void> {
  await write(cancelling, { ...row, rollback: true, before: row.after, after: row.before })
}

async function load(tx: Tx, owner: string, key: string): Promise<SessionKeyState | null> {
  const state = await tx
    .selectFrom('session_keys')
    .select(['permissions', 'registered_at', 'expires_at', 'revoked_at'])
    .where('owner', '=', owner)
    .where('key', '=', key)
    .executeTakeFirst()
  return state ?? null
}

async function write(cancelling: Cancelling, row: SessionKeyChanged): Promise<RowPlace> {
  const { tx, shards } = cancelling
  const { owner, key, after, block } = row
  if (after === null) {
    await tx.deleteFrom('session_keys').where('owner', '=', owner).where('key', '=', key).execute()
  } else {
    await tx
      .insertInto('session_keys')
      .values({ owner, key, ...after, block })
      .onConflict((conflict) => conflict.columns(['owner', 'key']).doUpdateSet({ ...after, block }))
      .execute()
  }
  if (after === null || after.revoked_at !== null) await cancelSignedBy(cancelling, row)
  return shards.append(ACCOUNTS_SHARD, row)
}
