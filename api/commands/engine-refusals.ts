/** The errors of the contract with traders for refusals of the engine. */
import type {
  CancelRefusal,
  CommandRefusal,
  ItemRefusal,
  PlaceRefusal,
  ReplaceRefusal,
  SignerMismatch,
  StandingOrder,
} from '../../domain/exchange/decide/orders/command.ts'
import type { OrderFlags } from '../../domain/orders/order-flags.ts'
import { ApiError, type ErrorContext } from '../errors.ts'
import { reusedRequest } from './command.ts'
import { refusalError } from './parse-order.ts'
import { wholeError } from './whole-error.ts'

const RETRY_AFTER: Readonly<Record<string, string>> = {
  MARKET_NOT_OPEN: '5',
  ORACLE_STALE: '1',
}

const standing = (order: StandingOrder): ErrorContext =>
  'sameAs' in order
    ? { same_as: `orders.${order.sameAs}` }
    : { order_id: order.orderId, order_hash: order.hash }

const mismatch = ({ recovered, expected }: SignerMismatch): ErrorContext => ({
  field: 'signature',
  recovered_signer: recovered,
  expected_signer: expected,
})

function placementError(refusal: PlaceRefusal): ApiError {
  switch (refusal.code) {
    case 'MARKET_NOT_FOUND':
      return new ApiError('MARKET_NOT_FOUND', { field: 'market_id', received: refusal.received })
    case 'SALT_USED':
      return new ApiError('SALT_USED', {
        field: 'salt',
        received: refusal.received,
        ...standing(refusal.order),
      })
    case 'CLIENT_ORDER_ID_USED':
      return new ApiError('CLIENT_ORDER_ID_USED', {
        field: 'client_order_id',
        received: refusal.received,
        ...standing(refusal.order),
      })
    case 'SIGNATURE_MISMATCH':
    case 'SESSION_KEY_REVOKED':
    case 'SESSION_KEY_REVOKING':
    case 'SESSION_KEY_EXPIRED':
    case 'SESSION_KEY_NOT_PERMITTED': {
      const { code, recovered: _, expected: __, ...more } = refusal
      return new ApiError(code, { ...mismatch(refusal), ...more })
    }
    case 'ORDER_FLAGS_DIFFER':
      return new ApiError('ORDER_FLAGS_DIFFER', {
        field: differingFlag(refusal.received, refusal.expected),
        expected: flagsView(refusal.expected),
        received: flagsView(refusal.received),
        ...standing(refusal.order),
      })
    case 'BRACKET_TAKEN':
      return new ApiError('BRACKET_TAKEN', {
        field: 'bracket_id',
        expected: `a bracket without a live order that is its ${refusal.role.replace('_', ' ')}; the entry is placed first`,
        received: refusal.received,
        ...standing(refusal.order),
      })
    case 'BRACKET_MISMATCH':
      return new ApiError('BRACKET_MISMATCH', {
        field: 'side',
        expected: refusal.expected,
        received: refusal.received,
        nearest_valid: refusal.expected,
        ...standing(refusal.order),
      })
    case 'CHAIN_UNSEEN':
      return new ApiError('CHAIN_UNSEEN', { last_seen_ms: refusal.lastSeen }, '1')
    case 'MAKER_MISMATCH':
      throw new Error(`the api sent an order of ${refusal.received} for the account ${refusal.expected}`)
    default:
      return refusalError(refusal, RETRY_AFTER[refusal.code])
  }
}

const differingFlag = (a: OrderFlags, b: OrderFlags): string => {
  if (a.postOnly !== b.postOnly) return 'post_only'
  if (a.timeInForce !== b.timeInForce) return 'time_in_force'
  return a.builder === b.builder ? 'bracket_id' : 'builder'
}

export const flagsView = ({ timeInForce, postOnly, bracket, builder }: OrderFlags) => ({
  time_in_force: timeInForce,
  post_only: postOnly,
  bracket_id: bracket ?? null,
  builder: builder ?? null,
})

function replaceError(refusal: ReplaceRefusal): ApiError {
  switch (refusal.code) {
    case 'NOT_A_REPLACEMENT':
      return new ApiError(refusal.code, {
        field: 'order',
        expected: 'an order that was not placed before, or the order that was replaced by it',
        received: 'hash' in refusal.order ? refusal.order.hash : `orders.${refusal.order.sameAs}`,
        ...standing(refusal.order),
      })
    case 'REPLACE_MISMATCH': {
      const { code, field, expected, received } = refusal
      return new ApiError(code, { field, expected, received, nearest_valid: expected })
    }
    case 'ORDER_NOT_REPLACEABLE':
      return new ApiError(refusal.code, {
        field: 'cancel',
        expected: 'an order with a quantity that is neither filled, settling nor cancelled',
        received: refusal.status,
        ...standing(refusal.order),
      })
    case 'ORDER_PARTLY_FILLED':
      return new ApiError(refusal.code, {
        field: 'if_filled',
        expected: 'reduce, or an order without fills',
        received: 'refuse',
        nearest_valid: 'reduce',
        filled_quantity: refusal.filled,
        ...standing(refusal.order),
      })
    case 'REDUCED_BELOW_MINIMUM':
      return new ApiError(refusal.code, {
        field: 'quantity',
        expected: refusal.expected,
        received: refusal.received,
        nearest_valid: refusal.nearestValid,
        filled_quantity: refusal.filled,
      })
  }
}

function cancelError(refusal: CancelRefusal): ApiError {
  if (refusal.code === 'NOT_YOURS')
    return new ApiError('NOT_YOURS', {
      field: 'order_hash',
      expected: 'an order of your own',
      received: refusal.hash,
    })
  if (refusal.code === 'ORDER_FORCED')
    return new ApiError('ORDER_FORCED', { field: 'order_hash', received: refusal.hash })
  const { target } = refusal
  return 'label' in target
    ? new ApiError('ORDER_NOT_FOUND', { field: 'client_order_id', received: target.label })
    : new ApiError('ORDER_NOT_FOUND', { field: 'order_hash', received: target.hash })
}

/** The error of an item that the engine has refused. Without items that the api had refused itself. */
export function itemRefusalError(refusal: Exclude<ItemRefusal, { readonly code: 'FROM_API' }>): ApiError {
  switch (refusal.code) {
    case 'ORDER_NOT_FOUND':
    case 'NOT_YOURS':
    case 'ORDER_FORCED':
      return cancelError(refusal)
    case 'NOT_A_REPLACEMENT':
    case 'REPLACE_MISMATCH':
    case 'ORDER_NOT_REPLACEABLE':
    case 'ORDER_PARTLY_FILLED':
    case 'REDUCED_BELOW_MINIMUM':
      return replaceError(refusal)
    default:
      return placementError(refusal)
  }
}

/** `own`: the error with which the api had refused the item itself; undefined if it had not. */
export function refusedItemError(refusal: ItemRefusal, own: ApiError | undefined): ApiError {
  if (refusal.code !== 'FROM_API') return itemRefusalError(refusal)
  if (own === undefined)
    throw new Error('the engine refused an item for the api that the api had not refused')
  return own
}

/** The error of a whole command. `own`: for each item, the error with which the api had refused it; undefined if it had not. */
export function commandRefusalError(
  refusal: CommandRefusal,
  own: readonly (ApiError | undefined)[],
): ApiError {
  switch (refusal.code) {
    case 'CLIENT_REQUEST_REUSED':
      return reusedRequest({ id: refusal.received })
    case 'MARKET_NOT_FOUND':
      return new ApiError('MARKET_NOT_FOUND', { field: 'market_id', received: refusal.received })
    case 'ITEMS_REFUSED': {
      const errors: unknown[] = own.map(() => null)
      for (const { index, refusal: one } of refusal.items) errors[index] = refusedItemError(one, own[index])
      return wholeError(errors) as ApiError
    }
    default:
      throw new Error(`the api sent a command that it should have rejected: ${refusal.code}`)
  }
}
