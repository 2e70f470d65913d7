/** What the faucet reads and writes. */
import type { Fence } from '../../db/fence.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { SignedTransaction } from '../ports.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'

export interface FaucetRequest {
  readonly requestId: number
  readonly to: Address
  /** Test collateral and gas, wei; null where the request names none: the keeper's own amounts. */
  readonly collateral: bigint | null
  readonly gas: bigint | null
}

export interface FaucetStore {
  requested(limit: number): Promise<readonly FaucetRequest[]>
  /** Keeps the transactions of a request, the first of which is the one it is known by: one transaction. */
  sign(
    request: FaucetRequest,
    lane: RelayerLane,
    fence: Fence,
    now: Millis,
    sign: (firstNonce: number) => readonly SignedTransaction[],
  ): Promise<readonly StoredTransaction[]>
  /** Marks requests whose transactions are mined. */
  finish(lane: RelayerLane): Promise<void>
}
