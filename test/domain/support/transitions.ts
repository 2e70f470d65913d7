/** Short names for the transitions of an order. */
import {
  accepted,
  type OrderEventKind,
  type OrderLife,
  type TransitionInput,
  transition,
} from '../../../domain/orders/order-state.ts'
import { steps } from '../../support/markets.ts'

export const open = accepted({ type: 'LIMIT', quantity: steps(10) })
export const waiting = accepted({ type: 'STOP_LIMIT', quantity: steps(10) })

/** Applies the transitions in sequence; returns the last state and all events. */
export function walk(
  from: OrderLife,
  taken: readonly TransitionInput[],
): { life: OrderLife; events: readonly OrderEventKind[] } {
  let life = from
  const events: OrderEventKind[] = []
  for (const each of taken) {
    const verdict = transition(life, each)
    if (!verdict.ok) throw new Error(`${each.kind}: ${verdict.refusal.code}`)
    life = verdict.value.life
    events.push(...verdict.value.events)
  }
  return { life, events }
}

export const match = (count: number): TransitionInput => ({ kind: 'match', steps: steps(count) })
export const settle = (count: number): TransitionInput => ({ kind: 'settle', steps: steps(count) })
export const rollback = (count: number, settling = count): TransitionInput => ({
  kind: 'rollback',
  steps: steps(count),
  settling: steps(settling),
})
export const voidMatch = (
  count: number,
  ending: 'SETTLEMENT_REVERTED' | 'NO_BATCH_IN_TIME' | null = null,
): TransitionInput => ({
  kind: 'void',
  steps: steps(count),
  ending,
})
export const cancel: TransitionInput = { kind: 'close', reason: 'USER_CANCELLED' }
export const expire: TransitionInput = { kind: 'close', reason: 'EXPIRED' }
export const remainder: TransitionInput = { kind: 'close', reason: 'MARKET_REMAINDER' }
export const leave: TransitionInput = { kind: 'leave', closedBy: '1-2-1-7' }
export const trigger: TransitionInput = { kind: 'trigger' }
