/**
 * Follows the transactions of a relayer lane: those of its present key, and those of its former keys until they can have no effect. Each key
 * has nonces of its own (`key-delivery.ts`).
 */

import type { Fence } from '../../db/fence.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { Receipt, Signer } from '../ports.ts'
import { type IsDead, KeyDelivery, type KeyDeliveryPorts } from './key-delivery.ts'
import type { RelayerLane, StoredTransaction } from './ports.ts'

export interface DeliveryPorts extends Omit<KeyDeliveryPorts, 'signer'> {
  readonly signer: Signer
  /** The signer of a former key of the lane; null if the keeper no longer has it. Absent: it has none. */
  readonly formerSigner?: (relayer: Address) => Signer | null
}

/** How long a former key is watched after its last signature: a fork can take its transactions back. */
const FORMER_KEY_MS = 3_600_000

export class Delivery {
  readonly #ports: DeliveryPorts
  readonly #lane: RelayerLane
  readonly #keys = new Map<string, KeyDelivery>()

  constructor(ports: DeliveryPorts, lane: RelayerLane) {
    this.#ports = ports
    this.#lane = lane
  }

  /** Sends in the background. The response is recorded when it arrives. */
  start(transaction: StoredTransaction): void {
    this.#key(transaction.relayer).start(transaction)
  }

  /** Resolves when the response to every send in flight is recorded. */
  async settled(): Promise<void> {
    await Promise.all([...this.#keys.values()].map((key) => key.settled()))
  }

  /** Compares the nonces of the lane's keys with the chain's, and sends what has left the chain or fills a nonce. */
  async recover(fence: Fence): Promise<void> {
    const { relayers, clock } = this.#ports
    const former = await relayers.formerKeys(this.#lane, (clock.now() - FORMER_KEY_MS) as Millis)
    for (const relayer of [...former, this.#lane.relayer]) await this.#key(relayer).recover(fence)
  }

  /**
   * `recover`, at once if a nonce was used unexpectedly, else at an interval. `isPending`: transactions wait for the chain. Returns whether
   * it was due.
   */
  async recoverIfDue(fence: Fence, isPending: boolean): Promise<boolean> {
    if (!this.#key(this.#lane.relayer).isRecoveryDue(isPending)) return false
    await this.recover(fence)
    return true
  }

  /** Fetches receipts of open transactions that have no send in flight; resends or replaces those without a receipt. */
  async check(fence: Fence, open: readonly StoredTransaction[], isDead: IsDead): Promise<void> {
    for (const [relayer, own] of Map.groupBy(open, (transaction) => transaction.relayer))
      await this.#key(relayer).check(fence, own, isDead)
  }

  /** See `KeyDelivery.refresh`. */
  refresh(transaction: StoredTransaction): Promise<Receipt | null> {
    return this.#key(transaction.relayer).refresh(transaction)
  }

  #key(relayer: Address): KeyDelivery {
    const known = this.#keys.get(relayer)
    if (known !== undefined) return known
    const isPresent = relayer === this.#lane.relayer
    const signer = isPresent ? this.#ports.signer : (this.#ports.formerSigner?.(relayer) ?? null)
    const key = new KeyDelivery({ ...this.#ports, signer }, { ...this.#lane, relayer })
    this.#keys.set(relayer, key)
    return key
  }
}
