/** What traders know of their orders from what they sent and were answered: the model's side of the comparison. No exchange in it. */

import type { OutgoingOrder } from '../../../client/order-factory.ts'
import type { Bookmark, PlacedOrder } from '../../../client/responses.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Order } from '../../../domain/orders/order.ts'

/** How long a trader waits for an answer: a process that was killed is back by then. */
export const BUDGET_MS = 60_000

/** Between the clock of the database and that of the tests, which are one clock read in different ways. */
export const SLACK_MS = 2

export interface PaperOrder {
  readonly by: number
  readonly spec: MarketSpec
  readonly outgoing: OutgoingOrder
  readonly order: Order
  readonly hash: string
  /** Lower case. */
  readonly signer: string
  /** Null until it is answered, or where it was refused. */
  id: string | null
  /** A cancel was answered with success. */
  cancelPromised: boolean
  /** As it was first seen to have ended: it stays so. */
  ended: PlacedOrder | null
}

/** Between these two times, by the clock of the tests, the exchange did what it was asked for, or did not. */
interface Asked {
  readonly sentAt: number
  answeredAt: number
}

/** One command that places orders, sent again by the client until it was answered. */
export interface Attempt extends Asked {
  readonly by: number
  readonly account: number
  readonly mode: 'single' | 'atomic' | 'best_effort'
  readonly orders: readonly PaperOrder[]
  /** `accepted` or a code for each order; one code where the whole was refused. */
  readonly answer: string
  /** Hashes. */
  readonly accepted: ReadonlySet<string>
}

/** What an order was told to be. */
export interface Sighting {
  readonly what: 'cancel' | 'sent again' | 'read'
  readonly told: PlacedOrder
  /** Not older than this: when it was asked for, or for a read the write that it must show. */
  readonly since: number | Bookmark
  readonly answeredAt: number
}

interface Cancel extends Asked {
  readonly covers: (mine: PaperOrder) => boolean
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

const marketOf = (shardId: string): string => shardId.slice(0, shardId.indexOf('.'))

/** One trader's notes. */
export class Paper {
  readonly sent: PaperOrder[] = []
  readonly arms: Arm[] = []
  readonly batches: SentBatch[] = []
  readonly cancels: Cancel[] = []
  /** Keys that are revoked on the chain. */
  readonly revoked = new Set<string>()
  /** Keys whose revocation was asked for. */
  readonly revoking = new Set<string>()
  readonly address: string
  readonly account: number
  readonly deposited: bigint
  readonly #byHash = new Map<string, PaperOrder>()
  #attempts: Attempt[] = []
  #sightings: Sighting[] = []
  readonly #bookmarks = new Map<string, Bookmark>()

  constructor(address: string, account: number, deposited: bigint) {
    this.address = address
    this.account = account
    this.deposited = deposited
  }

  note(mine: PaperOrder): void {
    this.sent.push(mine)
    this.#byHash.set(mine.hash, mine)
  }

  byHash = (hash: string): PaperOrder | undefined => this.#byHash.get(hash)

  attempted(attempt: Attempt): void {
    this.#attempts.push(attempt)
  }

  /** Those since the last call. */
  takeAttempts(): readonly Attempt[] {
    return this.#attempts.splice(0)
  }

  saw(sighting: Sighting): void {
    this.#sightings.push(sighting)
  }

  /** Those since the last call. */
  takeSightings(): readonly Sighting[] {
    return this.#sightings.splice(0)
  }

  /** Bookmarks of one shard only: `accounts` stands for several. */
  wrote(bookmark: Bookmark): void {
    if (bookmark.shard_id.startsWith('m')) this.#bookmarks.set(marketOf(bookmark.shard_id), bookmark)
  }

  /** Of this trader's last write to the market. */
  bookmark = (marketId: number): Bookmark | undefined => this.#bookmarks.get(`m${marketId}`)

  /** Writes down what is asked for while it is: see `Asked`. */
  async cancelling<Answer>(covers: Cancel['covers'], ask: () => Promise<Answer>): Promise<Answer> {
    const cancel = { sentAt: Date.now(), answeredAt: Number.POSITIVE_INFINITY, covers }
    this.cancels.push(cancel)
    const answer = await ask()
    cancel.answeredAt = Date.now()
    return answer
  }

  /** Whether a cancel that covers the order was on its way then. */
  wasCancelling(orderId: string, at: number): boolean {
    const mine = this.sent.find(({ id }) => id === orderId)
    return (
      mine !== undefined &&
      this.cancels.some(
        ({ sentAt, answeredAt, covers }) =>
          sentAt - SLACK_MS <= at && at <= answeredAt + SLACK_MS && covers(mine),
      )
    )
  }

  get accepted(): readonly PaperOrder[] {
    return this.sent.filter(({ id }) => id !== null)
  }

  pick(number: number): PaperOrder | undefined {
    return this.sent.length === 0 ? undefined : this.sent[number % this.sent.length]
  }

  /** When switches may have fired by `now`: one that was armed anew after its time fired if it was taken up before. */
  possibleFires(now: number): number[] {
    return this.arms.flatMap(({ fireAt }, place) => {
      const next = this.arms[place + 1]
      return fireAt === null || fireAt > now || (next !== undefined && next.at < fireAt) ? [] : [fireAt]
    })
  }

  /** When the last switch has fired, if it has. */
  firedAt(now: number): number | null {
    const fireAt = this.arms.at(-1)?.fireAt ?? null
    return fireAt !== null && fireAt <= now ? fireAt : null
  }

  /** Whether a switch is armed that has not fired. */
  isArmed(now: number): boolean {
    const fireAt = this.arms.at(-1)?.fireAt ?? null
    return fireAt !== null && fireAt > now
  }
}
