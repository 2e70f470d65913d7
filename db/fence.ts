/** Checks the lease in the transaction of each write under it. */

import type { Tx } from './client.ts'

/** Identifies one ownership of a lease. Every write of an owner checks it in its own transaction, so a stale owner cannot write. */
export interface Fence {
  readonly name: string
  readonly owner: string
  readonly token: number
}

/** Another process owns the lease now. The caller must discard everything that it read under the lease. */
export class LeaseLost extends Error {}

/**
 * Throws LeaseLost unless the owner has the lease. Acquiring waits for this row lock, so a write of the old owner
 * commits before a takeover or is rejected.
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
