/** What traders know of their orders from what they sent and were answered: the model's side of the comparison. No exchange in it. */
import type { PlacedOrder } from '../../../client/answers.ts'
import type { OutgoingOrder } from '../../../client/trading.ts'
import type { MarketSpec } from '../../../domain/market.ts'
import type { Order } from '../../../domain/order.ts'
import type { Price } from '../../../domain/units.ts'

export interface PaperOrder {
  readonly by: number
  readonly spec: MarketSpec
  readonly outgoing: OutgoingOrder
  readonly order: Order
  readonly hash: string
  /** Lower case. */
  readonly signer: string
  /** The oracle price through all of the time in which it may have been accepted. */
  readonly oracle: Price
  /** Null until it is answered, or where it was refused. */
  id: string | null
  /** A cancel that covers it was sent. */
  cancelAsked: boolean
  /** A cancel was answered with success. */
  cancelPromised: boolean
  /** As it was first seen to have ended: it stays so. */
  ended: PlacedOrder | null
}

interface Arm {
  /** By the server's clock; null where this disarmed. */
  readonly fireAt: number | null
  /** Answered at, by the same clock. */
  readonly at: number
}

export interface SentBatch {
  readonly id: string
  readonly mode: 'atomic' | 'best_effort'
  readonly orders: readonly PaperOrder[]
  /** As text, without `is_duplicate`. */
  readonly answer: string
}

/** One trader's notes. */
export class Paper {
  readonly sent: PaperOrder[] = []
  readonly arms: Arm[] = []
  readonly batches: SentBatch[] = []
  /** Keys that are revoked on the chain. */
  readonly revoked = new Set<string>()
  /** Keys whose revocation was asked for. */
  readonly revoking = new Set<string>()
  readonly address: string
  readonly deposited: bigint

  constructor(address: string, deposited: bigint) {
    this.address = address
    this.deposited = deposited
  }

  get accepted(): readonly PaperOrder[] {
    return this.sent.filter(({ id }) => id !== null)
  }

  pick(number: number): PaperOrder | undefined {
    return this.sent.length === 0 ? undefined : this.sent[number % this.sent.length]
  }

  /** When a switch that covers an order accepted at `acceptedAt` has fired, or null. */
  firedOver(acceptedAt: number, now: number): number | null {
    for (const [place, { fireAt }] of this.arms.entries()) {
      const next = this.arms[place + 1]
      const replaced = next !== undefined && fireAt !== null && next.at < fireAt
      if (fireAt !== null && !replaced && fireAt <= now && acceptedAt <= fireAt) return fireAt
    }
    return null
  }

  /** Whether a switch is armed that has not fired. */
  isArmed(now: number): boolean {
    const fireAt = this.arms.at(-1)?.fireAt ?? null
    return fireAt !== null && fireAt > now
  }
}
