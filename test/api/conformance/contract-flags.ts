/** The contract with traders about flags of orders and replacements. */
import { elsewhere, type Rule } from './contract-rule.ts'

export const FLAG_RULES: readonly Rule[] = [
  elsewhere(
    'when a post-only order crosses an earlier limit order, it is 400 WOULD_TAKE with the nearest valid price',
    'test/api/order-entry/order-flags.test.ts: when a post-only order crosses an earlier limit order',
  ),
  elsewhere(
    'when a post-only order crosses an order of its own account, it is 400 WOULD_TAKE',
    'test/api/order-entry/order-flags.test.ts: when a post-only order crosses an order of its own account',
  ),
  elsewhere(
    'when all of an earlier order is settling, it counts for post-only orders',
    'test/api/order-entry/order-flags.test.ts: when all steps of an earlier order are settling',
  ),
  elsewhere(
    'when random books clear, no post-only order pays the taker rate',
    'test/domain/exchange/order-flags.props.test.ts: no post-only order takes',
  ),
  elsewhere(
    'when an ioc order has taken part in an auction, its remainder is CANCELLED with IOC_REMAINDER',
    'test/api/order-entry/order-flags.test.ts: its remainder ends with that auction',
  ),
  elsewhere(
    'when a signed order is repeated with other flags, it is 409 ORDER_FLAGS_DIFFER',
    'test/api/order-entry/order-flags.test.ts: when a signed order is repeated with other flags',
  ),
  elsewhere(
    'when an order is replaced, the old one ends REPLACED and its reservation pays for the new one',
    'test/api/order-entry/replacing.test.ts: the old reservation pays for the new order',
  ),
  elsewhere(
    'when a new order is rejected, the order that it was to replace stays',
    'test/api/order-entry/replacing.test.ts: when the new order is rejected for any reason',
  ),
  elsewhere(
    'when a replacement is of another market or side, it is 400 REPLACE_MISMATCH',
    "test/api/order-entry/replacing.test.ts: 'REPLACE_MISMATCH'",
  ),
  elsewhere(
    'when nothing of an order is left, its replacement is 409 ORDER_NOT_REPLACEABLE',
    "test/api/order-entry/replacing.test.ts: 'ORDER_NOT_REPLACEABLE'",
  ),
  elsewhere(
    'when an order is partly filled, its replacement is 409 ORDER_PARTLY_FILLED or is reduced',
    'test/api/order-entry/replacing.test.ts: refuse rejects and reduce subtracts',
  ),
  elsewhere(
    'when a reduced order is below the minimum, it is 400 REDUCED_BELOW_MINIMUM with the nearest valid quantity',
    "test/api/order-entry/replacing.test.ts: 'REDUCED_BELOW_MINIMUM'",
  ),
  elsewhere(
    'when a replacement is repeated, it has the same orders; of another order it is 409 NOT_A_REPLACEMENT',
    'test/api/order-entry/replacing.test.ts: when a replacement is repeated',
  ),
  elsewhere(
    'when an order is replaced, one message of the topic user has both orders',
    'test/api/live/replacing.test.ts: one message of the account has both orders',
  ),
]
