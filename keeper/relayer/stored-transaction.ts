/** Relayer transactions as the keeper's jobs know them. */
import type { NewTransaction, TransactionRow } from '../../db/relayers.ts'
import type { Millis } from '../../domain/units.ts'
import type { StoredTransaction } from './ports.ts'

/** Purpose of a transaction that only uses its nonce. */
export const NOOP_PURPOSE = 'nothing'

/** True while the transaction has no receipt and its nonce is not known to be used. */
export const isOpen = ({ status }: Pick<StoredTransaction, 'status'>): boolean =>
  status === 'SIGNED' || status === 'BROADCAST'

export const toTransaction = (row: TransactionRow): StoredTransaction => ({
  hash: row.tx_hash,
  raw: row.raw as `0x${string}`,
  nonce: row.nonce,
  purpose: row.purpose,
  status: row.status,
  block: row.block,
  error: row.error,
  signedAt: row.signed_at as Millis,
  broadcastAt: row.broadcast_at as Millis | null,
})

/** A transaction as it is stored when it is signed. */
export const asSigned = ({ hash, raw, nonce, purpose, signedAt }: NewTransaction): StoredTransaction => ({
  ...{ hash, raw: raw as `0x${string}`, nonce, purpose },
  status: 'SIGNED',
  block: null,
  error: null,
  signedAt: signedAt as Millis,
  broadcastAt: null,
})

export const byNonce = <Of extends { readonly nonce: number }>(
  transactions: readonly Of[],
): Map<number, Of[]> => Map.groupBy(transactions, ({ nonce }) => nonce)
