/** Finds orders by hash, salt, label and account. Derived from the orders, like the books. */
import { isTerminal } from '../orders/order-state.ts'
import type { MarketId, OrderHash, UserId } from '../units.ts'
import type { RecordTable } from './record-table.ts'
import { SlotGroups } from './slot-groups.ts'
import { hashOfCounts, hashOfText, SlotIndex } from './slot-index.ts'
import type { OrderRow, SignatureRow } from './tables/orders.ts'

export class OrderIndex {
  readonly #orders: RecordTable<OrderRow>
  readonly #signatures: RecordTable<SignatureRow>
  readonly #byHash = new SlotIndex()
  readonly #bySalt = new SlotIndex()
  readonly #byLabel = new SlotIndex()
  readonly #live = new SlotGroups()
  /**
   * Secret mixed into the hashes of salts and labels. Traders choose these values; a trader who knew the
   * secret could force collisions.
   */
  readonly #secret: number
  readonly #hashAt: (slot: number) => OrderHash
  readonly #firstWordAt: (slot: number) => number
  readonly #lastWordAt: (slot: number) => number
  readonly #marketAt: (slot: number) => MarketId
  readonly #accountAt: (slot: number) => UserId
  readonly #saltAt: (slot: number) => number
  readonly #forcedAt: (slot: number) => boolean
  readonly #labelAt: (slot: number) => number

  constructor(orders: RecordTable<OrderRow>, signatures: RecordTable<SignatureRow>, secret: number) {
    this.#orders = orders
    this.#signatures = signatures
    this.#secret = secret
    this.#hashAt = signatures.reader('hash')
    this.#firstWordAt = signatures.wordReader('hash', 0)
    this.#lastWordAt = signatures.wordReader('hash', HASH_BYTES - WORD_BYTES)
    this.#marketAt = orders.reader('marketId')
    this.#accountAt = orders.reader('account')
    this.#saltAt = orders.reader('salt')
    this.#forcedAt = orders.reader('forced')
    this.#labelAt = orders.reader('labelHash')
    signatures.observe((before, after, slot) => this.#followHash(before, after, slot))
    orders.observe((before, after, slot) => this.#followOrder(before, after, slot))
  }

  /** The order with this hash. An ended order is found until it is released. */
  withHash(hash: OrderHash): OrderRow | undefined {
    const slot = this.#byHash.find(hashOfOrder(hash), (at) => this.#hashAt(at) === hash)
    if (slot < 0) return undefined
    const { marketId, accepted } = this.#signatures.at(slot)
    return this.#orders.get(marketId, accepted)
  }

  /**
   * The order with this salt. An ended order is found until it is released.
   * The salt of a forced order is its number, not a trader's salt, so forced orders are not found.
   */
  withSalt(marketId: MarketId, account: UserId, salt: number): OrderRow | undefined {
    const slot = this.#bySalt.find(
      this.#hashOfSalt(marketId, account, salt),
      (at) =>
        this.#saltAt(at) === salt &&
        this.#accountAt(at) === account &&
        this.#marketAt(at) === marketId &&
        !this.#forcedAt(at),
    )
    return slot < 0 ? undefined : this.#orders.at(slot)
  }

  /** A live order of the account with this label. Only a rollback of the chain can leave several. */
  liveWithLabel(account: UserId, label: string): OrderRow | undefined {
    const labelHash = hashOfLabel(label)
    const slot = this.#byLabel.find(
      this.#hashOfLabelled(account, labelHash),
      (at) => this.#labelAt(at) === labelHash && this.#accountAt(at) === account && this.#hasLabel(at, label),
    )
    return slot < 0 ? undefined : this.#orders.at(slot)
  }

  /** The account's live orders in the market, by seq in the book. */
  liveOf(marketId: MarketId, account: UserId): OrderRow[] {
    const slots = this.#live.of(
      hashOfCounts([marketId, account]),
      (at) => this.#accountAt(at) === account && this.#marketAt(at) === marketId,
    )
    return slots.map((slot) => this.#orders.at(slot)).sort((a, b) => a.seq - b.seq)
  }

  #hasLabel(slot: number, label: string): boolean {
    const { marketId, accepted } = this.#orders.at(slot)
    return this.#signatures.get(marketId, accepted)?.clientOrderId === label
  }

  #followHash(before: SignatureRow | undefined, after: SignatureRow | undefined, slot: number): void {
    if (before !== undefined) {
      if (before.hash === after?.hash) return
      this.#byHash.remove(hashOfOrder(before.hash), slot)
    }
    if (after === undefined) return
    this.#byHash.add(hashOfCounts([this.#firstWordAt(slot), this.#lastWordAt(slot)]), slot)
  }

  #followOrder(before: OrderRow | undefined, after: OrderRow | undefined, slot: number): void {
    if (before === undefined || after === undefined) {
      const order = (before ?? after) as OrderRow
      const hash = this.#hashOfSalt(order.marketId, order.account, order.salt)
      if (!order.forced) this.#bySalt[after === undefined ? 'remove' : 'add'](hash, slot)
    }
    const wasLive = before !== undefined && !isTerminal(before.status)
    const isLive = after !== undefined && !isTerminal(after.status)
    if (wasLive && !isLive) this.#removeLive(before, slot)
    if (isLive && !wasLive) this.#addLive(after, slot)
    if (wasLive && isLive && before.labelHash !== after.labelHash) this.#moveLabel(before, after, slot)
  }

  #addLive({ marketId, account, labelHash }: OrderRow, slot: number): void {
    this.#live.add(
      hashOfCounts([marketId, account]),
      slot,
      (at) => this.#accountAt(at) === account && this.#marketAt(at) === marketId,
    )
    if (labelHash !== 0) this.#byLabel.add(this.#hashOfLabelled(account, labelHash), slot)
  }

  #removeLive({ marketId, account, labelHash }: OrderRow, slot: number): void {
    this.#live.remove(hashOfCounts([marketId, account]), slot)
    if (labelHash !== 0) this.#byLabel.remove(this.#hashOfLabelled(account, labelHash), slot)
  }

  #moveLabel(before: OrderRow, after: OrderRow, slot: number): void {
    const { account } = after
    if (before.labelHash !== 0) this.#byLabel.remove(this.#hashOfLabelled(account, before.labelHash), slot)
    if (after.labelHash !== 0) this.#byLabel.add(this.#hashOfLabelled(account, after.labelHash), slot)
  }

  #hashOfSalt(marketId: MarketId, account: UserId, salt: number): number {
    return hashOfCounts([this.#secret, marketId, account, salt])
  }

  #hashOfLabelled(account: UserId, labelHash: number): number {
    return hashOfCounts([this.#secret, account, labelHash])
  }
}

const HASH_BYTES = 32
const WORD_BYTES = 4

/** The first and the last word of an order's hash: hashes are random, except hashes of forced orders, which end with a number. */
const hashOfOrder = (hash: OrderHash): number =>
  hashOfCounts([Number.parseInt(hash.slice(2, 10), 16), Number.parseInt(hash.slice(-8), 16)])

/** 0: no label. */
export const hashOfLabel = (label: string | null): number => (label === null ? 0 : hashOfText(label) || 1)
