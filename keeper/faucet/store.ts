/** What the api asked to be relayed, in Postgres. */
import { sql } from 'kysely'
import type { Db, Tx } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import type { Address } from '../../domain/units.ts'
import type { RelayerLane } from '../relayer/ports.ts'
import { toTransaction } from '../rows.ts'
import type { FaucetRequest, FaucetStore } from './ports.ts'

const toRequest = (row: { request_id: number; payload: Record<string, string> }): FaucetRequest => ({
  requestId: row.request_id,
  to: row.payload.wallet as Address,
  collateral: row.payload.collateral === undefined ? null : BigInt(row.payload.collateral),
  gas: row.payload.gas === undefined ? null : BigInt(row.payload.gas),
})

export const createFaucetStore = (db: Db): FaucetStore => ({
  async requested(limit) {
    const rows = await db
      .selectFrom('faucet_requests')
      .select(['request_id', 'payload'])
      .where('status', '=', 'REQUESTED')
      .orderBy('request_id')
      .limit(limit)
      .execute()
    return rows.map(toRequest)
  },

  sign: ({ requestId }, lane, fence, now, sign) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      const request = await tx
        .selectFrom('faucet_requests')
        .select('request_id')
        .where('request_id', '=', requestId)
        .where('status', '=', 'REQUESTED')
        .forUpdate()
        .executeTakeFirst()
      if (request === undefined) return []
      const nonce = await takeNonces(tx, lane)
      const signed = sign(nonce)
      const rows = signed.map(({ hash, raw }, at) => ({
        ...{
          tx_hash: hash,
          relayer: lane.relayer,
          chain_id: lane.chainId,
          nonce: nonce + at,
          purpose: 'faucet',
          raw,
        },
        status: 'SIGNED' as const,
        error: null,
        signed_at: now as number,
        broadcast_at: null,
        block: null,
      }))
      await tx.insertInto('relayer_transactions').values(rows).execute()
      await tx
        .updateTable('relayers')
        .set({ next_nonce: nonce + rows.length })
        .where('lane', '=', lane.name)
        .execute()
      await tx
        .updateTable('faucet_requests')
        .set({ status: 'SIGNED', tx_hash: rows[0]?.tx_hash ?? null })
        .where('request_id', '=', requestId)
        .execute()
      await sql`select pg_notify('faucet', ${String(requestId)})`.execute(tx)
      return rows.map(toTransaction)
    }),

  async finish({ relayer }) {
    await sql`
      with ended as (
        update faucet_requests r set
          status = case t.status when 'MINED' then 'MINED' else 'FAILED' end,
          error = case t.status when 'MINED' then null else 'the transaction reverted' end
        from relayer_transactions t
        where r.status = 'SIGNED' and t.tx_hash = r.tx_hash and t.relayer = ${relayer} and t.status in ('MINED', 'REVERTED')
        returning r.request_id
      )
      select pg_notify('faucet', request_id::text) from ended
    `.execute(db)
  },
})

async function takeNonces(tx: Tx, lane: RelayerLane): Promise<number> {
  const { next_nonce } = await tx
    .selectFrom('relayers')
    .select('next_nonce')
    .where('lane', '=', lane.name)
    .forUpdate()
    .executeTakeFirstOrThrow()
  return next_nonce
}
