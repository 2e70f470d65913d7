/** Order columns that no signature covers, in the tables of the write side and of the read model. */

import type { Generated } from 'kysely'
import type { TimeInForce } from '../domain/orders/order.ts'

export interface OrderFlagColumns {
  time_in_force: Generated<TimeInForce>
  /** True if the order was accepted on condition that it crosses no earlier limit order. */
  post_only: Generated<boolean>
  /** Signed steps beyond `quantity`, which the order must not fill. */
  unused: Generated<number>
  /** Id of the replaced order. */
  replaces: Generated<string | null>
  /** Number of the order's bracket; 0: no bracket. */
  bracket: Generated<number>
  /** Label of the program that built the order. */
  builder: Generated<string | null>
}
