/** The errors of refused adjustments. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { AdmissionRefusal } from '../../domain/positions/adjustment-admission.ts'
import { ApiError } from '../errors.ts'
import { decimalText } from '../wire/amounts.ts'

const wei = (field: string, expected: string, limit: bigint, received: bigint) => ({
  ...{ field, expected: `${expected} ${decimalText(limit)}`, received: decimalText(received) },
  nearest_valid: decimalText(limit),
})

export function refusalError(refusal: AdmissionRefusal, { symbol }: MarketSpec): ApiError {
  switch (refusal.code) {
    case 'DEADLINE_PASSED':
      return new ApiError('DEADLINE_PASSED', {
        ...{ field: 'deadline', expected: 'a time in the future', received: refusal.deadline },
      })
    case 'NONCE_BELOW_MINIMUM':
      return new ApiError('MARGIN_NONCE_BELOW_MINIMUM', {
        ...{
          field: 'nonce',
          expected: `at least ${refusal.minimum}`,
          nearest_valid: refusal.minimum.toString(),
        },
      })
    case 'NONCE_USED':
      return new ApiError('MARGIN_NONCE_USED', { field: 'nonce', expected: 'a nonce that was not used' })
    case 'MODE':
      if (refusal.mode === 'settled')
        return new ApiError('MARKET_ENDED', { field: 'symbol', received: symbol })
      return new ApiError('MARKET_NOT_OPEN', { field: 'symbol', received: symbol, mode: refusal.mode }, '5')
    case 'ORACLE_STALE':
      return new ApiError('ORACLE_STALE', { field: 'symbol', received: symbol }, '1')
    case 'LIQUIDATING':
      return new ApiError('POSITION_IN_LIQUIDATION', { field: 'amount', expected: 'an addition of margin' })
    case 'FAILED_RECENTLY':
      return new ApiError('ADJUSTMENT_FAILED_RECENTLY', { received: symbol }, `${refusal.retryAfter}`)
    case 'INSUFFICIENT_BALANCE':
      return new ApiError('ADJUSTMENT_UNFUNDED', wei('amount', 'at most', refusal.available, refusal.needed))
    case 'NO_POSITION':
      return new ApiError('NO_POSITION', { field: 'symbol', received: symbol })
    case 'NOTHING_MOVES':
    case 'REMOVE_MODE':
      return new ApiError('NOTHING_REMOVABLE', { field: 'amount', max_removable_amount: '0' })
    case 'ABOVE_REMOVABLE': {
      const most = { max_removable_amount: decimalText(refusal.maxRemovable) }
      const context = wei('amount', 'to remove at most', refusal.maxRemovable, refusal.received)
      return new ApiError('REMOVAL_TOO_LARGE', { ...context, ...most })
    }
    case 'BELOW_MINIMUM':
      return new ApiError(
        'AMOUNT_BELOW_MINIMUM',
        wei('min_amount', 'at most', refusal.moves, refusal.minAmount),
      )
    case 'ADDITION_INSUFFICIENT':
      return new ApiError(
        'ADDITION_INSUFFICIENT',
        wei('amount', 'at least', refusal.needed, refusal.received),
      )
    case 'LEVERAGE_OUT_OF_RANGE':
      return new ApiError('LEVERAGE_CAP', {
        ...{ field: 'leverage', expected: `1 to ${refusal.maxLeverage}`, received: refusal.received },
        nearest_valid: refusal.maxLeverage,
      })
    case 'MARGIN_IN_ABOVE_MAXIMUM':
      return new ApiError('MARGIN_IN_TOO_LARGE', {
        ...wei('max_margin_in_e18_raw', 'at least', refusal.needed, refusal.maxMarginIn),
        nearest_valid: refusal.needed.toString(),
      })
    case 'MARGIN_OUT_BELOW_MINIMUM':
      return new ApiError('MARGIN_OUT_TOO_SMALL', {
        ...wei('min_margin_out_e18_raw', 'at most', refusal.available, refusal.minMarginOut),
        nearest_valid: refusal.available.toString(),
      })
    case 'OUT_OF_RANGE':
      return new ApiError('POSITION_LIMIT', { field: 'amount', exceeded: refusal.field })
  }
}
