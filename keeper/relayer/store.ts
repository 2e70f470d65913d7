/** Relayers with the engine as the owner of nonces. Bytes and receipts are the workers' own, in `relayer_transactions`. */
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import {
  KeyTaken,
  keysOfLane,
  noteRegistered,
  recordReceipt,
  recordSend,
  reopenTransactions,
  replaceTransactions,
} from '../../db/relayers.ts'
import { constant } from '../../db/values.ts'
import { ACTION_KINDS } from '../../domain/actions/action.ts'
import type { Address } from '../../domain/units.ts'
import { ask } from '../engine/link/engine.ts'
import { acceptBytes, type EngineParts, storeBytes, WORKER_BUDGET_MS, withoutRefused } from './bytes-store.ts'
import type { AssignedTransaction, RelayerLane, RelayerStore } from './ports.ts'
import { NOOP_PURPOSE, toTransaction } from './stored-transaction.ts'

/** Purposes of transactions that the engine accepts only together with a change of what they execute. */
const BOUND_PURPOSES: ReadonlySet<string> = new Set([...ACTION_KINDS, 'adjustment', 'relay', NOOP_PURPOSE])

const stored = (db: Db, { chainId }: RelayerLane) =>
  db.selectFrom('relayer_transactions').selectAll().where('chain_id', '=', chainId)

/** All with the nonces, and whether what each executes has ended. */
async function loadAssigned(
  db: Db,
  lane: RelayerLane,
  from: number,
  to: number,
): Promise<AssignedTransaction[]> {
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
}

export function createRelayerStore(parts: EngineParts): RelayerStore {
  const { db, engine } = parts

  /** Hashes of the transactions with the nonce that the engine has accepted. */
  async function acceptedWith({ relayer, chainId }: RelayerLane, nonce: number): Promise<string[]> {
    const rows = await db
      .selectFrom('relayer_transactions')
      .select('tx_hash')
      .where('relayer', '=', relayer)
      .where('chain_id', '=', chainId)
      .where('nonce', '=', nonce)
      .where('status', '<>', constant('STORED'))
      .execute()
    return rows.map(({ tx_hash }) => tx_hash)
  }

  /** A transaction that executes nothing of the engine's, and whose worker ended before it was accepted, is accepted now. */
  async function acceptLate(lane: RelayerLane, refused: readonly AssignedTransaction[]): Promise<void> {
    for (const transaction of refused) {
      if (BOUND_PURPOSES.has(transaction.purpose)) continue
      if ((await acceptedWith(lane, transaction.nonce)).length > 0) continue
      await acceptBytes(parts, lane, transaction, { action: null, attempt: 1 })
    }
  }

  /** The key's next nonce becomes the greater of `firstNonce` and its present one. */
  async function assignFrom({ name, relayer, chainId }: RelayerLane, firstNonce: number): Promise<void> {
    const command = { kind: 'register_lane', relayer, chainId, lane: name, firstNonce } as const
    const answer = await ask<'register_lane'>(engine, command, WORKER_BUDGET_MS)
    if (answer.kind === 'key_taken') throw new KeyTaken(relayer, answer.lane, name)
  }

  return {
    /** The engine owns the key's nonces and its lane. When the key was last registered concerns operators only. */
    async register(lane, firstNonce) {
      await assignFrom(lane, firstNonce)
      await noteRegistered(db, lane)
    },

    skipTo: assignFrom,
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

    async nextNonce({ relayer, chainId }) {
      const { next_nonce } = await db
        .selectFrom('relayers')
        .select('next_nonce')
        .where('address', '=', relayer)
        .where('chain_id', '=', chainId)
        .executeTakeFirstOrThrow()
      return next_nonce
    },

    async reserve({ name, relayer }, _fence, count) {
      const command = { kind: 'reserve_nonces', relayer, count } as const
      const answer = await ask<'reserve_nonces'>(engine, command, WORKER_BUDGET_MS)
      if (answer.kind !== 'nonces')
        throw new Error(`lane ${name} of ${relayer} has no nonces: ${answer.kind}`)
      return answer.first
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

    async assigned(lane, from, to) {
      const all = await loadAssigned(db, lane, from, to)
      const accepted = await withoutRefused(parts, all)
      if (accepted.length === all.length) return accepted
      const known = new Set(accepted.map(({ hash }) => hash))
      await acceptLate(
        lane,
        all.filter(({ hash }) => !known.has(hash)),
      )
      return withoutRefused(parts, await loadAssigned(db, lane, from, to))
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

    async addSigned(fence, lane, transaction) {
      const known = await acceptedWith(lane, transaction.nonce)
      // At the highest fee a replacement has the same bytes, and so the same hash, as its predecessor.
      if (known.includes(transaction.hash)) return
      const attempt = known.length + 1
      await storeBytes(parts, lane, fence, [transaction])
      const accepted = await acceptBytes(parts, lane, transaction, { action: null, attempt })
      if (accepted.hash !== transaction.hash)
        throw new Error(`nonce ${transaction.nonce} of lane ${lane.name} was signed by another worker`)
    },

    noteSend: (hash, at, error) => recordSend(db, hash, at, error),
    noteReceipt: (lane, nonce, receipt) => recordReceipt(db, lane, nonce, receipt),
    noteForeign: (lane, nonce) => replaceTransactions(db, lane, nonce),
    reopen: (lane, nonces) => reopenTransactions(db, lane, nonces),
  }
}
