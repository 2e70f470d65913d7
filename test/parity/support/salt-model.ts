/**
 * Model of `SaltLib` without packing: each order has its own state and the time of its own cancel request. Of storage words the model
 * only knows which requests share a time, because that decides when an effective request is stored as dead.
 */
import { accept, refuse, type Verdict } from '../../../domain/verdict.ts'

/** Milliseconds: a request binds batches with `asOf` > request + CANCEL_GRACE; ACTION_LIFETIME later no other batch can settle. */
export const [CANCEL_GRACE, ACTION_LIFETIME] = [5_000n, 10_000n]
export const NO_SLOT = 1023n
export const [UNUSED, PARTLY, DEAD, REQUESTED] = [0n, 1n, 2n, 3n]

export interface FillStep {
  readonly maker: string
  readonly salt: bigint
  readonly quantity: bigint
  readonly fill: bigint
  /** 0: no limit. */
  readonly price: bigint
  readonly slot: bigint
  readonly batchId: bigint
  readonly asOf: bigint
}

interface Left {
  isPartly: boolean
  isDead: boolean
  request: { readonly at: bigint; readonly sharesTime: boolean } | null
}

interface Word {
  time: bigint
  readonly orders: Map<bigint, Left>
}

interface Held {
  readonly salt: bigint
  readonly filled: bigint
  readonly batchId: bigint
}

interface Floor {
  readonly settled: bigint
  readonly requested: bigint
  readonly at: bigint
}

const EMPTY: Held = { salt: 0n, filled: 0n, batchId: 0n }

/** Refusals are the contract's errors with arguments, in the format of `refusalIn`. */
export class SaltModel {
  readonly #words = new Map<string, Word>()
  readonly #slots = new Map<string, Held>()
  readonly #floors = new Map<string, Floor>()

  /** Returns whether the order is dead afterwards. */
  fill(step: FillStep): Verdict<boolean, string> {
    const { maker, salt, quantity, fill, price, slot, batchId } = step
    const order = this.#order(maker, salt)
    const ended = this.#ended(order, step)
    if (ended !== null) return refuse(ended)
    const held = this.heldIn(maker, slot)
    if (order.isPartly) {
      if (slot === NO_SLOT) return refuse(`PartialSlotMissing(${maker},${salt})`)
      if (held.filled === 0n || held.salt !== salt)
        return refuse(`PartialSlotMismatch(${maker},${salt},${slot})`)
      if (price === 0n && held.batchId !== batchId)
        return refuse(`MarketOrderStale(${maker},${salt},${held.batchId},${batchId})`)
    }
    const filled = order.isPartly ? held.filled : 0n
    const remaining = quantity > filled ? quantity - filled : 0n
    if (fill > remaining) return refuse(`Overfill(${maker},${salt},${remaining},${fill})`)
    if (fill < remaining && !(price === 0n && slot === NO_SLOT)) {
      if (slot === NO_SLOT) return refuse(`PartialSlotMissing(${maker},${salt})`)
      if (!order.isPartly && held.filled > 0n) this.#order(maker, held.salt).isDead = true
      this.#slots.set(`${maker}:${slot}`, { salt, filled: filled + fill, batchId })
      order.isPartly = true
      return accept(false)
    }
    order.isDead = true
    return accept(true)
  }

  cancel(maker: string, salt: bigint, at: bigint): void {
    const word = this.#word(maker, salt)
    const order = this.#order(maker, salt)
    if (order.isDead || order.request !== null) return
    if (at > word.time + CANCEL_GRACE + ACTION_LIFETIME) {
      for (const other of word.orders.values()) if (other.request?.sharesTime) other.isDead = true
      word.time = at
    }
    order.request = { at, sharesTime: at === word.time }
  }

  /** Returns whether the floor rose. */
  raiseFloor(maker: string, floor: bigint, at: bigint): boolean {
    const standing = this.#floor(maker)
    if (floor <= standing.requested) return false
    const settled = at > standing.at + CANCEL_GRACE + ACTION_LIFETIME ? standing.requested : standing.settled
    this.#floors.set(maker, { settled, requested: floor, at })
    return true
  }

  /** The error with which the order reverts in a batch with that `asOf`; null if it can fill. */
  endOf(step: { readonly maker: string; readonly salt: bigint; readonly asOf: bigint }): string | null {
    const { maker, salt, asOf } = step
    const ended = this.#ended(this.#order(maker, salt), step)
    if (ended !== null) return ended
    const { settled, requested, at } = this.#floor(maker)
    const binding = asOf > at + CANCEL_GRACE ? requested : settled
    return salt < binding ? `OrderCancelled(${maker},${salt},${at},${asOf})` : null
  }

  stateOf(maker: string, salt: bigint): bigint {
    const { isDead, request, isPartly } = this.#order(maker, salt)
    if (isDead) return DEAD
    if (request !== null) return REQUESTED
    return isPartly ? PARTLY : UNUSED
  }

  heldIn(maker: string, slot: bigint): Held {
    return this.#slots.get(`${maker}:${slot}`) ?? EMPTY
  }

  #ended({ isDead, request }: Left, { maker, salt, asOf }: Pick<FillStep, 'maker' | 'salt' | 'asOf'>) {
    if (isDead) return `OrderDead(${maker},${salt})`
    const isBound = request !== null && asOf > request.at + CANCEL_GRACE
    return isBound ? `OrderCancelled(${maker},${salt},${request.at},${asOf})` : null
  }

  #word(maker: string, salt: bigint): Word {
    const key = `${maker}:${salt / 64n}`
    const word = this.#words.get(key) ?? { time: 0n, orders: new Map() }
    this.#words.set(key, word)
    return word
  }

  #order(maker: string, salt: bigint): Left {
    const { orders } = this.#word(maker, salt)
    const order = orders.get(salt) ?? { isPartly: false, isDead: false, request: null }
    orders.set(salt, order)
    return order
  }

  #floor = (maker: string): Floor => this.#floors.get(maker) ?? { settled: 0n, requested: 0n, at: 0n }
}
