/** Relayer transactions as the keeper's jobs know them. */
import type { NewTransaction, RelayerKey, TransactionRow } from '../../db/relayers.ts'
import { ACTION_KINDS } from '../../domain/actions/action.ts'
import type { Address, Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { StoredTransaction } from './ports.ts'

/** Purpose of a transaction that only uses its nonce. */
export const NOOP_PURPOSE = 'nothing'

/** True while the transaction has no receipt and its nonce is not known to be used. */
export const isOpen = ({ status }: Pick<StoredTransaction, 'status'>): boolean =>
  status === 'SIGNED' || status === 'BROADCAST'

export const toTransaction = (row: TransactionRow): StoredTransaction => ({
  hash: row.tx_hash,
  raw: row.raw as `0x${string}`,
  relayer: row.relayer as Address,
  nonce: row.nonce,
  purpose: row.purpose,
  status: row.status,
  block: row.block,
  error: row.error,
  signedAt: row.signed_at as Millis,
  broadcastAt: row.broadcast_at as Millis | null,
})

/** A transaction as it is stored when it is signed. */
export const asSigned = (
  { relayer }: Pick<RelayerKey, 'relayer'>,
  { hash, raw, nonce, purpose, signedAt }: NewTransaction,
): StoredTransaction => ({
  hash,
  raw: raw as `0x${string}`,
  relayer: relayer as Address,
  nonce,
  purpose,
  status: 'SIGNED',
  block: null,
  error: null,
  signedAt: signedAt as Millis,
  broadcastAt: null,
})

/** A nonce of one key, used by a transaction or reserved for one. */
interface Numbered {
  readonly relayer: string | null
  readonly nonce: number | null
}

/** Two keys of a lane use equal nonces, so a nonce alone names no transaction. */
export const isSameNonce = (one: Numbered, other: Numbered): boolean =>
  one.nonce === other.nonce && one.relayer === other.relayer

/** Time after which a repeatable transaction of a missing key is no longer sent. */
const FORGET_AFTER_MS = 60_000
/**
 * Purposes whose transactions are followed while they may be mined, because a second transaction would have an effect
 * of its own or end its request.
 */
const FOLLOWED: readonly string[] = [...ACTION_KINDS, 'adjustment', 'faucet']

/**
 * True if a transaction of a missing key need not be followed: it can only revert, use a nonce, or was repeated safely
 * (heartbeats, claims, relays). `hashes` of one nonce, oldest first.
 */
export function isForgettable(hashes: readonly StoredTransaction[], isDead: boolean, clock: Clock): boolean {
  const newest = hashes.at(-1) as StoredTransaction
  if (isDead || newest.purpose === NOOP_PURPOSE) return true
  return !FOLLOWED.includes(newest.purpose) && elapsed(clock, newest.signedAt) >= FORGET_AFTER_MS
}

export const byNonce = <Of extends { readonly nonce: number }>(
  transactions: readonly Of[],
): Map<number, Of[]> => Map.groupBy(transactions, ({ nonce }) => nonce)
