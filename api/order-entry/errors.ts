/** Error codes that operations on orders share; each route declares the lists that apply to it. */
import type { AdmissionCode } from '../../domain/orders/admission.ts'
import type { ErrorCode } from '../error-catalogue.ts'

/** Errors about the market and the price. */
export const PRICE_ERRORS: readonly ErrorCode[] = [
  'PRICE_REQUIRED',
  'PRICE_NOT_ALLOWED',
  'TICK_SIZE',
  'MIN_ORDER_PRICE',
  'MAX_ORDER_PRICE',
  'MARKET_NOT_FOUND',
]

/** Errors about an order's own terms, except type and quantity. */
export const TERM_ERRORS: readonly ErrorCode[] = [
  ...PRICE_ERRORS,
  'TRIGGER_REQUIRED',
  'TRIGGER_NOT_ALLOWED',
  'LEVERAGE_CAP',
  'REDUCE_ONLY_REQUIRED',
]

/** Errors about the account and the market of an order. */
export const REFUSALS: readonly AdmissionCode[] = [
  'ORDER_EXPIRED',
  'MIN_ORDER_SIZE',
  'PRICE_BAND',
  'INSUFFICIENT_MARGIN',
  'MARGIN_REQUIREMENT',
  'REDUCE_ONLY_NO_POSITION',
  'POSITION_LIMIT',
  'OPEN_ORDER_LIMIT',
  'MARKET_ENDED',
  'MARKET_NOT_OPEN',
  'ORACLE_STALE',
]

/** Errors about flags, which no signature covers. */
export const FLAG_ERRORS: readonly ErrorCode[] = [
  'POST_ONLY_NOT_ALLOWED',
  'TIME_IN_FORCE_NOT_ALLOWED',
  'POST_ONLY_IOC',
  'FOK_NOT_SUPPORTED',
  'BRACKET_NOT_ALLOWED',
]

/** Errors of a signed order. */
const ADMISSION_ERRORS: readonly ErrorCode[] = [
  ...TERM_ERRORS,
  ...FLAG_ERRORS,
  'WOULD_TAKE',
  'BRACKET_TAKEN',
  'BRACKET_MISMATCH',
  'ORDER_FLAGS_DIFFER',
  ...REFUSALS,
  'ORDER_TYPE_UNKNOWN',
  'STEP_SIZE',
  'QUANTITY_REQUIRED',
  'QUANTITY_MISMATCH',
  'MAX_ORDER_SIZE',
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
  'SALT_USED',
  'CLIENT_ORDER_ID_USED',
  'CHAIN_UNSEEN',
]

/** A market order is validated against the book. */
export const VALIDATION_ERRORS: readonly ErrorCode[] = [...ADMISSION_ERRORS, 'READ_MODEL_FILLING']

/** Errors of a command that the engine does not answer. */
export const COMMAND_ERRORS: readonly ErrorCode[] = ['OUTCOME_UNKNOWN', 'OVERLOADED']

export const PLACEMENT_ERRORS: readonly ErrorCode[] = [...ADMISSION_ERRORS, ...COMMAND_ERRORS]
/** Codes about fields that a close does not have. */
const NOT_OF_CLOSES: ReadonlySet<ErrorCode> = new Set([
  ...FLAG_ERRORS,
  'ORDER_TYPE_UNKNOWN',
  'PRICE_REQUIRED',
  'PRICE_NOT_ALLOWED',
  'TICK_SIZE',
  'MIN_ORDER_PRICE',
  'MAX_ORDER_PRICE',
  'PRICE_BAND',
  'TRIGGER_REQUIRED',
  'TRIGGER_NOT_ALLOWED',
  'REDUCE_ONLY_REQUIRED',
  'WOULD_TAKE',
  'BRACKET_TAKEN',
  'BRACKET_MISMATCH',
  'INSUFFICIENT_MARGIN',
  'MARGIN_REQUIREMENT',
  'POSITION_LIMIT',
])
export const CLOSE_ERRORS: readonly ErrorCode[] = [
  ...PLACEMENT_ERRORS.filter((code) => !NOT_OF_CLOSES.has(code)),
  'CLOSE_NOT_MARKET',
  'CLOSE_NOT_REDUCE_ONLY',
]

export const REPLACE_ERRORS: readonly ErrorCode[] = [
  ...PLACEMENT_ERRORS,
  'REPLACE_TARGET_REQUIRED',
  'REPLACE_MISMATCH',
  'REDUCED_BELOW_MINIMUM',
  'ORDER_NOT_FOUND',
  'NOT_YOURS',
  'ORDER_FORCED',
  'ORDER_NOT_REPLACEABLE',
  'ORDER_PARTLY_FILLED',
  'NOT_A_REPLACEMENT',
]
export const CANCEL_ERRORS: readonly ErrorCode[] = [
  'ORDER_NOT_FOUND',
  'NOT_YOURS',
  'ORDER_FORCED',
  ...COMMAND_ERRORS,
]
