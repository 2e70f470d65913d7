/** The catalogue of errors. Each code has one status and one meaning; codes and field names are part of the contract with traders. */

import { type CatalogueEntry, permanent, temporary } from './catalogue-entry.ts'
import { FLAG_AND_REPLACEMENT_ERRORS } from './order-entry/error-entries.ts'

export const CATALOGUE = {
  ...FLAG_AND_REPLACEMENT_ERRORS,

  // Format of the request.
  INVALID_JSON: permanent(400, 'The body is not valid JSON.'),
  INVALID_FIELD: permanent(400, 'The value of a field is not valid.'),
  MISSING_FIELD: permanent(400, 'A required field is missing.'),
  UNKNOWN_FIELD: permanent(400, 'The request contains a field that this endpoint does not accept.'),
  DUPLICATE_FIELD: permanent(400, 'The body contains the same field twice.'),
  PRECISION_LOST: permanent(
    400,
    'A number would lose precision as a JSON number; send it as a decimal string.',
  ),
  BODY_TOO_LARGE: permanent(400, 'The body exceeds the size limit of this endpoint.'),
  UNSUPPORTED_ENCODING: permanent(400, 'The body has a content encoding; send it without compression.'),
  UNSUPPORTED_CONTENT_TYPE: permanent(400, 'The content type must be application/json.'),
  MALFORMED_REQUEST: permanent(400, 'The request could not be parsed.'),
  INVALID_CURSOR: permanent(400, 'The cursor was not issued by this list; send that of the previous page.'),
  UPGRADE_REQUIRED: permanent(400, 'This path is a WebSocket; send a request to upgrade the connection.'),
  SUBSCRIPTION_LIMIT: permanent(400, 'The connection has the maximum number of subscriptions.'),
  INCOMPLETE_BOOKMARK: permanent(
    400,
    'A bookmark consists of read_after_shard_id and read_after_shard_seq; one of them is missing.',
  ),

  // The order by itself.
  ORDER_TYPE_UNKNOWN: permanent(400, 'The order type does not exist.'),
  PRICE_REQUIRED: permanent(400, 'A limit order requires a price.'),
  PRICE_NOT_ALLOWED: permanent(400, 'A market order has no price; omit it or send 0.'),
  TRIGGER_NOT_ALLOWED: permanent(400, 'This order type has no trigger price; omit it or send 0.'),
  TICK_SIZE: permanent(400, 'The price is not a multiple of the tick size.'),
  STEP_SIZE: permanent(400, 'The quantity is not a multiple of the step size.'),
  QUANTITY_REQUIRED: permanent(400, 'An order requires quantity or quantity_e18_raw.'),
  QUANTITY_MISMATCH: permanent(400, 'quantity and quantity_e18_raw differ.'),
  MIN_ORDER_SIZE: permanent(400, 'The quantity is below the minimum order size.'),
  MAX_ORDER_SIZE: permanent(400, 'The quantity is above the maximum order size.'),
  MIN_ORDER_PRICE: permanent(400, 'The price is below the minimum order price.'),
  MAX_ORDER_PRICE: permanent(400, 'The price is above the maximum price of the market.'),
  LEVERAGE_CAP: permanent(400, 'The leverage is not a whole number from 1 to the maximum of the market.'),
  ORDER_EXPIRED: permanent(400, 'The order has expired.'),
  EXPIRATION_RANGE: permanent(400, 'The expiration is not a time in Unix seconds.'),
  REDUCE_ONLY_REQUIRED: permanent(400, 'This order type is always reduce-only.'),
  TRIGGER_REQUIRED: permanent(400, 'This order type requires a trigger price.'),
  SALT_RANGE: permanent(400, 'The salt is not a whole number below 2^53.'),
  SIGNATURE_FORMAT: permanent(400, 'The signature is not 66 bytes of hex: r, s, v and the suffix 01.'),
  SIGNATURE_SUFFIX: permanent(400, 'The signature does not end with the suffix 01.'),
  SIGNATURE_V: permanent(400, 'v of the signature is neither 27 nor 28.'),
  SIGNATURE_HIGH_S: permanent(400, 's of the signature is above half the group order.'),
  SIGNATURE_UNRECOVERABLE: permanent(400, 'No public key can be recovered from the signature.'),
  SIGNATURE_MISMATCH: permanent(
    400,
    'The signature is not one of the maker, or of a session key of the maker, over the submitted order.',
  ),
  SESSION_KEY_REVOKED: permanent(400, 'The session key has been revoked.'),
  SESSION_KEY_REVOKING: permanent(
    400,
    'The revocation of the session key was requested; it signs nothing any more.',
  ),
  SESSION_KEY_EXPIRED: permanent(400, 'The session key that signed has expired.'),
  SESSION_KEY_NOT_PERMITTED: permanent(
    400,
    'The session key that signed does not have the permission for this action.',
  ),
  SIGNATURE_TYPE: permanent(400, 'signature_type must be 1.'),
  WALLET_SIGNATURE_FORMAT: permanent(400, 'The signature is not 65 bytes of hex: r, s and v.'),
  WALLET_SIGNATURE_MISMATCH: permanent(
    400,
    "The signature is not one of the owner's wallet over the text of the challenge. A session key cannot sign it.",
  ),

  // Signed forward requests and session keys.
  FORWARD_REQUEST_MISMATCH: permanent(
    400,
    'The forward request is not the one that this operation needs; sign the request that prepare returns.',
  ),
  FORWARD_DEADLINE: permanent(
    400,
    'The deadline of the forward request is too near, past, or too far ahead.',
  ),
  FORWARD_SIGNATURE_MISMATCH: permanent(
    400,
    'The signature is not one of the owner over the forward request as typed data.',
  ),
  SESSION_KEY_ZERO: permanent(400, 'The zero address cannot be a session key.'),
  SESSION_KEY_IS_ACCOUNT: permanent(400, 'The address is that of an account; generate a new key.'),

  // The order in relation to market and account.
  PRICE_BAND: permanent(400, 'The price is outside the price band on the aggressive side.'),
  INSUFFICIENT_MARGIN: permanent(
    400,
    'The available balance does not cover the margin and fee allowance of the order.',
  ),
  MARGIN_REQUIREMENT: permanent(400, 'The order would open a position below its initial margin requirement.'),
  REDUCE_ONLY_NO_POSITION: permanent(
    400,
    'The account has no position that this reduce-only order could reduce.',
  ),
  POSITION_LIMIT: permanent(400, 'The position would exceed the maximum position size of the market.'),
  OPEN_ORDER_LIMIT: permanent(
    400,
    'The account has reached the maximum number of open orders in this market.',
  ),
  MARKET_ENDED: permanent(400, 'The market has ended.'),

  // An adjustment of margin or leverage.
  ADJUSTMENT_SIGNATURE_FORMAT: permanent(
    400,
    'The signature is neither 65 bytes of hex over the typed data, nor 66 bytes that end with 01 over it as a personal message.',
  ),
  ADJUSTER_UNAUTHORIZED: permanent(
    400,
    'The signature is not one of the account, or of a session key of the account, over the submitted adjustment.',
  ),
  DEADLINE_PASSED: permanent(400, 'The deadline of the adjustment has passed.'),
  MARGIN_NONCE_BELOW_MINIMUM: permanent(400, 'The nonce is below the minimum that the account has set.'),
  ADJUSTMENT_UNFUNDED: permanent(400, 'The available balance does not cover the margin that may be added.'),
  NO_POSITION: permanent(400, 'The account has no position in this market.'),
  NOTHING_REMOVABLE: permanent(400, 'No margin of the position can be removed now.'),
  REMOVAL_TOO_LARGE: permanent(400, 'The removal exceeds the margin that can be removed now.'),
  AMOUNT_BELOW_MINIMUM: permanent(400, 'Less than min_amount would move.'),
  ADDITION_INSUFFICIENT: permanent(
    400,
    'The position is eligible for liquidation; an addition must reach the initial margin requirement.',
  ),
  MARGIN_IN_TOO_LARGE: permanent(400, 'The change of leverage needs more margin than max_margin_in_e18_raw.'),
  MARGIN_OUT_TOO_SMALL: permanent(400, 'The change of leverage releases less than min_margin_out_e18_raw.'),

  // Authentication and ownership.
  CREDENTIAL_MISSING: permanent(401, 'This endpoint requires an Authorization header.'),
  CREDENTIAL_MALFORMED: permanent(
    401,
    'The Authorization header is neither `Key <api key>` nor `Bearer <token>`.',
  ),
  API_KEY_UNKNOWN: permanent(401, 'The API key does not exist; it may have been replaced or revoked.'),
  BEARER_UUID_REFUSED: permanent(
    401,
    'UUID session tokens are no longer accepted; use an API key or an identity token.',
  ),
  BEARER_INVALID: permanent(401, 'The identity token is not valid.'),
  BEARER_EXPIRED: permanent(401, 'The identity token has expired; sign in again.'),
  BEARER_NOT_YET_VALID: permanent(401, 'The identity token is not valid yet.'),
  BEARER_ALGORITHM: permanent(401, 'The identity token is not signed with an accepted algorithm.'),
  BEARER_KEY_UNKNOWN: permanent(401, 'The identity token names no key of the identity provider.'),
  BEARER_NOT_CONFIGURED: permanent(401, 'Identity tokens are not accepted here; use an API key.'),
  OPERATOR_PASSWORD: permanent(401, "The operator's view requires the operator's password."),
  READ_ONLY_KEY: permanent(
    403,
    'The API key is read-only; use a key with the scope trade, or an identity token.',
  ),
  ADDRESS_NOT_ALLOWED: permanent(403, 'The API key is not accepted from this network address.'),
  NOT_YOURS: permanent(403, 'The requested resource belongs to another account.'),

  // Unknown resources.
  ROUTE_NOT_FOUND: permanent(404, 'The endpoint does not exist.'),
  MARKET_NOT_FOUND: permanent(404, 'The market does not exist.'),
  TOPIC_NOT_FOUND: permanent(404, 'The topic does not exist.'),
  ORDER_NOT_FOUND: permanent(404, 'The order does not exist.'),
  AUCTION_NOT_FOUND: permanent(
    404,
    'The market has no batch with this number. An auction that matched nothing has no batch.',
  ),
  PROOF_NOT_AVAILABLE: permanent(
    404,
    'The proof of this batch is not available: it is older than the exchange keeps proofs, or earlier rules cleared it.',
  ),
  HISTORY_NOT_FINAL: permanent(
    404,
    'The day is not final yet: its file can be requested from available_at on.',
  ),
  HISTORY_BEFORE_LISTING: permanent(404, 'The market has no history of the day: it was listed later.'),
  HISTORY_AFTER_END: permanent(404, 'The market has no history of the day: it had ended before.'),
  HISTORY_EXPIRED: permanent(404, 'The files of the day are older than the exchange keeps them.'),
  USER_NOT_FOUND: permanent(404, 'The user does not exist. A user exists from the first deposit or login.'),
  API_KEY_NOT_FOUND: permanent(404, 'The account has no API key with this name; it may have been revoked.'),
  CHALLENGE_UNKNOWN: permanent(404, 'The account has no such challenge; request another one.'),
  OPERATION_NOT_FOUND: permanent(
    404,
    'The account has no operation with this id; the relay was not accepted.',
  ),
  SESSION_KEY_NOT_FOUND: permanent(404, 'The account has no session key with this address.'),
  FAUCET_NOT_AVAILABLE: permanent(404, 'This chain has no faucet.'),

  // Timeouts and conflicts.
  REQUEST_TIMEOUT: {
    status: 408,
    retryable: true,
    message: 'The request did not arrive completely in time. It was not executed.',
  },
  OUTCOME_UNKNOWN: {
    status: 408,
    retryable: true,
    outcome: 'unknown',
    message: 'The outcome of the command is not known yet. Repeating the same command is safe.',
  },
  FAUCET_PENDING: {
    status: 408,
    retryable: true,
    outcome: 'unknown',
    message:
      'The faucet request is accepted, but its transaction is not sent yet; request again in a moment.',
  },
  CONNECTION_IN_USE: permanent(
    409,
    'The connection belongs to another account; open a connection for each account.',
  ),
  API_KEY_NAME_TAKEN: permanent(
    409,
    'The account has an API key with this name; revoke it, or choose another name.',
  ),
  API_KEY_LIMIT: permanent(409, 'The account has the maximum number of API keys; revoke one of them.'),
  CHALLENGE_EXPIRED: permanent(409, 'The challenge has expired; request another one.'),
  CHALLENGE_USED: {
    status: 409,
    retryable: false,
    outcome: 'unknown',
    message:
      'The challenge was used, or a later rotation ended it. A key that an unreceived answer contained is lost: request another ' +
      'challenge with an identity token, and rotate again.',
  },
  RELAY_PENDING: {
    status: 408,
    retryable: true,
    outcome: 'unknown',
    message: 'The request is accepted, but not on the chain yet. Repeating the same request resolves it.',
  },
  RELAY_FAILED: permanent(409, 'The request was not executed on the chain; see failure and reason.'),
  FORWARD_NONCE_USED: {
    status: 409,
    retryable: false,
    outcome: 'unknown',
    message: 'The nonce of the forward request is used: this request or another one was executed.',
  },
  FORWARD_NONCE_TAKEN: permanent(409, 'Another open request has the nonce of the forward request.'),
  FORWARD_NONCE_GAP: permanent(
    409,
    'The nonce of the forward request leaves a gap; nonces execute in order.',
  ),
  MARGIN_NONCE_NOT_RAISED: permanent(409, 'The new minimum is not above the current one.'),
  SESSION_KEY_REGISTERED: permanent(
    409,
    'The session key was registered before; its status is in the details. Generate a new key.',
  ),
  SESSION_KEY_PENDING: permanent(409, 'The same operation of this session key is open; read it by its id.'),
  SESSION_KEY_LIMIT: permanent(409, 'The account has the maximum number of active session keys.'),
  ADJUSTMENT_PENDING: {
    status: 408,
    retryable: true,
    outcome: 'unknown',
    message:
      'The adjustment is accepted, but not executed yet. Repeating the same signed request returns its outcome.',
  },
  ADJUSTMENT_IN_FLIGHT: permanent(
    409,
    'Another adjustment of the account in this market is in flight; it ends within its lifetime.',
  ),
  ADJUSTMENT_ABORTED: permanent(
    409,
    'The adjustment was not executed and never will be: nothing has moved. Sign a new one with another nonce.',
  ),
  ADJUSTMENT_NOT_RECONCILED: {
    status: 409,
    retryable: false,
    outcome: 'unknown',
    message:
      'The transaction of the adjustment was executed with other effects than expected; the operator is alerted.',
  },
  MARGIN_NONCE_USED: permanent(
    409,
    'The nonce was used for another adjustment of this account in this market.',
  ),
  POSITION_IN_LIQUIDATION: permanent(
    409,
    'The position is being liquidated: it accepts only an addition that reaches the initial margin requirement.',
  ),
  CLIENT_REQUEST_REUSED: permanent(
    409,
    'The client_request_id was used for another command of this account.',
  ),
  ORDER_FORCED: permanent(
    409,
    'The order belongs to a liquidation. It ends when it is filled, or when the position is healthy again.',
  ),
  CLIENT_ORDER_ID_USED: permanent(409, 'A live order of this account has the client_order_id.'),
  SALT_USED: permanent(409, 'The salt was used for another order of this account in this market.'),
  HTV1_READ_AFTER_STALE_BOOKMARK: permanent(409, 'The bookmark is stale; drop it and read again.'),

  // Limits.
  FAUCET_LIMIT: temporary(429, 'The faucet has paid as often as it may in this time; see Retry-After.'),
  EXPORT_RUNNING: temporary(429, 'A CSV file of this account is being read; read it to its end first.'),
  RATE_LIMITED: temporary(429, 'The rate limit is exceeded.'),
  CONNECTION_LIMIT: temporary(429, 'Too many connections are open; close one, or see Retry-After.'),
  LARGE_PAGE_LIMIT: temporary(
    429,
    'Two large pages of this account are being read; read them to their end first, or request fewer rows.',
  ),
  TOO_MANY_CONNECTIONS: temporary(
    429,
    'The address has too many open connections; use them for further requests, or close some.',
  ),
  ADJUSTMENT_FAILED_RECENTLY: temporary(
    429,
    'The position is to be liquidated, and the last adjustment failed on the chain; see Retry-After.',
  ),
  RELAY_LIMIT: temporary(429, 'The account has the maximum number of open relay operations.'),
  HTV1_READ_AFTER_CAPACITY: temporary(
    429,
    'Too many reads are waiting for a bookmark; retry later with the same bookmark.',
  ),

  // The exchange.
  INTERNAL: { status: 500, retryable: false, outcome: 'unknown', message: 'An internal error occurred.' },
  HISTORY_CHANGED: permanent(
    500,
    'The file differs from its first build, so it is not served. The exchange has logged the difference.',
  ),
  MARKET_NOT_OPEN: temporary(503, 'The market accepts no orders now; cancels are accepted.'),
  ORACLE_STALE: temporary(503, 'The oracle price of the market is too old to accept orders.'),
  CHAIN_UNSEEN: temporary(503, 'The exchange has not read the chain recently enough to accept orders.'),
  ADJUSTMENTS_UNAVAILABLE: temporary(503, 'The exchange executes no adjustments now. Nothing was stored.'),
  OVERLOADED: temporary(503, 'Too many commands are under way, or the command has waited too long.'),
  HISTORY_CAPACITY: temporary(503, 'The file is being built, or others are before it; see Retry-After.'),
  PROOF_CAPACITY: temporary(503, 'Too many proofs are being made; see Retry-After.'),
  DATABASE_UNAVAILABLE: {
    status: 503,
    retryable: true,
    // Without the database nothing is known of earlier attempts at the command.
    outcome: 'unknown',
    message: 'The database is not reachable.',
  },
  LIMITS_UNAVAILABLE: temporary(503, 'Rate limits cannot be checked now; this endpoint requires them.'),
  IDENTITY_PROVIDER_UNAVAILABLE: temporary(503, 'The identity provider is not reachable.'),
  WALLET_CHECK_UNAVAILABLE: temporary(503, 'The signature of a contract wallet cannot be checked now.'),
  RELAY_UNAVAILABLE: temporary(503, 'This exchange does not relay requests now: no relayer is running.'),
  FAUCET_FAILED: temporary(503, 'The faucet failed to send its transaction.'),
  FAUCET_EMPTY: temporary(503, 'The faucet cannot pay now: its key has run out of gas. Nothing was sent.'),
  FAUCET_REVERTED: temporary(503, 'The contract of the collateral token rejected the payout of the faucet.'),
  SHUTTING_DOWN: temporary(503, 'This process is shutting down.'),
  READ_MODEL_FILLING: temporary(503, 'The requested data is being rebuilt; retry later.'),
  HTV1_READ_AFTER_PENDING: temporary(
    503,
    'The write is not in the read model yet; retry with the same bookmark.',
  ),
  HTV1_READ_AFTER_UNAVAILABLE: temporary(
    503,
    'The freshness of the read model is not known now; retry with the same bookmark.',
  ),
} as const satisfies Record<string, CatalogueEntry>

export type ErrorCode = keyof typeof CATALOGUE
