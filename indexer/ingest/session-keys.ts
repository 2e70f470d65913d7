/** Applies registrations and revocations of session keys. An order ends when its signer may no longer sign. */
import { loadSessionKey, saveSessionKey } from '../../db/session-keys.ts'
import type { SessionKeyUpdated } from '../../domain/chain/facts.ts'
import type { SessionKeyChanged, SessionKeyState } from '../../domain/journal/accounts-row.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { Address } from '../../domain/units.ts'
import type { ChainLog } from '../ports.ts'
import { type Cancelling, cancelSignedBy } from './cancel-orders.ts'
import type { RowPlace } from './locked-shards.ts'

/** The caller holds the locks of `lockOrders` for the owner. A revocation cancels the key's live orders. */
export async function updateSessionKey(
  cancelling: Cancelling,
  { owner, key, change }: SessionKeyUpdated,
  log: ChainLog,
): Promise<RowPlace> {
  const before = await loadSessionKey(cancelling.tx, { owner, key })
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

/** The block of the change has left the chain. Orders that the key has signed since are cancelled, unless it was registered before that block. */
export async function rollBackSessionKey(cancelling: Cancelling, row: SessionKeyChanged): Promise<void> {
  await write(cancelling, { ...row, rollback: true, before: row.after, after: row.before })
}

async function write(cancelling: Cancelling, row: SessionKeyChanged): Promise<RowPlace> {
  const { tx, shards } = cancelling
  const { after, block } = row
  await saveSessionKey(tx, row, after, block)
  if (after === null || after.revoked_at !== null)
    await cancelSignedBy(cancelling, { owner: row.owner as Address, key: row.key })
  return shards.append(ACCOUNTS_SHARD, row)
}
