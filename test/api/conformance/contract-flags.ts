/** The contract with traders about flags of orders, brackets, closes and replacements. */
import { elsewhere, type Rule } from './contract-rule.ts'

export const FLAG_RULES: readonly Rule[] = [
  elsewhere(
    'when the equity of an account is read at any time, its parts add up to the wei, also after a fork',
    'test/api/account-equity/equity.props.test.ts: when any history is read in any pages',
  ),
  elsewhere(
    'when a query of equity is not valid, it is 400 with field, expected and received',
    'test/api/account-equity/equity.test.ts: when the query is not valid',
  ),
  elsewhere(
    'when a day of a market is final, its files have all rows in their order, and never change',
    'test/api/history/history.test.ts: when a day is final',
  ),
  elsewhere(
    'when a day is not final, it is 404 HISTORY_NOT_FINAL with the time from which it can be requested',
    'test/api/history/history.test.ts: when a day is not final',
  ),
  elsewhere(
    'when a market has no file of a day, it is 404 with the reason and the nearest day',
    'test/api/history/history.test.ts: when a market has no file of the day',
  ),
  elsewhere(
    'when a build of a file differs from the first one, it is 500 HISTORY_CHANGED',
    'test/api/history/history.test.ts: when a later build differs from the first',
  ),
  elsewhere(
    'when a file is not built in time, it is 503 HISTORY_CAPACITY with Retry-After',
    'test/api/history/history.test.ts: when a build takes longer than a request may wait',
  ),
  elsewhere(
    'when a request of the history is not valid, it is 400 with field, expected and received',
    'test/api/history/history.test.ts: when the request is not valid',
  ),
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
    'when a signed order is repeated with another builder, it is 409 ORDER_FLAGS_DIFFER',
    'test/api/builders/builders.test.ts: when a signed order is repeated with another builder',
  ),
  elsewhere(
    'when fills of orders with a builder are mined, the public ledger counts them; a rollback subtracts them',
    'test/api/builders/builders.test.ts: when fills are mined, the ledger counts them',
  ),
  elsewhere(
    'when a query of builders is not valid, it is 400 with field, expected and received',
    'test/api/builders/builders.test.ts: when the query is not valid',
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
    'when an entry of a bracket ends without a fill, its exits end with ENTRY_ENDED',
    'test/api/order-entry/brackets.test.ts: when an entry ends without a fill',
  ),
  elsewhere(
    'when an entry has not matched, no mark triggers the exits of its bracket',
    'test/api/order-entry/brackets.test.ts: when exits are placed with their entry',
  ),
  elsewhere(
    'when an exit of a bracket is filled, the other one ends with EXIT_FILLED',
    'test/api/order-entry/brackets.test.ts: when an exit has filled',
  ),
  elsewhere(
    'when an exit of a bracket triggers, the other one in the book ends with EXIT_TRIGGERED',
    'test/api/order-entry/brackets.test.ts: when the mark reaches the second exit',
  ),
  elsewhere(
    'when an order of a bracket is replaced, the new one takes its place',
    'test/api/order-entry/brackets.test.ts: when an entry is replaced, its exits follow',
  ),
  elsewhere(
    'when a role in a bracket is taken or the order does not fit, it is 409 BRACKET_TAKEN, 400 BRACKET_MISMATCH or BRACKET_NOT_ALLOWED',
    'test/api/order-entry/brackets.test.ts: when an order does not fit its bracket',
  ),
  elsewhere(
    'when random brackets are traded, no reduce-only fill exceeds the position',
    'test/domain/exchange/brackets.props.test.ts: no reduce-only fill exceeds the position',
  ),
  elsewhere(
    'when a close is signed for more than the position, the auction closes the position and never flips it',
    'test/api/order-entry/closing.test.ts: when the signed quantity exceeds the position',
  ),
  elsewhere(
    'when a position is larger than the signed quantity of its close, the rest stays',
    'test/api/order-entry/closing.test.ts: when the position has grown beyond the signed quantity',
  ),
  elsewhere(
    'when a close is repeated, it is one order',
    'test/api/order-entry/closing.test.ts: when a close is repeated',
  ),
  elsewhere(
    'when a close is not a reduce-only market order, it is 400 CLOSE_NOT_MARKET or CLOSE_NOT_REDUCE_ONLY',
    'test/api/order-entry/closing.test.ts: when a body is not that of a close',
  ),
  elsewhere(
    'when an order is replaced, one message of the topic user has both orders',
    'test/api/live/replacing.test.ts: one message of the account has both orders',
  ),
]
