/** Errors of flags that no signature covers, of closes, and of replacements. */
import { type CatalogueEntry, permanent } from '../catalogue-entry.ts'

export const FLAG_AND_REPLACEMENT_ERRORS = {
  // Flags of the order that no signature covers.
  POST_ONLY_NOT_ALLOWED: permanent(400, 'Only limit orders can be post-only.'),
  TIME_IN_FORCE_NOT_ALLOWED: permanent(400, 'Only limit orders can have time_in_force ioc.'),
  POST_ONLY_IOC: permanent(
    400,
    'An order cannot be post-only with time_in_force ioc: it would end before it could be the maker.',
  ),
  FOK_NOT_SUPPORTED: permanent(
    400,
    'Fill-or-kill orders are not supported: the fills of all other orders of the batch would depend on whether one order fills completely. ' +
      'Use ioc.',
  ),
  WOULD_TAKE: permanent(400, 'The post-only order crosses an earlier limit order and could take.'),

  // The order in its bracket.
  BRACKET_NOT_ALLOWED: permanent(
    400,
    'Only an entry, which is not reduce-only, and take-profit and stop-loss orders can be part of a bracket.',
  ),
  BRACKET_MISMATCH: permanent(
    400,
    'The exits of a bracket are of one side, and its entry is of the other side.',
  ),
  BRACKET_TAKEN: permanent(
    409,
    'A live order has this role in the bracket, or its exits were placed before the entry. Use another bracket_id, or replace that order.',
  ),

  // A close of a position.
  CLOSE_NOT_MARKET: permanent(
    400,
    'A close is a market order. Place a limit or conditional order that reduces the position by POST /v0/orders.',
  ),
  CLOSE_NOT_REDUCE_ONLY: permanent(400, 'A close is reduce-only: it must not open a position.'),

  // A replacement in relation to the order that it replaces.
  REPLACE_TARGET_REQUIRED: permanent(
    400,
    'A replacement names one order: either cancel.order_hash or cancel.client_order_id.',
  ),
  REPLACE_MISMATCH: permanent(
    400,
    'The new order is not of the market and the side of the order that it replaces.',
  ),
  REDUCED_BELOW_MINIMUM: permanent(
    400,
    'Less the quantity that the replaced order has filled, the new order is below the minimum order size.',
  ),
  // With these two codes the order itself is placed, so its own outcome counts for the caller, not the attempt's.
  ORDER_FLAGS_DIFFER: {
    ...permanent(
      409,
      'The same signed order was placed before with another time_in_force, post_only, bracket_id or builder; these cannot be changed. Sign a new order.',
    ),
    outcome: 'placed',
  },
  ORDER_NOT_REPLACEABLE: permanent(
    409,
    'Nothing of the order is left to replace: it has ended, is ending, or all of it is settling. No new order was placed.',
  ),
  ORDER_PARTLY_FILLED: permanent(
    409,
    'The order is partly filled or settling, and if_filled is refuse. No new order was placed, and the order stays.',
  ),
  NOT_A_REPLACEMENT: {
    ...permanent(409, 'The new order was placed before and has not replaced this order.'),
    outcome: 'placed',
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>
