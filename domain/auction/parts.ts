/** Splits a cleared batch into parts: balanced settlement transactions within the chain's limits. */

import type { Quote, Seq, Steps, UserId } from '../units.ts'
import type { Fill, Pair } from './clearing.ts'
import { type Tally, tally } from './pairing.ts'

/** Limits of one settlement transaction. */
export const MAX_PART_ORDERS = 200
export const MAX_PART_SLOTS = 400

/** Storage slots of the market itself (clock and reference), which its first part writes from zero. */
export const MARKET_SLOTS = 2

/** Partial slots at a cut: at most one buy and one sell continue in the next part. */
const CUT_SLOTS = 2

/** Slots of a part before its first order. */
const FIXED_SLOTS = MARKET_SLOTS + CUT_SLOTS

/** A share of a cleared batch with equal buys and sells. */
export interface Part {
  readonly pairs: readonly Pair[]
  /**
   * Fills of these pairs by account, within an account in tranche order.
   * For an order that continues in a later part, `remaining` is its value after this part.
   */
  readonly fills: readonly Fill[]
  /** Upper bound of the new storage slots of the part. */
  readonly newSlots: number
}

/** Clearing fields that splitting reads. */
export interface Splittable {
  readonly pairs: readonly Pair[]
  readonly fills: readonly Fill[]
}

/**
 * The parts in settlement order, each with at most `MAX_PART_ORDERS` orders and `MAX_PART_SLOTS` new slots.
 * Concatenated, their pairs are the batch's pairs.
 */
export function splitIntoParts({ pairs, fills }: Splittable): Part[] {
  const fillOf = new Map(fills.map((fill) => [fill.seq, fill]))
  const progress = new Progress(fills)
  return cut(pairs, fillOf).map(({ pairs: chunk, newSlots }) => ({
    pairs: chunk,
    fills: progress.settle(chunk),
    newSlots,
  }))
}

/**
 * Whether a batch with these filled orders fits one part. Equals `splitIntoParts(…).length === 1`, but needs no pairs.
 */
export function fitsOnePart(filled: readonly Pick<Fill, 'account' | 'remaining' | 'unused'>[]): boolean {
  if (filled.length > MAX_PART_ORDERS) return false
  const accounts = new Set<UserId>()
  let slots = FIXED_SLOTS
  for (const fill of filled) {
    const { account } = fill
    slots += slotsOf(fill, !accounts.has(account))
    accounts.add(account)
  }
  return slots <= MAX_PART_SLOTS
}

/**
 * New slots of an order: salt word, partial slot (also for unused steps) and position. All count as new, so that parts
 * do not depend on the chain's state. Balance slots exist already.
 */
const slotsOf = (
  { remaining, unused = 0 as Steps }: Pick<Fill, 'remaining' | 'unused'>,
  isNewAccount: boolean,
): number => 1 + Number(remaining + unused > 0) + Number(isNewAccount)

interface Chunk {
  readonly pairs: Pair[]
  newSlots: number
}

function cut(pairs: readonly Pair[], fillOf: ReadonlyMap<Seq, Fill>): Chunk[] {
  const chunks: Chunk[] = []
  let load = new PartLoad(fillOf)
  for (const pair of pairs) {
    const current = chunks.at(-1)
    if (current !== undefined && load.fits(pair)) {
      load.add(pair)
      current.pairs.push(pair)
      current.newSlots = load.slots
    } else {
      load = new PartLoad(fillOf)
      load.add(pair)
      chunks.push({ pairs: [pair], newSlots: load.slots })
    }
  }
  return chunks
}

/** Orders and slots of the part under construction. */
class PartLoad {
  readonly #orders = new Set<Seq>()
  readonly #accounts = new Set<UserId>()
  readonly #fillOf: ReadonlyMap<Seq, Fill>
  slots = FIXED_SLOTS

  constructor(fillOf: ReadonlyMap<Seq, Fill>) {
    this.#fillOf = fillOf
  }

  fits({ buySeq, sellSeq }: Pair): boolean {
    const orders = Number(!this.#orders.has(buySeq)) + Number(!this.#orders.has(sellSeq))
    return (
      this.#orders.size + orders <= MAX_PART_ORDERS &&
      this.slots + this.#slotsOf(buySeq) + this.#slotsOf(sellSeq) <= MAX_PART_SLOTS
    )
  }

  add({ buySeq, sellSeq }: Pair): void {
    for (const seq of [buySeq, sellSeq]) {
      this.slots += this.#slotsOf(seq)
      this.#orders.add(seq)
      this.#accounts.add(this.#fill(seq).account)
    }
  }

  #slotsOf(seq: Seq): number {
    if (this.#orders.has(seq)) return 0
    const fill = this.#fill(seq)
    return slotsOf(fill, !this.#accounts.has(fill.account))
  }

  #fill(seq: Seq): Fill {
    return this.#fillOf.get(seq) as Fill
  }
}

/** Settled steps of each order up to the current part. An order's reducing steps settle first. */
class Progress {
  readonly #fills: readonly Fill[]
  readonly #settled = new Map<Seq, number>()

  constructor(fills: readonly Fill[]) {
    this.#fills = fills
  }

  settle(pairs: readonly Pair[]): Fill[] {
    const tallies = tally(pairs)
    return this.#fills.flatMap((fill) => {
      const share = tallies.get(fill.seq)
      return share === undefined ? [] : [this.#share(fill, share)]
    })
  }

  #share(whole: Fill, { taker, maker, fee }: Tally): Fill {
    const before = this.#settled.get(whole.seq) ?? 0
    const steps = taker + maker
    this.#settled.set(whole.seq, before + steps)
    const reducing = Math.max(0, Math.min(steps, whole.reducing - before))
    return {
      ...whole,
      fill: steps as Steps,
      reducing: reducing as Steps,
      opening: (steps - reducing) as Steps,
      taker,
      maker,
      fee: fee as Quote,
      remaining: (whole.remaining + whole.fill - before - steps) as Steps,
    }
  }
}
