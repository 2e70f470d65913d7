/** Relayers and their transactions in Postgres. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import {
  insertReplacement,
  keysOfLane,
  recordReceipt,
  recordSend,
  registerRelayer,
  reopenTransactions,
  replaceTransactions,
  skipNonces,
  takeNonces,
} from '../../db/relayers.ts'
import { constant } from '../../db/values.ts'
import { ACTION_KINDS } from '../../domain/actions/action.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { Address } from '../../domain/units.ts'
import type { RelayerLane, RelayerStore } from './ports.ts'
import { NOOP_PURPOSE, toTransaction } from './stored-transaction.ts'

const stored = (db: Db, { chainId }: RelayerLane) =>
  db.selectFrom('relayer_transactions').selectAll().where('chain_id', '=', chainId)

export const createRelayerStore = (db: Db): RelayerStore => ({
  register: (lane, firstNonce) => registerRelayer(db, lane, firstNonce),
  skipTo: (lane, nonce) => skipNonces(db, lane, nonce),

  async formerKeys({ name, relayer, chainId }, since) {
    const { rows } = await sql<{ address: Address }>`
      select r.address from relayers r
      where r.lane = ${name} and r.chain_id = ${chainId} and r.address <> ${relayer} and (
        exists (select from relayer_transactions t where t.relayer = r.address and t.chain_id = r.chain_id and t.status in ('SIGNED', 'BROADCAST'))
        or (
          select t.signed_at from relayer_transactions t where t.relayer = r.address and t.chain_id = r.chain_id
          order by t.nonce desc limit 1
        ) >= ${since}::bigint
      )
      order by r.address
    `.execute(db)
    return rows.map(({ address }) => address)
  },

  async open(lane) {
    const rows = await stored(db, lane)
      .where('relayer', '=', sql<string>`any(${keysOfLane(lane)})`)
      .where('status', 'in', [constant('SIGNED'), constant('BROADCAST')])
      .orderBy('relayer')
      .orderBy('nonce')
      .orderBy('signed_at')
      .execute()
    return rows.map(toTransaction)
  },

  async nextNonce({ relayer, chainId }) {
    const { next_nonce } = await db
      .selectFrom('relayers')
      .select('next_nonce')
      .where('address', '=', relayer)
      .where('chain_id', '=', chainId)
      .executeTakeFirstOrThrow()
    return next_nonce
  },

  reserve: (lane, fence, count) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, ACCOUNTS_SHARD)
      await checkFence(tx, fence)
      const first = await takeNonces(tx, lane, count)
      const { relayer } = lane
      await appendRows(tx, head, [{ kind: 'nonces_assigned', relayer, next_nonce: first + count }])
      return first
    }),

  async assigned(lane, from, to) {
    const rows = await stored(db, lane)
      .where('relayer', '=', lane.relayer)
      .orderBy('nonce')
      .orderBy('signed_at')
      .where('nonce', '>=', from)
      .where('nonce', '<', to)
      .select((t) =>
        t
          .or([
            t.and([
              t('purpose', 'in', ACTION_KINDS),
              t.not(
                t.exists(
                  t
                    .selectFrom('actions')
                    .select('queue_no')
                    .whereRef('actions.relayer', '=', 'relayer_transactions.relayer')
                    .whereRef('actions.nonce', '=', 'relayer_transactions.nonce')
                    .where('actions.status', 'not in', ['REVERTED', 'VOIDED'])
                    // Looks up each nonce: without the offset the planner may read all actions once instead.
                    .offset(constant(0)),
                ),
              ),
            ]),
            // The reservation of an aborted adjustment is released: it must not be executed after a fork.
            t.and([
              t('purpose', '<>', NOOP_PURPOSE),
              t.exists(
                t
                  .selectFrom('adjustment_attempts as a')
                  .select('a.adjustment_id')
                  .whereRef('a.relayer', '=', 'relayer_transactions.relayer')
                  .whereRef('a.relayer_nonce', '=', 'relayer_transactions.nonce')
                  .where('a.status', '=', 'ABORTED')
                  .offset(constant(0)),
              ),
            ]),
          ])
          .$castTo<boolean>()
          .as('is_void'),
      )
      .execute()
    return rows.map((row) => ({ ...toTransaction(row), isVoid: row.is_void }))
  },

  async reserved({ relayer }, from, to) {
    const rows = await db
      .selectFrom('actions')
      .select('nonce')
      .where('relayer', '=', relayer)
      .where('nonce', '>=', from)
      .where('nonce', '<', to)
      .where('status', '=', constant('QUEUED'))
      .execute()
    return new Set(rows.map(({ nonce }) => nonce as number))
  },

  addSigned: (fence, lane, transaction) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      await insertReplacement(tx, lane, transaction)
    }),

  noteSend: (hash, at, error) => recordSend(db, hash, at, error),
  noteReceipt: (lane, nonce, receipt) => recordReceipt(db, lane, nonce, receipt),
  noteForeign: (lane, nonce) => replaceTransactions(db, lane, nonce),
  reopen: (lane, nonces) => reopenTransactions(db, lane, nonces),
})
