/** The retention of proofs in Postgres. */
import { deleteInputs } from '../../db/batches.ts'
import type { Db } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import type { ProofStore } from './ports.ts'

export const createProofStore = (db: Db): ProofStore => ({
  deleteInputs: (fence, asOf, most) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      return deleteInputs(tx, asOf, most)
    }),
})
