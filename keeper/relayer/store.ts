/** Relayers and their transactions in Postgres. */
import type { Db } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import {
  insertReplacement,
  recordReceipt,
  recordSend,
  registerRelayer,
  reopenTransactions,
} from '../../db/relayers.ts'
import type { RelayerLane, RelayerStore } from './ports.ts'
import { toTransaction } from './stored-transaction.ts'

const ofLane = (db: Db, { relayer, chainId }: RelayerLane) =>
  db
    .selectFrom('relayer_transactions')
    .selectAll()
    .where('relayer', '=', relayer)
    .where('chain_id', '=', chainId)
    .orderBy('nonce')
    .orderBy('signed_at')

export const createRelayerStore = (db: Db): RelayerStore => ({
  async register({ name, relayer, chainId }, firstNonce) {
    await registerRelayer(db, { name, relayer, chainId }, firstNonce)
    const known = await db
      .selectFrom('relayers')
      .select('address')
      .where('lane', '=', name)
      .executeTakeFirst()
    if (known?.address !== relayer)
      throw new Error(`lane ${name} belongs to relayer ${known?.address}, not ${relayer}`)
  },

  async open(lane) {
    const rows = await ofLane(db, lane).where('status', 'in', ['SIGNED', 'BROADCAST']).execute()
    return rows.map(toTransaction)
  },

  async from(lane, nonce) {
    const rows = await ofLane(db, lane).where('nonce', '>=', nonce).execute()
    return rows.map(toTransaction)
  },

  addReplacement: (fence, lane, transaction) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      await insertReplacement(tx, lane, transaction)
    }),

  noteSend: (hash, at, error) => recordSend(db, hash, at, error),
  noteReceipt: (lane, nonce, receipt) => recordReceipt(db, lane, nonce, receipt),
  reopen: (lane, nonces) => reopenTransactions(db, lane, nonces),
})
