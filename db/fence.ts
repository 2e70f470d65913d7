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
 * Throws LeaseLost unless the lease still belongs to the owner. Another process can acquire the lease only after this transaction, because
 * acquiring waits for this row lock: a write of the old owner commits before or is refused.
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
