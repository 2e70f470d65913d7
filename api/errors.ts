/** Every error that the api answers with. One code, one status, one meaning; a code is never used for something else. */

/** What became of the command: nothing happened, it happened, or nobody can say yet. */
export type PlacementOutcome = 'not_placed' | 'placed' | 'unknown'

export type Status = 400 | 401 | 403 | 404 | 408 | 409 | 429 | 500 | 503

interface Entry {
  readonly status: Status
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean
  readonly message: string
  readonly outcome?: PlacementOutcome
}

const refused = (status: Status, message: string): Entry => ({ status, retryable: false, message })
const later = (status: Status, message: string): Entry => ({ status, retryable: true, message })

export const CATALOGUE = {
  // The request as such.
  INVALID_JSON: refused(400, 'The body is not valid JSON.'),
  INVALID_FIELD: refused(400, 'A field does not have the form that it must have.'),
  MISSING_FIELD: refused(400, 'A required field is missing.'),
  UNKNOWN_FIELD: refused(400, 'The request has a field that this endpoint does not know.'),
  DUPLICATE_FIELD: refused(400, 'The body names the same field twice.'),
  PRECISION_LOST: refused(
    400,
    'A number has more digits than JSON numbers keep: send it as a decimal string.',
  ),
  BODY_TOO_LARGE: refused(400, 'The body is too large.'),
  UNSUPPORTED_ENCODING: refused(400, 'The body is compressed: send it as it is.'),
  UNSUPPORTED_CONTENT_TYPE: refused(400, 'The content type must be application/json.'),
  MALFORMED_REQUEST: refused(400, 'The request cannot be read.'),
  INVALID_CURSOR: refused(400, 'The cursor is not one that this endpoint has given.'),
  INCOMPLETE_BOOKMARK: refused(400, 'A bookmark needs read_after_shard_id and read_after_shard_seq.'),

  // The order as signed.
  ORDER_TYPE_UNKNOWN: refused(400, 'There is no such order type.'),
  PRICE_REQUIRED: refused(400, 'A limit order needs a price.'),
  PRICE_NOT_ALLOWED: refused(400, 'A market order has no price: leave it out or send 0.'),
  TRIGGER_NOT_ALLOWED: refused(400, 'This order type has no trigger price: leave it out or send 0.'),
  TICK_SIZE: refused(400, 'The price is not a multiple of the tick size.'),
  STEP_SIZE: refused(400, 'The quantity is not a multiple of the step size.'),
  QUANTITY_REQUIRED: refused(400, 'An order needs quantity or quantity_e18_raw.'),
  QUANTITY_MISMATCH: refused(400, 'quantity and quantity_e18_raw do not say the same.'),
  MIN_ORDER_SIZE: refused(400, 'The quantity is below the minimum order size.'),
  MAX_ORDER_SIZE: refused(400, 'The quantity is above the maximum order size.'),
  MIN_ORDER_PRICE: refused(400, 'The price is below the minimum order price.'),
  MAX_ORDER_PRICE: refused(400, 'The price is above the highest price of the market.'),
  LEVERAGE_CAP: refused(400, 'The leverage is not a whole number from 1 to the maximum of the market.'),
  ORDER_EXPIRED: refused(400, 'The order has expired.'),
  EXPIRATION_RANGE: refused(400, 'The expiration is not a time in Unix seconds.'),
  REDUCE_ONLY_REQUIRED: refused(400, 'This order type is always reduce-only.'),
  TRIGGER_REQUIRED: refused(400, 'This order type needs a trigger price.'),
  SALT_RANGE: refused(400, 'The salt is not a whole number below 2^53.'),
  SIGNATURE_FORMAT: refused(400, 'The signature is not 66 bytes of hex: r, s, v and the suffix 01.'),
  SIGNATURE_SUFFIX: refused(400, 'The signature does not end with the suffix 01.'),
  SIGNATURE_V: refused(400, 'v of the signature is neither 27 nor 28.'),
  SIGNATURE_HIGH_S: refused(400, 's of the signature is above half the group order.'),
  SIGNATURE_UNRECOVERABLE: refused(400, 'No public key can be recovered from the signature.'),
  SIGNATURE_MISMATCH: refused(400, 'The signature does not bind the account to the order as submitted.'),
  SESSION_KEY_REVOKED: refused(400, 'The session key that signed the order has been revoked.'),
  SESSION_KEY_EXPIRED: refused(400, 'The session key that signed the order has expired.'),
  SESSION_KEY_NOT_PERMITTED: refused(400, 'The session key that signed the order is not permitted to trade.'),
  SIGNATURE_TYPE: refused(400, 'signature_type must be 1.'),

  // The order against the market and the account.
  PRICE_BAND: refused(400, 'The price is beyond the price band on the side that would trade at once.'),
  INSUFFICIENT_MARGIN: refused(400, 'The available balance does not cover margin and fee allowance.'),
  MARGIN_REQUIREMENT: refused(400, 'The order would open a position below its initial margin requirement.'),
  REDUCE_ONLY_NO_POSITION: refused(400, 'There is no position that this reduce-only order could reduce.'),
  POSITION_LIMIT: refused(400, 'The position would grow beyond what the market can hold.'),
  OPEN_ORDER_LIMIT: refused(400, 'The account has as many open orders in this market as are allowed.'),
  MARKET_ENDED: refused(400, 'The market has ended.'),

  // Who asks.
  CREDENTIAL_MISSING: refused(401, 'This endpoint needs an Authorization header.'),
  CREDENTIAL_MALFORMED: refused(
    401,
    'The Authorization header is neither `Key <api key>` nor `Bearer <token>`.',
  ),
  API_KEY_UNKNOWN: refused(401, 'There is no such API key. It may have been replaced.'),
  BEARER_UUID_REFUSED: refused(
    401,
    'UUID session tokens are no longer accepted: use an API key or an identity token.',
  ),
  BEARER_INVALID: refused(401, 'The identity token is not valid.'),
  BEARER_NOT_CONFIGURED: refused(401, 'Identity tokens are not accepted here: use an API key.'),
  NOT_YOURS: refused(403, 'This belongs to another account.'),

  // What is asked for.
  ROUTE_NOT_FOUND: refused(404, 'There is no such endpoint.'),
  MARKET_NOT_FOUND: refused(404, 'There is no such market.'),
  ORDER_NOT_FOUND: refused(404, 'There is no such order.'),
  USER_NOT_FOUND: refused(404, 'There is no such user. A user exists from the first deposit or login.'),
  FAUCET_NOT_AVAILABLE: refused(404, 'There is no faucet on this chain.'),

  // Time and conflicts.
  OUTCOME_UNKNOWN: {
    status: 408,
    retryable: true,
    outcome: 'unknown',
    message: 'It is not known in time whether the command took effect. Sending the same again is safe.',
  },
  FAUCET_PENDING: {
    status: 408,
    retryable: true,
    outcome: 'unknown',
    message: 'The request was taken, but its transaction is not sent yet. Ask again in a moment.',
  },
  CLIENT_REQUEST_REUSED: refused(409, 'Another command of this account had the same client_request_id.'),
  SALT_USED: refused(409, 'Another order of this account in this market has the same salt.'),
  HTV1_READ_AFTER_STALE_BOOKMARK: refused(409, 'The bookmark cannot be placed: drop it and read again.'),

  // Too much.
  RATE_LIMITED: later(429, 'Too many requests.'),
  HTV1_READ_AFTER_CAPACITY: later(429, 'Too many reads are waiting already: back off and keep the bookmark.'),

  // Ours.
  INTERNAL: refused(500, 'Something went wrong on our side.'),
  MARKET_NOT_OPEN: later(503, 'The market takes no orders now. Cancels are taken.'),
  ORACLE_STALE: later(503, 'The oracle price of the market is not fresh.'),
  CHAIN_UNSEEN: later(503, 'The exchange has not seen the chain for too long to take orders.'),
  OVERLOADED: later(503, 'Too many commands are waiting for this market.'),
  DATABASE_UNAVAILABLE: later(503, 'The database cannot be reached. Nothing was stored.'),
  IDENTITY_PROVIDER_UNAVAILABLE: later(503, 'The identity provider cannot be reached.'),
  FAUCET_FAILED: later(503, 'The faucet could not send its transaction.'),
  SHUTTING_DOWN: later(503, 'This process is shutting down.'),
  HTV1_READ_AFTER_PENDING: later(503, 'The write is not in the read model yet: keep the bookmark and retry.'),
  HTV1_READ_AFTER_UNAVAILABLE: later(
    503,
    'Freshness cannot be established now: keep the bookmark and retry.',
  ),
} as const satisfies Record<string, Entry>

export type ErrorCode = keyof typeof CATALOGUE

/** What helps the caller to repair the request. */
export interface ErrorContext {
  readonly field?: string
  readonly expected?: unknown
  readonly received?: unknown
  readonly nearest_valid?: unknown
  readonly [more: string]: unknown
}

/** What happened to a command, or to one of its items. */
export interface ItemError {
  readonly message: string
  readonly details: ErrorContext & {
    readonly code: ErrorCode
    readonly outcome: PlacementOutcome
    readonly retryable: boolean
  }
}

export interface ErrorBody extends ItemError {
  readonly details: ItemError['details'] & { readonly request_id: string }
}

/** An answer that is an error. `retryAfter` is in decimal seconds. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly context: ErrorContext
  readonly retryAfter: string | undefined

  constructor(code: ErrorCode, context: ErrorContext = {}, retryAfter?: string) {
    super(CATALOGUE[code].message)
    this.code = code
    this.context = context
    this.retryAfter = retryAfter
  }

  get status(): Status {
    return CATALOGUE[this.code].status
  }
}

const LONGEST_ECHO = 200

/** What was received is told back, but not by the kilobyte. */
function brief(value: unknown): unknown {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length <= LONGEST_ECHO
    ? value
    : `${text.slice(0, LONGEST_ECHO)}… (${text.length} characters in all)`
}

export function itemError({ code, context }: ApiError): ItemError {
  const { message, retryable, outcome = 'not_placed' }: Entry = CATALOGUE[code]
  const told: ErrorContext = {
    ...context,
    ...('received' in context ? { received: brief(context.received) } : {}),
    ...(context.field === undefined ? {} : { field: String(brief(context.field)) }),
  }
  return { message, details: { code, ...told, outcome, retryable } }
}

export function errorBody(error: ApiError, requestId: string): ErrorBody {
  const { message, details } = itemError(error)
  return { message, details: { ...details, request_id: requestId } }
}
