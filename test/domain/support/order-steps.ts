/** Short words for the steps of an order's life. */
import {
  accepted,
  type OrderEventKind,
  type OrderLife,
  type OrderStep,
  step,
} from '../../../domain/orders/order-state.ts'
import { steps } from '../../support/markets.ts'

export const open = accepted({ type: 'LIMIT', quantity: steps(10) })
export const waiting = accepted({ type: 'STOP_LIMIT', quantity: steps(10) })

/** Takes the steps one after the other; the last life, and all events on the way. */
export function walk(
  from: OrderLife,
  taken: readonly OrderStep[],
): { life: OrderLife; events: readonly OrderEventKind[] } {
  let life = from
  const events: OrderEventKind[] = []
  for (const each of taken) {
    const verdict = step(life, each)
    if (!verdict.ok) throw new Error(`${each.kind}: ${verdict.refusal.code}`)
    life = verdict.value.life
    events.push(...verdict.value.events)
  }
  return { life, events }
}

export const match = (count: number): OrderStep => ({ kind: 'match', steps: steps(count) })
export const settle = (count: number): OrderStep => ({ kind: 'settle', steps: steps(count) })
export const unmine = (count: number, settling = count): OrderStep => ({
  kind: 'unmine',
  steps: steps(count),
  settling: steps(settling),
})
export const voidMatch = (
  count: number,
  ending: 'SETTLEMENT_REVERTED' | 'NO_BATCH_IN_TIME' | null = null,
): OrderStep => ({
  kind: 'void',
  steps: steps(count),
  ending,
})
export const cancel: OrderStep = { kind: 'close', reason: 'USER_CANCELLED' }
export const expire: OrderStep = { kind: 'close', reason: 'EXPIRED' }
export const remainder: OrderStep = { kind: 'close', reason: 'MARKET_REMAINDER' }
export const trigger: OrderStep = { kind: 'trigger' }
