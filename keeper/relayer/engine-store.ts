/** Relayers with the engine as the owner of nonces. Bytes and receipts are the workers' own, in `relayer_transactions`. */
import { KeyTaken, noteRegistered } from '../../db/relayers.ts'
import { constant } from '../../db/values.ts'
import { ACTION_KINDS } from '../../domain/actions/action.ts'
import { ask } from '../engine/link/engine.ts'
import { acceptBytes, type EngineParts, storeBytes, WORKER_BUDGET_MS, withoutRefused } from './bytes-store.ts'
import type { AssignedTransaction, RelayerLane, RelayerStore } from './ports.ts'
import { createRelayerStore } from './store.ts'
import { NOOP_PURPOSE } from './stored-transaction.ts'

/** Purposes of transactions that the engine accepts only together with a change of what they execute. */
const BOUND_PURPOSES: ReadonlySet<string> = new Set([...ACTION_KINDS, 'adjustment', 'relay', NOOP_PURPOSE])

export function createEngineRelayerStore(parts: EngineParts): RelayerStore {
  const { db, engine } = parts
  const tables = createRelayerStore(db)

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
    formerKeys: tables.formerKeys,
    nextNonce: tables.nextNonce,

    async reserve({ name, relayer }, _fence, count) {
      const command = { kind: 'reserve_nonces', relayer, count } as const
      const answer = await ask<'reserve_nonces'>(engine, command, WORKER_BUDGET_MS)
      if (answer.kind !== 'nonces')
        throw new Error(`lane ${name} of ${relayer} has no nonces: ${answer.kind}`)
      return answer.first
    },

    open: tables.open,

    async assigned(lane, from, to) {
      const all = await tables.assigned(lane, from, to)
      const accepted = await withoutRefused(parts, all)
      if (accepted.length === all.length) return accepted
      const known = new Set(accepted.map(({ hash }) => hash))
      await acceptLate(
        lane,
        all.filter(({ hash }) => !known.has(hash)),
      )
      return withoutRefused(parts, await tables.assigned(lane, from, to))
    },

    reserved: tables.reserved,

    async addSigned(fence, lane, transaction) {
      const known = await acceptedWith(lane, transaction.nonce)
      // At the highest fee a replacement has the bytes, and so the hash, of the one before.
      if (known.includes(transaction.hash)) return
      const attempt = known.length + 1
      await storeBytes(parts, lane, fence, [transaction])
      const accepted = await acceptBytes(parts, lane, transaction, { action: null, attempt })
      if (accepted.hash !== transaction.hash)
        throw new Error(`nonce ${transaction.nonce} of lane ${lane.name} was signed by another worker`)
    },

    noteSend: tables.noteSend,
    noteReceipt: tables.noteReceipt,
    noteForeign: tables.noteForeign,
    reopen: tables.reopen,
  }
}
