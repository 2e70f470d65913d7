/** The check that every write under a lease makes, in the transaction of the write. */

import type { Tx } from './client.ts'

/** Proof of owning a lease. Every write of an owner checks it in its own transaction, so that a stale owner cannot write. */
export interface Fence {
  readonly name: string
  readonly owner: string
  readonly token: number
}

/** Another process owns the lease now. The caller must discard everything that it read under the lease. */
export class LeaseLost extends Error {}

/**
 * Fails unless the lease is still the owner's, and keeps it so until the transaction ends: taking a lease over waits for this
 * row lock, so a write of the old owner is either committed before or refused.
 */
export async function checkFence(tx: Tx, { name, owner, token }: Fence): Promise<void> {
  const lease = await tx
    .selectFrom('leases')
    .select('token')
    .where('name', '=', name)
    .where('owner', '=', owner)
    .where('token', '=', token)
    .forShare()
    .executeTakeFirst()
  if (lease === undefined) throw new LeaseLost(name)
}
