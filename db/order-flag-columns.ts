/** Columns of orders, in the tables of both sides, for what no signature covers. */

import type { Generated } from 'kysely'
import type { TimeInForce } from '../domain/orders/order.ts'

export interface OrderFlagColumns {
  time_in_force: Generated<TimeInForce>
  /** Accepted only because it crossed no earlier limit order. */
  post_only: Generated<boolean>
  /** Signed steps beyond `quantity`, which the order must not fill. */
  unused: Generated<number>
  /** Id of the order that it has replaced. */
  replaces: Generated<string | null>
  /** Number of its bracket; 0: none. */
  bracket: Generated<number>
  /** Label of the program that has built it. */
  builder: Generated<string | null>
}
