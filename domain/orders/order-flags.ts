/**
 * Unsigned flags of an order: time in force, post-only, bracket and builder.
 * The exchange applies the flags; auction, proof and contract do not know them.
 */
import { bracketRole } from './brackets.ts'
import { isConditional, type OrderType, type TimeInForce } from './order.ts'
import type { OrderRefusal } from './order-request.ts'

export interface OrderFlags {
  readonly timeInForce: TimeInForce
  /** The order is accepted only if it crosses no earlier limit order, so it is the maker in every pair. */
  readonly postOnly: boolean
  /** Bracket number from 1 to `MAX_BRACKET`; absent: none. */
  readonly bracket?: number
  /**
   * Label of the program that built the order; absent: none. It has no effect on the order and costs nothing.
   */
  readonly builder?: string
}

export const NO_FLAGS: OrderFlags = { timeInForce: 'gtc', postOnly: false }

/** Pattern of a builder label. */
export const BUILDER_PATTERN = '^[a-z0-9-]{1,32}$'
export const LONGEST_BUILDER = 32

/** Codes of `flagsRefusal`, in check order. */
export type FlagCode =
  | 'POST_ONLY_NOT_ALLOWED'
  | 'TIME_IN_FORCE_NOT_ALLOWED'
  | 'POST_ONLY_IOC'
  | 'BRACKET_NOT_ALLOWED'

export const sameFlags = (a: OrderFlags, b: OrderFlags): boolean =>
  a.timeInForce === b.timeInForce &&
  a.postOnly === b.postOnly &&
  (a.bracket ?? 0) === (b.bracket ?? 0) &&
  a.builder === b.builder

/** Reason why an order of this type must not have these flags; null if it may. */
export function flagsRefusal(
  { type, reduceOnly }: { readonly type: OrderType; readonly reduceOnly: boolean },
  { timeInForce, postOnly, bracket }: OrderFlags,
): OrderRefusal<FlagCode> | null {
  const isLimit = type === 'LIMIT'
  if (postOnly && !isLimit)
    return {
      code: 'POST_ONLY_NOT_ALLOWED',
      field: 'post_only',
      expected: `false for ${type}${isConditional(type) ? ', which may take when it is triggered' : ''}`,
      received: 'true',
      nearestValid: 'false',
    }
  if (timeInForce === 'ioc' && !isLimit)
    return {
      code: 'TIME_IN_FORCE_NOT_ALLOWED',
      field: 'time_in_force',
      expected: `gtc for ${type}`,
      received: 'ioc',
      nearestValid: 'gtc',
    }
  if (bracket !== undefined && bracketRole({ type, reduceOnly }) === null)
    return {
      code: 'BRACKET_NOT_ALLOWED',
      field: 'bracket_id',
      expected: 'an entry, which is not reduce-only, or a take-profit or stop-loss order',
      received: `reduce-only ${type}`,
    }
  if (!postOnly || timeInForce !== 'ioc') return null
  return {
    code: 'POST_ONLY_IOC',
    field: 'post_only',
    expected: 'false with time_in_force ioc: the order would end before it could be the maker',
    received: 'true',
    nearestValid: 'false',
  }
}
