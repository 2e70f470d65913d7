/** Relayers, the keys of their lanes, and their transactions. */
import type { Generated } from 'kysely'

/**
 * A relayer key on one chain, its lane and its next nonce. A key belongs to one lane for ever; a lane may have had several keys, of which the
 * last registered one is present. Written by: keeper, engine.
 */
export interface RelayersTable {
  address: string
  chain_id: number
  lane: string
  next_nonce: number
  /** When a keeper last began to run the lane with the key, by the database's clock. */
  registered_at: Generated<number>
}

/** The key that an operator has chosen for a lane; a keeper that has it uses it. Written by: the operator's commands, as owner. */
export interface RelayerChoicesTable {
  lane: string
  address: string
  chosen_at: number
}

/** STORED: the engine has not accepted the transaction yet, so it must not be sent. */
export type TransactionStatus = 'STORED' | 'SIGNED' | 'BROADCAST' | 'MINED' | 'REVERTED' | 'REPLACED'

/** Every transaction ever signed, stored before it is sent. Written by: keeper. */
export interface RelayerTransactionsTable {
  tx_hash: string
  relayer: string
  chain_id: number
  nonce: number
  purpose: string
  raw: string
  status: TransactionStatus
  error: string | null
  signed_at: number
  broadcast_at: number | null
  block: number | null
  gas_used: Generated<number | null>
}
