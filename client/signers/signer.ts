/** What signs for an account: its own key, a session key, or a wallet behind an adapter. */
import type { UnsignedTransaction } from '../chain/transaction.ts'
import type { TypedData } from '../typed-data.ts'

type Signature = string | Promise<string>

/** A call that a wallet sends by itself. */
export interface WalletCall {
  readonly chainId: number
  readonly to: string
  readonly data: string
}

/** Signatures are r, s and v (27 or 28): 65 bytes as hex. */
export interface Signer {
  readonly address: string
  /** Signs 32 bytes as a personal message (EIP-191), as the exchange expects it for orders and adjustments. */
  signDigest(digest: Uint8Array): Signature
  /** Signs a text as a personal message: for signing in and for API keys. */
  signMessage?(text: string): Signature
  /** EIP-712: for session keys, margin nonces, and deposits with a permit. */
  signTypedData?(typed: TypedData): Signature
  /** Returns the raw transaction: for deposits and withdrawals through the client's `rpcUrl`. */
  signTransaction?(transaction: UnsignedTransaction): Signature
  /** Sends a call in a transaction and returns its hash. A wallet with a node of its own has it instead of `signTransaction`. */
  sendTransaction?(call: WalletCall): Promise<string>
}

/** Has all that an account's own key can sign. */
export type AccountSigner = Signer &
  Required<Pick<Signer, 'signMessage' | 'signTypedData' | 'signTransaction'>>
