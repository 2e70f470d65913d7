/** Sends the engine the block time of the chain's head. It decides by it how old a report or an action is for the contract. */
import type { Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { Engine } from '../engine/link/engine.ts'

export interface HeadInformerPorts {
  readonly engine: Pick<Engine, 'inform'>
  readonly clock: Clock
  /** Null while no node responds. */
  readonly headTime: () => Millis | null
}

const POLL_MS = 100
/** A new owner of the engine has no head until one is sent. */
const REPEAT_MS = 500

/** Informs at each change, and at least every half second. Returns what stops it. */
export function informHead({ engine, clock, headTime }: HeadInformerPorts): () => void {
  let last: { readonly time: Millis | null; readonly at: number } | null = null
  const poll = (): void => {
    const time = headTime()
    if (last !== null && last.time === time && elapsed(clock, last.at) < REPEAT_MS) return
    last = { time, at: clock.now() }
    void engine.inform({ kind: 'inform_head', time })
  }
  const timer = setInterval(poll, POLL_MS)
  poll()
  return () => clearInterval(timer)
}
