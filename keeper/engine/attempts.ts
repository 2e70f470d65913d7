/** Keeps a late attempt at a command from being executed after another answer has stated that the command was not. */

import type { Handover } from '../../db/engine-handovers.ts'
import type { OrdersAnswer, OrdersCommand } from '../../domain/exchange/decide/orders/command.ts'
import { keysOf, refusedKeys } from '../../domain/exchange/decide/orders/command-keys.ts'
import type { ExchangeAnswer, ExchangeCommand } from './commands.ts'

/** No attempt is older when the engine receives it: connections refuse it before. */
export const MAX_ATTEMPT_AGE_MS = 60_000

export interface Attempt {
  /** False if the answer refuses the command, and an older attempt that is not decided may still be executed. */
  answered(answer: ExchangeAnswer): boolean
  ended(): void
}

const KEYLESS: Attempt = { answered: () => true, ended() {} }

const isPlacement = ({ items }: OrdersCommand): boolean =>
  items.some(({ kind }) => kind === 'place' || kind === 'replace')

/** With more fences an owner leaves none: the next owner refuses all placements that apis have received before. */
const MOST_LEFT = 50_000

/**
 * An attempt is late if its api or the engine was frozen while another api answered. A fence on a key rejects attempts
 * received before it. An owner that ends in order leaves its fences.
 */
export class Attempts {
  readonly #monotonic: () => number
  /** Times of the fences by key in this and the previous period, which cover at least `MAX_ATTEMPT_AGE_MS`. */
  #newest = new Map<string, number>()
  #earlier = new Map<string, number>()
  #since: number
  /** When the attempts that are not answered were received by their apis, by key. */
  readonly #open = new Map<string, Set<{ readonly arrivedAt: number }>>()
  /** Placements that apis have received before are not executed. */
  #refusedBefore = Number.NEGATIVE_INFINITY
  #inherited: Handover | null = null

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
    this.#since = monotonic()
  }

  /** The member becomes the owner; null: it does not know the fences of the owner before. */
  inherit(handover: Handover | null): void {
    this.#inherited = handover
  }

  /** The member has become the owner. */
  owns(): void {
    const now = this.#monotonic()
    if (this.#inherited === null) {
      this.#refusedBefore = now
      return
    }
    const { fences, refusedMs } = this.#inherited
    if (refusedMs !== null) this.#refusedBefore = now - refusedMs
    this.fence(fences)
  }

  /** Handover to the next owner, once this owner has answered all commands; null if there are too many fences. */
  left(): Handover | null {
    const fences = [...new Set([...this.#newest.keys(), ...this.#earlier.keys()])]
    const refusedMs = this.#monotonic() - this.#refusedBefore
    if (fences.length > MOST_LEFT) return null
    return { fences, refusedMs: refusedMs < MAX_ATTEMPT_AGE_MS ? refusedMs : null }
  }

  /** From now on no attempt is executed that an api has received before. */
  fence(keys: readonly string[]): void {
    const now = this.#monotonic()
    if (now - this.#since >= MAX_ATTEMPT_AGE_MS) {
      this.#since = now
      this.#earlier = this.#newest
      this.#newest = new Map()
    }
    for (const key of keys) this.#newest.set(key, now)
  }

  /** `arrivedAt`: by this member's monotonic clock, not later than when an api received the attempt. Null if it must not be executed. */
  begin(command: ExchangeCommand, arrivedAt: number): Attempt | null {
    if (command.kind !== 'orders') return KEYLESS
    if (arrivedAt < this.#refusedBefore && isPlacement(command)) return null
    const keys = keysOf(command)
    if (keys.some((key) => this.#isFenced(key, arrivedAt))) return null
    const own = { arrivedAt }
    for (const key of keys) {
      const attempts = this.#open.get(key)
      if (attempts === undefined) this.#open.set(key, new Set([own]))
      else attempts.add(own)
    }
    return {
      answered: (answer) => {
        const refused = refusedKeys(command, answer as OrdersAnswer)
        this.fence(refused)
        return !refused.some((key) => this.#hasOlder(key, arrivedAt))
      },
      ended: () => {
        for (const key of keys) {
          const attempts = this.#open.get(key)
          attempts?.delete(own)
          if (attempts?.size === 0) this.#open.delete(key)
        }
      },
    }
  }

  #isFenced(key: string, arrivedAt: number): boolean {
    const at = this.#newest.get(key) ?? this.#earlier.get(key)
    return at !== undefined && arrivedAt < at
  }

  #hasOlder(key: string, arrivedAt: number): boolean {
    for (const other of this.#open.get(key) ?? []) if (other.arrivedAt < arrivedAt) return true
    return false
  }
}
