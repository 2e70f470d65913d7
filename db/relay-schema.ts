/** Requests of owners that the exchange relays to the chain, and what the indexer has recorded of their effects. */
import type { RelayFailure, RelayKind, RelayStatus } from '../domain/relays/operation.ts'

/**
 * Signed forward requests: accepted by the API, sent by the keeper, ended by the indexer or the keeper. `operation_id`:
 * EIP-712 digest. Written by: engine.
 */
export interface RelayOperationsTable {
  operation_id: string
  user_id: number
  kind: RelayKind
  /** Null for `invalidate_margin_nonces`. */
  session_key: string | null
  /** Market and new minimum of `invalidate_margin_nonces`; null for other kinds. */
  market_id: number | null
  minimum: bigint | null
  /** The signer of the forward request. */
  owner: string
  target: string
  gas: number
  nonce: number
  /** Unix seconds: the last block time at which the request is valid. */
  deadline: number
  data: string
  signature: string
  status: RelayStatus
  failure: RelayFailure | null
  reason: string | null
  /** The relayer's key and nonce that the request was signed with; null before. */
  relayer: string | null
  relayer_nonce: number | null
  /** Hash of the first signed transaction; once confirmed, of the transaction that executed the operation. */
  tx_hash: string | null
  /** In which the chain executed the nonce; null before. */
  block: number | null
  created_at: number
  updated_at: number
}

/** The next nonce of each signer at the forwarder; a signer without a row has 0. Written by: engine. */
export interface ForwarderNoncesTable {
  signer: string
  next_nonce: number
  /** Block of the last execution. */
  block: number
}

/** Adjustments of the account with a lower nonce are invalid; an account without a row has 0. Written by: engine. */
export interface MarginNonceFloorsTable {
  market_id: number
  account: string
  minimum: bigint
  /** Block of the last change. */
  block: number
}

export interface RelayTables {
  relay_operations: RelayOperationsTable
  forwarder_nonces: ForwarderNoncesTable
  margin_nonce_floors: MarginNonceFloorsTable
}
