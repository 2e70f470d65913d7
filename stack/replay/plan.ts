/** Turns recorded events into the actions of a replay: orders to place or cancel, and oracle prices to publish. Pure. */
import type { Side } from '../../domain/orders/order.ts'
import type { Recorded } from './recorded.ts'

export type Action =
  /** `take`: an aggressor derived from a recorded execution. It expires soon, so that no remainder rests in the book. */
  | {
      readonly kind: 'place'
      readonly at: number
      readonly ref: string
      readonly side: Side
      readonly price: bigint
      readonly size: bigint
      readonly take: boolean
    }
  /** `late`: the recording has the order filled by this time. Its remainder is cancelled after a delay, if it did not fill here. */
  | { readonly kind: 'cancel'; readonly at: number; readonly ref: string; readonly late: boolean }
  | { readonly kind: 'price'; readonly at: number; readonly price: bigint; readonly size: bigint }

export interface Planner {
  plan(event: Recorded): readonly Action[]
  /** Number of events of orders that were placed before the recording starts. */
  readonly skipped: number
}

interface Live {
  readonly ref: string
  readonly side: Side
  readonly price: bigint
  readonly remaining: bigint
}

export function createPlanner(): Planner {
  const live = new Map<string, Live>()
  let skipped = 0
  let versions = 0

  const place = (at: number, order: Live, take: boolean): Action => ({
    kind: 'place',
    at,
    take,
    ...placed(order),
  })

  /** A partial cancel: cancels the order and places a smaller one, which loses the place of the first in the book. */
  const reduce = (at: number, id: string, order: Live, size: bigint): readonly Action[] => {
    const cancel: Action = { kind: 'cancel', at, ref: order.ref, late: false }
    const smaller = { ...order, ref: `${id}/${++versions}`, remaining: order.remaining - size }
    if (smaller.remaining <= 0n) {
      live.delete(id)
      return [cancel]
    }
    live.set(id, smaller)
    return [cancel, place(at, smaller, false)]
  }

  /** A recorded execution: places its aggressor, and cancels the resting order once the recording has it filled. */
  const hit = (at: number, id: string, order: Live, size: bigint): readonly Action[] => {
    const aggressor = {
      ...order,
      ref: `${id}/take/${++versions}`,
      side: opposite(order.side),
      remaining: size,
    }
    const rest = { ...order, remaining: order.remaining - size }
    if (rest.remaining > 0n) {
      live.set(id, rest)
      return [place(at, aggressor, true)]
    }
    live.delete(id)
    return [place(at, aggressor, true), { kind: 'cancel', at, ref: order.ref, late: true }]
  }

  return {
    get skipped() {
      return skipped
    },
    plan(event) {
      if (event.kind === 'traded')
        return [{ kind: 'price', at: event.at, price: event.price, size: event.size }]
      if (event.kind === 'placed') {
        const order = { ref: event.id, side: event.side, price: event.price, remaining: event.size }
        live.set(event.id, order)
        return [place(event.at, order, false)]
      }
      const order = live.get(event.id)
      if (order === undefined) {
        skipped++
        return []
      }
      if (event.kind === 'reduced') return reduce(event.at, event.id, order, event.size)
      if (event.kind === 'hit') return hit(event.at, event.id, order, event.size)
      live.delete(event.id)
      return [{ kind: 'cancel', at: event.at, ref: order.ref, late: event.kind === 'filled' }]
    },
  }
}

const placed = ({ ref, side, price, remaining }: Live) => ({ ref, side, price, size: remaining })

const opposite = (side: Side): Side => (side === 'LONG' ? 'SHORT' : 'LONG')
