/**
 * Keeps a lane's stored nonces equal to the chain's, despite forks and other transactions of the key. Every nonce from
 * the chain's next to the stored next has or reserves a transaction.
 */

import type { Fence } from '../../db/fence.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Fee, Signer } from '../ports.ts'
import { raiseFee } from './fee.ts'
import type { AssignedTransaction, RelayerLane, RelayerStore, StoredTransaction } from './ports.ts'
import { asSigned, byNonce, isOpen, NOOP_PURPOSE } from './stored-transaction.ts'

export interface NoncePorts {
  readonly relayers: RelayerStore
  readonly chain: Pick<Chain, 'transactionCount' | 'receipt'>
  /** Null for a former key of the lane that the keeper no longer has: nothing is signed for it. */
  readonly signer: Signer | null
  readonly calls: Pick<Calls, 'noop'>
  readonly clock: Clock
  readonly logger: Logger
  readonly fee: () => Fee
}

/** Bound of one pass. The lowest nonces are sent first, so the next pass starts above them. */
const NONCES_PER_PASS = 100

/** Returns the transactions to send, in the order of their nonces. All are stored. */
export async function restoreNonces(
  ports: NoncePorts,
  lane: RelayerLane,
  fence: Fence,
): Promise<readonly StoredTransaction[]> {
  const { chain, relayers, logger } = ports
  const used = await chain.transactionCount(lane.relayer)
  const next = await relayers.nextNonce(lane)
  if (used > next) {
    logger.error({ lane: lane.name, from: next, to: used }, 'nonces used by foreign transactions; skipped')
    await relayers.skipTo(lane, used)
  }
  const end = Math.min(next, used + NONCES_PER_PASS)
  if (used >= end) return []
  const assigned = byNonce(await relayers.assigned(lane, used, end))
  const reserved = await relayers.reserved(lane, used, end)
  const toSend: StoredTransaction[] = []
  for (let nonce = used; nonce < end; nonce++) {
    if (reserved.has(nonce)) continue
    const transaction = await restore(ports, lane, fence, nonce, assigned.get(nonce) ?? [])
    if (transaction !== null) toSend.push(transaction)
  }
  return toSend
}

/** The transaction to send with an unused nonce; null if nothing has to be done. `own`: all with this nonce, the oldest first. */
async function restore(
  ports: NoncePorts,
  lane: RelayerLane,
  fence: Fence,
  nonce: number,
  own: readonly AssignedTransaction[],
): Promise<StoredTransaction | null> {
  const { relayers, logger } = ports
  const newest = own.at(-1)
  const details = { lane: lane.name, nonce, tx_hash: newest?.hash ?? null }
  const isWaiting = newest !== undefined && isOpen(newest) && !newest.isVoid
  if (isWaiting || (await hasReceipt(ports, own))) return null
  if (ports.signer === null) return reopenMined(ports, lane, own)
  if (newest === undefined || newest.isVoid) {
    const noop = await fill({ ...ports, signer: ports.signer }, lane, fence, nonce, newest)
    logger.warn({ ...details, replacement: noop.hash }, 'unused nonce; filled with a transaction of nothing')
    return noop
  }
  logger.warn(details, 'transaction left the chain; sending it again')
  await relayers.reopen(lane, [nonce])
  return newest
}

/** Without the key, the bytes that a fork has taken back are sent again, unless their action has ended. A nonce stays unfilled. */
async function reopenMined(
  { relayers, logger }: NoncePorts,
  lane: RelayerLane,
  own: readonly AssignedTransaction[],
): Promise<StoredTransaction | null> {
  const mined = own.find(({ status }) => status === 'MINED' || status === 'REVERTED')
  const newest = own.at(-1)
  if (newest?.isVoid && isOpen(newest)) await relayers.noteForeign(lane, newest.nonce)
  if (mined === undefined || mined.isVoid) return null
  const details = { lane: lane.name, relayer: lane.relayer, nonce: mined.nonce, tx_hash: mined.hash }
  logger.warn(details, 'transaction of a former relayer key left the chain; sending it again')
  await relayers.reopen(lane, [mined.nonce])
  return mined
}

/** A receipt can be newer than the count of the chain's transactions, and a preconfirmed one is not in that count yet. */
async function hasReceipt({ chain }: NoncePorts, own: readonly StoredTransaction[]): Promise<boolean> {
  for (const { hash, status } of own) {
    const isEnded = status === 'MINED' || status === 'REVERTED'
    if (isEnded && (await chain.receipt(hash)) !== null) return true
  }
  return false
}

/** Stores a transaction that only uses the nonce. It outbids `old`, which nodes may still have in their pools. */
async function fill(
  { relayers, signer, calls, clock, fee }: NoncePorts & { readonly signer: Signer },
  lane: RelayerLane,
  fence: Fence,
  nonce: number,
  old: StoredTransaction | undefined,
): Promise<StoredTransaction> {
  const bid = old === undefined ? fee() : raiseFee(signer.feeOf(old.raw), fee())
  const signed = await signer.sign(calls.noop(lane.relayer), nonce, bid)
  const transaction = { ...signed, nonce, purpose: NOOP_PURPOSE, signedAt: clock.now() }
  await relayers.addSigned(fence, lane, transaction)
  return asSigned(lane, transaction)
}
