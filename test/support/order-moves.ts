/** Positions that move outside batches, in the order model: the matched positions move along, and reduce-only orders end with theirs. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Side } from '../../domain/orders/order.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import { replayParts } from '../../domain/settlement/replay-parts.ts'
import type { FundingIndex, Price, Quote, Rate, Steps, Ticks, UserId } from '../../domain/units.ts'
import type { Model } from './order-model.ts'
import type { ModelBatch, ModelOrder } from './order-model-terms.ts'

/** A mined position before and after the move. */
export interface MovedPosition {
  readonly account: number
  readonly before: Position
  readonly after: Position
}

/** An order as it was before the move ended it, or took it out of the book. */
interface Closed {
  readonly order: ModelOrder
  readonly status: ModelOrder['status']
  /** The batch that had closed its position before. */
  readonly closedBy: number | null
}

interface Move {
  readonly positions: readonly MovedPosition[]
  readonly closed: readonly Closed[]
}

/** Whether a position that these orders reduced has closed or turned. */
const closes = (before: number, after: number, side: Side): boolean =>
  before !== 0 && Math.sign(before) !== Math.sign(after) && (before > 0 ? side === 'SHORT' : side === 'LONG')

const shifted = (from: Position, { before, after }: Omit<MovedPosition, 'account'>): Position => ({
  size: (from.size + after.size - before.size) as Steps,
  entryNotional: (from.entryNotional + after.entryNotional - before.entryNotional) as Quote,
  foldedMargin: (from.foldedMargin + after.foldedMargin - before.foldedMargin) as Quote,
  leverage: after.size === before.size ? from.leverage : after.leverage,
})

export class OrderMoves {
  readonly #spec: MarketSpec
  readonly #model: Model
  /** By the number of the action that moved them. */
  readonly #moves = new Map<number, Move>()

  constructor(spec: MarketSpec, model: Model) {
    this.#spec = spec
    this.#model = model
  }

  /** `asOf`: orders accepted after it reduce the next position. */
  apply(action: number, positions: readonly MovedPosition[], asOf: number): void {
    const closed = positions.flatMap((position) => this.#close(position, this.#shift(position), asOf))
    this.#moves.set(action, { positions, closed })
  }

  /** The block of the action has left the chain. */
  rollBack(action: number): void {
    const { positions, closed } = this.#moves.get(action) as Move
    this.#moves.delete(action)
    for (const { account, before, after } of positions) this.#shift({ account, before: after, after: before })
    for (const { order, status, closedBy } of closed) {
      if ((order.reason ?? order.leaving) !== 'POSITION_CLOSED') continue
      const waitsAgain = this.#model.queue.some(({ id }) => id === closedBy)
      order.reason = null
      order.status = status
      order.leaving = waitsAgain ? 'POSITION_CLOSED' : null
      order.closedBy = waitsAgain ? closedBy : null
    }
  }

  /** An action that is not mined any more was dropped: the waiting batches move the mined positions alone. */
  rematch(accounts: readonly number[], mined: ReadonlyMap<number, Position>): void {
    const positions = replayParts(
      this.#spec,
      this.#model.queue.map(partOf),
      (account) => mined.get(account) ?? FLAT,
    )
    for (const account of accounts) {
      const position = positions?.get(account as UserId)
      if (position !== undefined) this.#model.matched.set(account, position)
    }
  }

  /** Returns the matched sizes before and after. */
  #shift(position: MovedPosition): readonly [before: number, after: number] {
    const { matched } = this.#model
    const from = matched.get(position.account) ?? FLAT
    const to = shifted(from, position)
    matched.set(position.account, to)
    return [from.size, to.size]
  }

  #close(
    { account, before, after }: MovedPosition,
    matched: readonly [number, number],
    asOf: number,
  ): Closed[] {
    const model = this.#model
    const waiting = model.queue.findLast(({ fills }) => fills.some(({ order }) => order.account === account))
    return model.orders.flatMap((order) => {
      if (order.account !== account || !order.reduceOnly || model.hasEnded(order)) return []
      if (order.acceptedAt > asOf) return []
      const record = { order, status: order.status, closedBy: order.closedBy }
      const isMinedClosed = closes(before.size, after.size, order.side)
      if (model.leftWithPosition(order) ? isMinedClosed : closes(...matched, order.side)) {
        if (order.leaving !== null && !model.leftWithPosition(order)) return []
        if (isMinedClosed || waiting === undefined) {
          model.leave(order, 'POSITION_CLOSED')
          return [record]
        }
        if (!model.rests(order) && !model.waits(order)) return []
        order.leaving = 'POSITION_CLOSED'
        order.closedBy = waiting.id
        return [{ ...record, closedBy: null }]
      }
      return []
    })
  }
}

/** The fees of a fill change no position. */
const partOf = ({ price, oracle, index, fills }: ModelBatch) => ({
  terms: {
    ...{ price: price as Ticks, oracle: oracle as Price, fundingIndex: index as FundingIndex },
    ...{ makerFee: 0n as Rate, takerFee: 0n as Rate },
  },
  fills: fills.map(({ order, steps }) => ({
    ...{ account: order.account as UserId, side: order.side, limit: order.price as Ticks },
    ...{ leverage: order.leverage, steps: steps as Steps, takerSteps: 0 as Steps },
  })),
})
