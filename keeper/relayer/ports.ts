/** Relayers and the transactions that they have signed. */
import type { Fence } from '../../db/fence.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { Receipt, SignedTransaction } from '../ports.ts'

/** One key and its row of nonces. */
export interface RelayerLane {
  readonly name: string
  readonly relayer: Address
  readonly chainId: number
}

export type TransactionStatus = 'SIGNED' | 'BROADCAST' | 'MINED' | 'REVERTED' | 'REPLACED'

export interface StoredTransaction extends SignedTransaction {
  readonly nonce: number
  readonly purpose: string
  readonly status: TransactionStatus
  readonly block: number | null
  /** What the node last answered. */
  readonly error: string | null
  readonly signedAt: Millis
  readonly broadcastAt: Millis | null
}

export interface RelayerStore {
  /** Makes the lane known. `firstNonce` counts only where nothing was ever signed. */
  register(lane: RelayerLane, firstNonce: number): Promise<void>
  /** Not yet in a block, all hashes of a nonce, by nonce and time of signing. */
  open(lane: RelayerLane): Promise<readonly StoredTransaction[]>
  /** Everything signed with this nonce or a later one, whatever has become of it. */
  from(lane: RelayerLane, nonce: number): Promise<readonly StoredTransaction[]>
  /** Keeps another transaction with the nonce of an open one. */
  addReplacement(
    fence: Fence,
    lane: RelayerLane,
    transaction: Pick<StoredTransaction, 'hash' | 'raw' | 'nonce' | 'purpose' | 'signedAt'>,
  ): Promise<void>
  noteSend(hash: string, at: Millis, error: string | null): Promise<void>
  /** Records a receipt: the nonce is used, its other hashes are replaced. Wakes whoever follows the chain. */
  noteReceipt(lane: RelayerLane, nonce: number, receipt: Receipt): Promise<void>
  /** Their block left the chain: they wait for a receipt again. */
  reopen(lane: RelayerLane, nonces: readonly number[]): Promise<void>
}
