/** The account's orders, with commands for groups of orders. */
import type { Checked } from './batch-result.ts'
import { type Bracket, bracketOrders, type Scale, scaleOrders } from './order-groups.ts'
import { type BatchOptions, OrderRequests } from './order-requests.ts'
import type { BatchPlacement } from './responses.ts'

export class Orders extends OrderRequests {
  /**
   * Places an entry with its take profit and stop loss, all or none. The exits wait until the entry has
   * matched, and end together.
   */
  async bracket(
    bracket: Bracket,
    options: Omit<BatchOptions, 'mode'> = {},
  ): Promise<Checked<BatchPlacement>> {
    return this.placeBatch(bracketOrders(bracket), { ...options, mode: 'atomic' })
  }

  /** A ladder of limit orders between two prices, all or none. */
  async scale(scale: Scale, options: Omit<BatchOptions, 'mode'> = {}): Promise<Checked<BatchPlacement>> {
    const orders = scaleOrders(scale, await this.factory.market(scale.marketId))
    return this.placeBatch(orders, { ...options, mode: 'atomic' })
  }
}
