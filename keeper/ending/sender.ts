/** Sends the transactions that end markets. Each is stored before it is sent; a crash in between leaves a nonce that the lane fills. */
import type { Fence } from '../../db/fence.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Call, Fee, Signer } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { RelayerLane, RelayerStore } from '../relayer/ports.ts'
import { asSigned } from '../relayer/stored-transaction.ts'

export interface SenderPorts {
  readonly relayers: Pick<RelayerStore, 'reserve' | 'addSigned'>
  readonly delivery: Pick<Delivery, 'start'>
  readonly signer: Signer
  readonly clock: Clock
  readonly logger: Logger
  readonly fee: () => Fee
}

export interface PurposedCall {
  readonly purpose: string
  readonly call: Call
}

export type Send = (fence: Fence, calls: readonly PurposedCall[]) => Promise<void>

export const createSend =
  ({ relayers, delivery, signer, clock, logger, fee }: SenderPorts, lane: RelayerLane): Send =>
  async (fence, calls) => {
    if (calls.length === 0) return
    const firstNonce = await relayers.reserve(lane, fence, calls.length)
    for (const [at, { purpose, call }] of calls.entries()) {
      const nonce = firstNonce + at
      const signed = await signer.sign(call, nonce, fee())
      const transaction = { ...signed, nonce, purpose, signedAt: clock.now() }
      await relayers.addSigned(fence, lane, transaction)
      logger.info({ lane: lane.name, purpose, nonce, tx_hash: signed.hash }, 'transaction of an end sent')
      delivery.start(asSigned(lane, transaction))
    }
  }
