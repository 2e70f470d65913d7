/** The check that every write under a lease makes, in the transaction of the write. */

import { type Fence, LeaseLost } from '../keeper/ports.ts'
import type { Tx } from './client.ts'

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
