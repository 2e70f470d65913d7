/** Faucet payouts with the engine as the owner of nonces. Requests and bytes are the faucet's own. */
import { lockFaucetRequest, signFaucetRequest } from '../../db/faucet-requests.ts'
import { checkFence } from '../../db/fence.ts'
import { storeTransactions } from '../../db/relayers.ts'
import { acceptBytes, type EngineParts } from '../relayer/bytes-store.ts'
import type { StoredTransaction } from '../relayer/ports.ts'
import type { FaucetStore } from './ports.ts'
import { createFaucetStore } from './store.ts'

export function createEngineFaucetStore(parts: EngineParts): FaucetStore {
  const { db } = parts
  const tables = createFaucetStore(db)
  return {
    requested: tables.requested,

    /** A request is paid once: it is marked with its bytes. If the process ends before the engine accepts them, the lane offers them again. */
    async storeSigned({ requestId }, lane, fence, { firstNonce, signedAt, ...signed }) {
      const transactions = signed.transactions.map(({ hash, raw }, at) => ({
        hash,
        raw,
        nonce: firstNonce + at,
        purpose: 'faucet',
        signedAt,
      }))
      const isStored = await db.transaction().execute(async (tx) => {
        await checkFence(tx, fence)
        if (!(await lockFaucetRequest(tx, requestId))) return false
        await storeTransactions(tx, lane, transactions)
        await signFaucetRequest(tx, requestId, transactions[0]?.hash ?? null)
        return true
      })
      const accepted: StoredTransaction[] = []
      if (!isStored) return accepted
      for (const transaction of transactions)
        accepted.push(await acceptBytes(parts, lane, transaction, { action: null, attempt: 1 }))
      return accepted
    },

    refuse: tables.refuse,
    finish: tables.finish,
  }
}
