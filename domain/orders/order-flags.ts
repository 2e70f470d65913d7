/**
 * Flags of a limit order that no signature covers: how long it stays, and whether it may take. The exchange applies them; auction, proof and
 * contract do not know them.
 */
import { isConditional, type OrderType, type TimeInForce } from './order.ts'
import type { OrderRefusal } from './order-request.ts'

export interface OrderFlags {
  readonly timeInForce: TimeInForce
  /** The order is accepted only if it crosses no earlier limit order, so that it is the maker in every pair. */
  readonly postOnly: boolean
}

export const NO_FLAGS: OrderFlags = { timeInForce: 'gtc', postOnly: false }

/** Codes of `flagsRefusal`, in the order of its checks. */
export type FlagCode = 'POST_ONLY_NOT_ALLOWED' | 'TIME_IN_FORCE_NOT_ALLOWED' | 'POST_ONLY_IOC'

export const sameFlags = (a: OrderFlags, b: OrderFlags): boolean =>
  a.timeInForce === b.timeInForce && a.postOnly === b.postOnly

/** Why an order of this type must not have these flags; null if it may. */
export function flagsRefusal(
  type: OrderType,
  { timeInForce, postOnly }: OrderFlags,
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
  if (!postOnly || timeInForce !== 'ioc') return null
  return {
    code: 'POST_ONLY_IOC',
    field: 'post_only',
    expected: 'false with time_in_force ioc: the order would end before it could be the maker',
    received: 'true',
    nearestValid: 'false',
  }
}
