/** Signers of an account: its own key, a session key, or a wallet behind an adapter. */
import type { UnsignedTransaction } from '../chain/transaction.ts'
import type { TypedData } from '../typed-data.ts'

type Signature = string | Promise<string>

/** A call that a wallet submits on its own. */
export interface WalletCall {
  readonly chainId: number
  readonly to: string
  readonly data: string
}

/** Signer of an account. Signatures are r, s and v (27 or 28): 65 bytes as hex. */
export interface Signer {
  readonly address: string
  /** Signs 32 bytes as a personal message (EIP-191), for orders and adjustments. */
  signDigest(digest: Uint8Array): Signature
  /** Signs a text as a personal message, for sign-in and API keys. */
  signMessage?(text: string): Signature
  /** Signs EIP-712 data, for session keys, margin nonces, and deposits with a permit. */
  signTypedData?(typed: TypedData): Signature
  /**
   * Signs a transaction and returns its raw bytes, for deposits and withdrawals through the client's
   * `rpcUrl`.
   */
  signTransaction?(transaction: UnsignedTransaction): Signature
  /**
   * Submits a call in a transaction and returns its hash. Wallets with their own node implement it instead of
   * `signTransaction`.
   */
  sendTransaction?(call: WalletCall): Promise<string>
}

/** A signer with every capability of an account's own key. */
export type AccountSigner = Signer &
  Required<Pick<Signer, 'signMessage' | 'signTypedData' | 'signTransaction'>>
