/** Relayers and their transactions in Postgres. */
import type { Db } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import {
  insertReplacement,
  recordReceipt,
  recordSend,
  registerRelayer,
  reopenTransactions,
  replaceTransactions,
  takeNonces,
} from '../../db/relayers.ts'
import { constant } from '../../db/values.ts'
import { ACTION_KINDS } from '../../domain/actions/action.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import type { RelayerLane, RelayerStore } from './ports.ts'
import { NOOP_PURPOSE, toTransaction } from './stored-transaction.ts'

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
    const rows = await ofLane(db, lane)
      .where('status', 'in', [constant('SIGNED'), constant('BROADCAST')])
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
    const rows = await ofLane(db, lane)
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
