/** An order of the reference model, its reservation, and the levels that a set of orders makes. */
import { executableSteps } from '../../../domain/orders/executable.ts'
import type { OrderStatus, Side, StatusReason } from '../../../domain/orders/order.ts'
import type { Seq, Steps, Ticks } from '../../../domain/units.ts'
import { PER_STEP } from './model-settlement.ts'

export interface ModelOrder {
  readonly order_id: string
  readonly seq: number
  readonly user_id: number
  readonly side: Side
  readonly price: number
  readonly quantity: number
  readonly reduce_only: boolean
  status: OrderStatus
  reason: StatusReason | null
  closing: StatusReason | null
  filled: number
  settling: number
  /** Wei withheld, `held` of it for the settling steps. */
  reserved: bigint
  held: bigint
  /** Steps that the reservation covers. */
  openable: number
  protection: number | null
}

export const remainingOf = ({ quantity, filled, settling }: ModelOrder): number =>
  quantity - filled - settling

export const reservationOf = (steps: number): bigint => BigInt(steps) * PER_STEP.reserved

/** What is held for a match: for as many or as few opening steps as possible. */
export function heldFor(order: ModelOrder, steps: number, opensMost: boolean): bigint {
  const uncovered = remainingOf(order) - order.openable
  return reservationOf(opensMost ? Math.min(steps, order.openable) : Math.max(0, steps - uncovered))
}

/** One line per level of a market, computed from all orders in its book and the matched positions. */
export function levelsOf(
  marketId: number,
  orders: readonly ModelOrder[],
  matchedOf: (userId: number) => number,
): string[] {
  const limits = orders.filter(({ price }) => price !== 0)
  const shares = [...Map.groupBy(limits, ({ user_id }) => user_id)].flatMap(([userId, own]) => {
    const steps = executableSteps(matchedOf(userId) as Steps, own.map(bookOrder))
    return own.map(({ seq, side, price }) => ({
      level: `${side} ${price}`,
      steps: steps.get(seq as Seq) ?? 0,
    }))
  })
  const levels = Map.groupBy(
    shares.filter(({ steps }) => steps > 0),
    ({ level }) => level,
  )
  return [...levels].map(([level, own]) => {
    const quantity = own.reduce((sum, { steps }) => sum + steps, 0)
    return `${marketId} ${level} ${quantity} ${own.length}`
  })
}

const bookOrder = (order: ModelOrder) => ({
  seq: order.seq as Seq,
  side: order.side,
  limit: order.price as Ticks,
  remaining: remainingOf(order) as Steps,
  reduceOnly: order.reduce_only,
  openable: order.openable as Steps,
})
