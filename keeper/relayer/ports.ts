/** Relayers and the transactions that they have signed. */
import type { Fence } from '../../db/fence.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { Receipt, SignedTransaction } from '../ports.ts'

/** A lane and its present relayer key, which has a sequence of nonces. */
export interface RelayerLane {
  readonly name: string
  readonly relayer: Address
  readonly chainId: number
}

/** STORED: the engine has not accepted the transaction yet, so it must not be sent. */
export type TransactionStatus = 'STORED' | 'SIGNED' | 'BROADCAST' | 'MINED' | 'REVERTED' | 'REPLACED'

export interface StoredTransaction extends SignedTransaction {
  /** The key that has signed it. */
  readonly relayer: Address
  readonly nonce: number
  readonly purpose: string
  readonly status: TransactionStatus
  readonly block: number | null
  /** The node's last error. */
  readonly error: string | null
  readonly signedAt: Millis
  readonly broadcastAt: Millis | null
}

/** A transaction that its nonce was signed for, and whether it may still be sent. */
export interface AssignedTransaction extends StoredTransaction {
  /** True if its action has ended or was signed again with another nonce. */
  readonly isVoid: boolean
}

export interface RelayerStore {
  /** Makes the key the lane's present one. Its next nonce becomes the greater of `firstNonce` and the stored one. Throws if the key belongs to another lane. */
  register(lane: RelayerLane, firstNonce: number): Promise<void>
  /** Foreign transactions have used the nonces of the key below `nonce`. */
  skipTo(lane: RelayerLane, nonce: number): Promise<void>
  /** Other keys of the lane that have open transactions, or have signed some since `since`, which a fork can take back. */
  formerKeys(lane: RelayerLane, since: Millis): Promise<readonly Address[]>
  nextNonce(lane: RelayerLane): Promise<number>
  /** Reserves consecutive nonces and returns the first. The lane fills those with which nothing is stored. */
  reserve(lane: RelayerLane, fence: Fence, count: number): Promise<number>
  /** Transactions of all keys of the lane that are in no block, all hashes of each nonce, by key, nonce and time of signing. */
  open(lane: RelayerLane): Promise<readonly StoredTransaction[]>
  /** Everything signed with nonces >= `from` and < `to`, in any status, by nonce and time of signing. */
  assigned(lane: RelayerLane, from: number, to: number): Promise<readonly AssignedTransaction[]>
  /** Nonces in the range that are reserved for queued actions, which will be signed with them. */
  reserved(lane: RelayerLane, from: number, to: number): Promise<ReadonlySet<number>>
  /** Stores a transaction with an assigned nonce, which may have others already. */
  addSigned(
    fence: Fence,
    lane: RelayerLane,
    transaction: Pick<StoredTransaction, 'hash' | 'raw' | 'nonce' | 'purpose' | 'signedAt'>,
  ): Promise<void>
  noteSend(hash: string, at: Millis, error: string | null): Promise<void>
  /** Records a receipt: the nonce is used, its other hashes become REPLACED. Notifies the indexer. */
  noteReceipt(lane: RelayerLane, nonce: number, receipt: Receipt): Promise<void>
  /** The nonce is used by a transaction that is not stored: its open transactions become REPLACED. */
  noteForeign(lane: RelayerLane, nonce: number): Promise<void>
  /** For nonces whose block left the chain: their transactions are BROADCAST again. */
  reopen(lane: RelayerLane, nonces: readonly number[]): Promise<void>
}
