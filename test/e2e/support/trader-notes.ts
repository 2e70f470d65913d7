/** What one trader of a run sent and received, as the basis of the model's checks. */
import type { OutgoingOrder } from '../../../client/order-factory.ts'
import type { Bookmark, PlacedOrder } from '../../../client/responses.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Order } from '../../../domain/orders/order.ts'

/** How long a client retries: long enough for a killed process to restart. */
export const BUDGET_MS = 60_000

/** Largest difference between the test's clock and the database's, which are one clock read at different precision. */
export const CLOCK_SLACK_MS = 2

export interface SentOrder {
  readonly by: number
  readonly spec: MarketSpec
  readonly outgoing: OutgoingOrder
  readonly order: Order
  readonly hash: string
  /** In lower case. */
  readonly signer: string
  /** Null until the placement returns, and if it was rejected. */
  id: string | null
  /** True once a cancel of the order has succeeded. */
  cancelPromised: boolean
  /** The order when it was first read as ended. It must not change afterwards. */
  ended: PlacedOrder | null
}

/** The exchange executed a request, if at all, between these two times of the test's clock. */
interface RequestWindow {
  readonly sentAt: number
  answeredAt: number
}

/** One command that places orders, retried by the client until a response arrived. */
export interface PlacementAttempt extends RequestWindow {
  readonly by: number
  readonly account: number
  readonly mode: 'single' | 'atomic' | 'best_effort'
  readonly orders: readonly SentOrder[]
  /** `accepted` or an error code per order; one code if the whole command was rejected. */
  readonly answer: string
  /** Hashes. */
  readonly accepted: ReadonlySet<string>
}

/** The state of an order in one response. */
export interface Observation {
  readonly source: 'cancel' | 'sent again' | 'read'
  readonly order: PlacedOrder
  /** The state must not be older: the time of the request, or for a bookmarked read the bookmark. */
  readonly since: number | Bookmark
  readonly answeredAt: number
}

interface Cancel extends RequestWindow {
  readonly covers: (sentOrder: SentOrder) => boolean
}

interface Arm {
  /** By the server's clock; null if the command disarmed the switch. */
  readonly fireAt: number | null
  /** Time of the response by the same clock. */
  readonly at: number
}

export interface SentBatch {
  readonly id: string
  readonly mode: 'atomic' | 'best_effort'
  readonly orders: readonly SentOrder[]
  /** The response as JSON without `is_duplicate`. */
  readonly answer: string
}

const marketOf = (shardId: string): string => shardId.slice(0, shardId.indexOf('.'))

export class TraderNotes {
  readonly sent: SentOrder[] = []
  readonly arms: Arm[] = []
  readonly batches: SentBatch[] = []
  readonly cancels: Cancel[] = []
  /** Keys whose revocation the exchange has ingested. */
  readonly revoked = new Set<string>()
  /** Keys whose revocation was sent. */
  readonly revoking = new Set<string>()
  readonly address: string
  readonly account: number
  readonly deposited: bigint
  readonly #byHash = new Map<string, SentOrder>()
  #attempts: PlacementAttempt[] = []
  #observations: Observation[] = []
  readonly #bookmarks = new Map<string, Bookmark>()

  constructor(address: string, account: number, deposited: bigint) {
    this.address = address
    this.account = account
    this.deposited = deposited
  }

  addOrder(sentOrder: SentOrder): void {
    this.sent.push(sentOrder)
    this.#byHash.set(sentOrder.hash, sentOrder)
  }

  byHash = (hash: string): SentOrder | undefined => this.#byHash.get(hash)

  addAttempt(attempt: PlacementAttempt): void {
    this.#attempts.push(attempt)
  }

  /** Those added since the last call. */
  drainAttempts(): readonly PlacementAttempt[] {
    return this.#attempts.splice(0)
  }

  addObservation(observation: Observation): void {
    this.#observations.push(observation)
  }

  /** Those added since the last call. */
  drainObservations(): readonly Observation[] {
    return this.#observations.splice(0)
  }

  /** Keeps only bookmarks of market shards: one of `accounts` covers several shards. */
  addBookmark(bookmark: Bookmark): void {
    if (bookmark.shard_id.startsWith('m')) this.#bookmarks.set(marketOf(bookmark.shard_id), bookmark)
  }

  /** The bookmark of this trader's last write to the market. */
  bookmark = (marketId: number): Bookmark | undefined => this.#bookmarks.get(`m${marketId}`)

  /** Notes the time window of a cancel while it runs. */
  async trackCancel<Answer>(covers: Cancel['covers'], send: () => Promise<Answer>): Promise<Answer> {
    const cancel = { sentAt: Date.now(), answeredAt: Number.POSITIVE_INFINITY, covers }
    this.cancels.push(cancel)
    const answer = await send()
    cancel.answeredAt = Date.now()
    return answer
  }

  /** Whether a cancel that covers the order was in flight at this time. */
  wasCancelling(orderId: string, at: number): boolean {
    const sentOrder = this.sent.find(({ id }) => id === orderId)
    return (
      sentOrder !== undefined &&
      this.cancels.some(
        ({ sentAt, answeredAt, covers }) =>
          sentAt - CLOCK_SLACK_MS <= at && at <= answeredAt + CLOCK_SLACK_MS && covers(sentOrder),
      )
    )
  }

  /** Notes the order in a cancel's response, and checks `cancelled` against its status. `Observations` checks the status. */
  noteCancelled(
    sentOrder: SentOrder,
    { order, cancelled }: { readonly order: PlacedOrder; readonly cancelled: boolean },
    since: number,
  ): string[] {
    sentOrder.id ??= order.order_id
    // A filled order is open again if its last fill is rolled back and voided: the cancel found nothing to cancel.
    if (order.status !== 'FILLED') sentOrder.cancelPromised = true
    this.addObservation({ source: 'cancel', order, since, answeredAt: Date.now() })
    if (order.order_hash !== sentOrder.hash)
      return [`cancel of ${sentOrder.hash} returned order ${order.order_hash}`]
    const isOut = order.status === 'CANCELLED' || order.status === 'CANCEL_PENDING_FINALIZE'
    return cancelled === isOut ? [] : [`cancelled is ${cancelled} with status ${order.status}`]
  }

  get accepted(): readonly SentOrder[] {
    return this.sent.filter(({ id }) => id !== null)
  }

  pick(number: number): SentOrder | undefined {
    return this.sent.length === 0 ? undefined : this.sent[number % this.sent.length]
  }

  /** Times at which a switch may have fired by `now`. A switch that was re-armed after its time may have fired before. */
  possibleFires(now: number): number[] {
    return this.arms.flatMap(({ fireAt }, place) => {
      const next = this.arms[place + 1]
      return fireAt === null || fireAt > now || (next !== undefined && next.at < fireAt) ? [] : [fireAt]
    })
  }

  /** When the last armed switch fired; null if it did not fire by `now`. */
  firedAt(now: number): number | null {
    const fireAt = this.arms.at(-1)?.fireAt ?? null
    return fireAt !== null && fireAt <= now ? fireAt : null
  }

  /** Whether the last switch is armed and has not fired. */
  isArmed(now: number): boolean {
    const fireAt = this.arms.at(-1)?.fireAt ?? null
    return fireAt !== null && fireAt > now
  }
}
