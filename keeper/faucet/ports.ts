/** Ports of the faucet. */
import type { Fence } from '../../db/fence.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { SignedTransaction } from '../ports.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'

export interface FaucetRequest {
  readonly requestId: number
  readonly to: Address
  /** Test collateral and gas, wei; null if the request states none and the configured amounts apply. */
  readonly collateral: bigint | null
  readonly gas: bigint | null
}

export interface SignedPayout {
  readonly transactions: readonly SignedTransaction[]
  readonly firstNonce: number
  readonly signedAt: Millis
}

export interface FaucetStore {
  requested(limit: number): Promise<readonly FaucetRequest[]>
  /** Stores the transactions of a request. The hash of the first identifies the request. Empty if the request is signed already. */
  storeSigned(
    request: FaucetRequest,
    lane: RelayerLane,
    fence: Fence,
    signed: SignedPayout,
  ): Promise<readonly StoredTransaction[]>
  /** Ends a request that the key cannot pay; nothing if it is signed already. */
  refuse(request: FaucetRequest, fence: Fence): Promise<void>
  /** Marks the requests whose first transaction is mined or reverted. */
  finish(lane: RelayerLane): Promise<void>
}
