/** Relayers and everything they ever signed, in Postgres. A nonce is given out in the transaction that keeps what it signs. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { toTransaction } from '../rows.ts'
import type { RelayerLane, RelayerStore } from './ports.ts'

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
    await db
      .insertInto('relayers')
      .values({ address: relayer, chain_id: chainId, lane: name, next_nonce: firstNonce })
      .onConflict((conflict) =>
        conflict
          .columns(['address', 'chain_id'])
          .doUpdateSet({ next_nonce: sql<number>`greatest(relayers.next_nonce, excluded.next_nonce)` }),
      )
      .execute()
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

  async addReplacement(fence, { relayer, chainId }, { hash, raw, nonce, purpose, signedAt }) {
    await db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      await tx
        .insertInto('relayer_transactions')
        .values({
          ...{ tx_hash: hash, relayer, chain_id: chainId, nonce, purpose, raw },
          status: 'SIGNED',
          error: null,
          signed_at: signedAt,
          broadcast_at: null,
          block: null,
        })
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    })
  },

  async noteSend(hash, at, error) {
    await db
      .updateTable('relayer_transactions')
      .set({ broadcast_at: at, error })
      .where('tx_hash', '=', hash)
      .execute()
    await db
      .updateTable('relayer_transactions')
      .set({ status: 'BROADCAST' })
      .where('tx_hash', '=', hash)
      .where('status', '=', 'SIGNED')
      .execute()
  },

  async noteReceipt({ relayer, chainId }, nonce, { hash, succeeded, block }) {
    await sql`
      with known as (
        update relayer_transactions set
          status = case when tx_hash <> ${hash} then 'REPLACED' when ${succeeded}::boolean then 'MINED' else 'REVERTED' end,
          block = case when tx_hash = ${hash} then ${block}::bigint else block end
        where relayer = ${relayer} and chain_id = ${chainId} and nonce = ${nonce}
        returning tx_hash
      )
      select pg_notify('chain', ${String(block ?? '')}) from known limit 1
    `.execute(db)
  },

  async reopen({ relayer, chainId }, nonces) {
    if (nonces.length === 0) return
    await db
      .updateTable('relayer_transactions')
      .set({ status: 'BROADCAST', block: null })
      .where('relayer', '=', relayer)
      .where('chain_id', '=', chainId)
      .where('nonce', 'in', nonces)
      .where('status', 'in', ['MINED', 'REVERTED', 'REPLACED'])
      .execute()
  },
})
