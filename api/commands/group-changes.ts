/** The changes that a group will write, applied to the state in memory. Every step can be rolled back until it is written. */

import type { NewClientRequest } from '../../db/client-requests.ts'
import { toMargin } from '../../db/funding.ts'
import { type ShardHead, shardId } from '../../db/journal.ts'
import { type EndedOrder, toEndedOrder, toOpenOrder } from '../../db/orders.ts'
import type { CommandSpanned } from '../../domain/journal/accounts-row.ts'
import type { MarketRow, OrderEnded, OrderEnding, OrderPlaced } from '../../domain/journal/journal-row.ts'
import { leaveBook } from '../../domain/orders/open-order.ts'
import type { ClosingReason } from '../../domain/orders/order-state.ts'
import type { Millis } from '../../domain/units.ts'
import type { BalanceParts } from '../accounts/view.ts'
import type { Bookmark, Command } from './command.ts'
import type { CurrentMarket, Funds, GroupState, Holding, StoredOrder } from './group-state.ts'
import type { LabelledOrder } from './labelled-orders.ts'
import { holdingKey, labelKey, requestKey, saltKey } from './state-keys.ts'

export class GroupChanges {
  readonly state: GroupState
  /** New journal rows by market. Row i will have sequence `head + 1 + i`. */
  readonly rows = new Map<number, MarketRow[]>()
  readonly spanned: CommandSpanned[] = []
  readonly ended: EndedOrder[] = []
  readonly reservedDeltas = new Map<number, bigint>()
  readonly requests: NewClientRequest[] = []
  readonly #undo: (() => void)[] = []

  constructor(state: GroupState) {
    this.state = state
    for (const marketId of state.markets.keys()) this.rows.set(marketId, [])
  }

  /** Runs `work` and rolls its changes back if it throws. */
  attempt<Value>(work: () => Value): Value {
    const mark = this.#undo.length
    try {
      return work()
    } catch (error) {
      this.#rollBackTo(mark)
      throw error
    }
  }

  market(marketId: number): CurrentMarket {
    return this.state.markets.get(marketId) as CurrentMarket
  }

  funds(userId: number): Funds {
    return this.state.funds.get(userId) as Funds
  }

  /** Funding of its positions accrues until `now`. */
  balance(userId: number, now: Millis): BalanceParts {
    const { margins, ...parts } = this.funds(userId)
    return { ...parts, positionMargin: toMargin(margins, this.state.fundings, now) }
  }

  holding(marketId: number, userId: number): Holding {
    return this.state.holdings.get(holdingKey(marketId, userId)) as Holding
  }

  /** A live order of the account with the label, after all changes so far. */
  liveWithLabel(userId: number, clientOrderId: string): LabelledOrder | undefined {
    const labelled = this.state.labelled.get(labelKey(userId, clientOrderId)) ?? []
    return labelled.find(({ hash }) => (this.state.byHash.get(hash)?.ended_at ?? null) === null)
  }

  nextSeq(marketId: number): number {
    return this.#headOf(marketId) + 1
  }

  /** Bookmark of the market's journal with all changes so far. */
  bookmark(marketId: number): Bookmark {
    const { head } = this.market(marketId)
    return { shard_id: shardId(head), shard_seq: String(this.#headOf(marketId)) }
  }

  /** Bookmark of a command over `marketIds`: of the only journal, or of a `command_spanned` row in `accounts` that covers all of them. */
  commandBookmark(
    { userId, covers }: Pick<Command, 'userId' | 'covers'>,
    marketIds: readonly number[],
    at: Millis,
  ): Bookmark {
    const heads = [...marketIds.map((id) => ({ ...this.market(id).head, head: this.#headOf(id) })), ...covers]
    const [only] = heads
    if (only !== undefined && heads.length === 1) {
      return { shard_id: shardId(only), shard_seq: String(only.head) }
    }
    const accounts = this.state.accounts as ShardHead
    if (heads.length > 1) {
      const shards = Object.fromEntries(heads.map(({ shard, head }) => [shard, head]))
      this.#push(this.spanned, { kind: 'command_spanned', user_id: userId, shards, at })
    }
    return { shard_id: shardId(accounts), shard_seq: String(accounts.head + this.spanned.length) }
  }

  /** `stored` and `row` describe the same order. */
  place(stored: StoredOrder, row: OrderPlaced): void {
    const { market_id: marketId, user_id: userId } = stored
    this.#push(this.#rowsOf(marketId), row)
    this.#reserve(marketId, userId, stored.reserved)
    const holding = this.holding(marketId, userId)
    this.#hold(marketId, userId, {
      count: holding.count + 1,
      ...exposed(holding, stored, 1),
    })
    this.#remember(stored)
    this.#label(stored)
    // A cancel of all orders in the same group ends this one, too.
    const key = holdingKey(marketId, userId)
    this.#set(this.state.live, key, [...(this.state.live.get(key) ?? []), stored.hash])
  }

  /** Removes the order from the book. Returns its new state. */
  end(stored: StoredOrder, reason: ClosingReason, note: string | null, at: Millis): StoredOrder {
    const { market_id: marketId, user_id: userId } = stored
    const { order, row } = leaveBook(toOpenOrder(stored), reason, at)
    const holding = this.holding(marketId, userId)
    this.#hold(marketId, userId, {
      count: holding.count - (order.endedAt === null ? 0 : 1),
      ...exposed(holding, stored, -1),
    })
    this.#reserve(marketId, userId, -stored.reserved)
    this.#push(this.#rowsOf(marketId), { ...(row as OrderEnded | OrderEnding), note })
    const changed = {
      status: order.status,
      status_reason: order.statusReason,
      closing_reason: order.closingReason,
      closed_by: order.closedBy,
      note,
      ended_at: order.endedAt,
    }
    this.#push(this.ended, toEndedOrder(order, note))
    const ended: StoredOrder = { ...stored, ...changed, openable: 0, reserved: 0n, updated_at: at }
    this.#remember(ended)
    return ended
  }

  storeRequest(request: NewClientRequest): void {
    this.#push(this.requests, request)
    const { user_id, client_request_id, digest, answer } = request
    this.#set(this.state.requests, requestKey(user_id, client_request_id), { digest, answer })
  }

  #rowsOf(marketId: number): MarketRow[] {
    return this.rows.get(marketId) as MarketRow[]
  }

  #headOf(marketId: number): number {
    return this.market(marketId).head.head + this.#rowsOf(marketId).length
  }

  #remember(order: StoredOrder): void {
    this.#set(this.state.byHash, order.hash, order)
    this.#set(this.state.bySalt, saltKey(order.market_id, order.maker, order.salt), order)
  }

  #label({ user_id, client_order_id: id, order_id, hash }: StoredOrder): void {
    if (id === null) return
    const key = labelKey(user_id, id)
    const labelled = this.state.labelled.get(key) ?? []
    this.#set(this.state.labelled, key, [...labelled, { user_id, client_order_id: id, order_id, hash }])
  }

  #reserve(marketId: number, userId: number, delta: bigint): void {
    if (delta === 0n) return
    const funds = this.funds(userId)
    this.#set(this.state.funds, userId, { ...funds, reserved: funds.reserved + delta })
    const { ordersReserved } = this.holding(marketId, userId)
    this.#hold(marketId, userId, { ordersReserved: ordersReserved + delta })
    this.#set(this.reservedDeltas, userId, (this.reservedDeltas.get(userId) ?? 0n) + delta)
  }

  #hold(marketId: number, userId: number, changed: Partial<Holding>): void {
    const before = this.holding(marketId, userId)
    this.#set(this.state.holdings, holdingKey(marketId, userId), { ...before, ...changed })
  }

  #set<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
    const before = map.get(key)
    const wasThere = map.has(key)
    map.set(key, value)
    this.#undo.push(() => void (wasThere ? map.set(key, before as Value) : map.delete(key)))
  }

  #push<Value>(list: Value[], value: Value): void {
    list.push(value)
    this.#undo.push(() => void list.pop())
  }

  #rollBackTo(mark: number): void {
    while (this.#undo.length > mark) this.#undo.pop()?.()
  }
}

/** The sums over the account's live orders after adding (`sign` 1) or removing (`sign` -1) an order. */
function exposed(holding: Holding, order: StoredOrder, sign: 1 | -1) {
  const { openable, openValue, plainLong, plainShort } = holding
  const counts = order.closing_reason === null && !order.reduce_only
  const remaining = counts ? sign * (order.quantity - order.filled - order.settling) : 0
  return {
    openable: openable + sign * order.openable,
    openValue: openValue + BigInt(sign * order.openable) * BigInt(order.reserved_price),
    plainLong: plainLong + (order.side === 'LONG' ? remaining : 0),
    plainShort: plainShort + (order.side === 'SHORT' ? remaining : 0),
  }
}
