/** From recorded events to what the replay sends: which order is placed or cancelled, and which price the oracle says. Pure. */
import type { Side } from '../../domain/orders/order.ts'
import type { Recorded } from './recorded.ts'

export type Action =
  /** `take`: an aggressor made from a recorded execution; what it does not fill at once is not left behind. */
  | {
      readonly kind: 'place'
      readonly at: number
      readonly ref: string
      readonly side: Side
      readonly price: bigint
      readonly size: bigint
      readonly take: boolean
    }
  /** `late`: in the record the order was filled by then; whatever of it did not fill here goes after a grace. */
  | { readonly kind: 'cancel'; readonly at: number; readonly ref: string; readonly late: boolean }
  | { readonly kind: 'price'; readonly at: number; readonly price: bigint; readonly size: bigint }

export interface Planner {
  plan(event: Recorded): readonly Action[]
  /** Events that refer to orders from before the file's beginning. */
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

  /** A cancel of part of an order: the order is cancelled and placed again, smaller and with a new place in the book. */
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

  /** A recorded execution: its aggressor, and the end of the resting order once nothing is left of it. */
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
