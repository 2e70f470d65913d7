/** Closes the account's positions by reduce-only market orders. */
import type { Account } from './account.ts'
import type { Checked } from './batch-result.ts'
import { type Decimal, fromE18 } from './decimals.ts'
import type { NewOrder } from './order-factory.ts'
import type { Orders } from './orders.ts'
import type { BatchPlacement, Position, PositionClose } from './responses.ts'

export class Positions {
  readonly #account: Account
  readonly #orders: Orders

  constructor(account: Account, orders: Orders) {
    this.#account = account
    this.#orders = orders
  }

  /**
   * Closes the position including unsettled fills, or at most `quantity` of it; null if flat.
   * The next auction fills the order. Call again to close steps beyond its protection price.
   */
  async close(
    marketId: number,
    { quantity }: { readonly quantity?: Decimal } = {},
  ): Promise<PositionClose | null> {
    const [order] = closingOrders(await this.#account.positions({ marketId }))
    if (order === undefined) return null
    return this.#orders.close(quantity === undefined ? order : { ...order, quantity })
  }

  /**
   * Closes every position in one batch; each order is accepted or refused individually. Null if there is
   * nothing to close.
   */
  async closeAll(): Promise<Checked<BatchPlacement> | null> {
    const orders = closingOrders(await this.#account.positions())
    return orders.length === 0 ? null : this.#orders.placeBatch(orders)
  }
}

export const closingOrders = (positions: readonly Position[]): readonly NewOrder[] =>
  positions.flatMap(({ market_id, leverage, ...position }) => {
    const size = BigInt(position.size_e18_raw) + BigInt(position.pending_size_e18_raw)
    if (size === 0n) return []
    return {
      marketId: market_id,
      side: size > 0n ? 'SHORT' : 'LONG',
      quantity: fromE18(size > 0n ? size : -size),
      leverage: Math.max(1, leverage),
      reduceOnly: true,
    }
  })
