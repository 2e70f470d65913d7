/** Error codes that operations on orders share; each route declares the lists that apply to it. */
import type { ErrorCode } from '../errors.ts'

/** Of the terms of an order by itself. */
export const TERM_ERRORS: readonly ErrorCode[] = [
  'ORDER_TYPE_UNKNOWN',
  'PRICE_REQUIRED',
  'PRICE_NOT_ALLOWED',
  'TRIGGER_REQUIRED',
  'TRIGGER_NOT_ALLOWED',
  'TICK_SIZE',
  'MIN_ORDER_PRICE',
  'MAX_ORDER_PRICE',
  'LEVERAGE_CAP',
  'REDUCE_ONLY_REQUIRED',
  'MARKET_NOT_FOUND',
]

/** Of a complete order, its signature, and the account and market in which it is to be placed. */
const ADMISSION_ERRORS: readonly ErrorCode[] = [
  ...TERM_ERRORS,
  'STEP_SIZE',
  'QUANTITY_REQUIRED',
  'QUANTITY_MISMATCH',
  'MIN_ORDER_SIZE',
  'MAX_ORDER_SIZE',
  'ORDER_EXPIRED',
  'EXPIRATION_RANGE',
  'SALT_RANGE',
  'SIGNATURE_TYPE',
  'SIGNATURE_FORMAT',
  'SIGNATURE_SUFFIX',
  'SIGNATURE_V',
  'SIGNATURE_HIGH_S',
  'SIGNATURE_UNRECOVERABLE',
  'SIGNATURE_MISMATCH',
  'SESSION_KEY_REVOKED',
  'SESSION_KEY_REVOKING',
  'SESSION_KEY_EXPIRED',
  'SESSION_KEY_NOT_PERMITTED',
  'PRICE_BAND',
  'INSUFFICIENT_MARGIN',
  'MARGIN_REQUIREMENT',
  'REDUCE_ONLY_NO_POSITION',
  'POSITION_LIMIT',
  'OPEN_ORDER_LIMIT',
  'MARKET_ENDED',
  'SALT_USED',
  'MARKET_NOT_OPEN',
  'ORACLE_STALE',
  'CHAIN_UNSEEN',
]

/** A market order is validated against the book. */
export const VALIDATION_ERRORS: readonly ErrorCode[] = [...ADMISSION_ERRORS, 'READ_MODEL_FILLING']

/** Of the queue and the transaction of a command. */
export const COMMAND_ERRORS: readonly ErrorCode[] = ['OUTCOME_UNKNOWN', 'OVERLOADED']

export const PLACEMENT_ERRORS: readonly ErrorCode[] = [...ADMISSION_ERRORS, ...COMMAND_ERRORS]
export const CANCEL_ERRORS: readonly ErrorCode[] = [
  'ORDER_NOT_FOUND',
  'NOT_YOURS',
  'ORDER_FORCED',
  ...COMMAND_ERRORS,
]
