/** Reads an adjustment from a request and recovers its signer. */

import type { MarketSpec } from '../../domain/market/market.ts'
import type { Adjustment } from '../../domain/positions/adjustment-attempt.ts'
import { isLeverage } from '../../domain/positions/adjustment-attempt.ts'
import {
  hashLeverageAdjustment,
  hashMarginAdjustment,
  recoverAdjuster,
} from '../../domain/positions/adjustment-hash.ts'
import type { SignedAdjustment } from '../../domain/positions/stored-adjustment.ts'
import type { Address, Quote, Seconds } from '../../domain/units.ts'
import { keccak, recover } from '../../service/crypto.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { parseDecimal, parseSignedDecimal } from '../wire/amounts.ts'
import type { AdjustLeverageBody, AdjustMarginBody } from './schema.ts'

/** An adjustment with its digest in the market's domain. */
export interface AdjustmentRequest {
  readonly spec: MarketSpec
  readonly digest: string
  readonly nonce: number
  readonly signed: SignedAdjustment
}

function decimal(field: string, value: number | string, parse: typeof parseDecimal): Quote {
  const wei = parse(value)
  if (wei !== null && wei < LARGEST && wei > -LARGEST) return wei as Quote
  const expected = 'a decimal with at most 18 decimals, below 1e30'
  throw new ApiError('INVALID_FIELD', { field, expected, received: value })
}

/** More than any balance; far below the bounds of the signed struct. */
const LARGEST = 10n ** 48n

export function marginOf(body: AdjustMarginBody): Adjustment {
  const { remove_mode: removeMode = 'exact', min_amount = 0 } = body
  const amount = decimal('amount', body.amount, parseSignedDecimal)
  if (amount === 0n) {
    throw new ApiError('INVALID_FIELD', { field: 'amount', expected: 'an amount other than 0', received: 0 })
  }
  if (removeMode === 'up_to' && amount > 0n) {
    const expected = 'exact, because the amount is positive'
    throw new ApiError('INVALID_FIELD', { field: 'remove_mode', expected, received: removeMode })
  }
  return { amount, removeMode, minAmount: decimal('min_amount', min_amount, parseDecimal) }
}

/** Above it, an amount in wei is no limit. It fits the columns of the write side. */
const uint256 = (field: string, raw: string): Quote => {
  const wei = BigInt(raw)
  if (wei < 1n << 256n) return wei as Quote
  throw new ApiError('INVALID_FIELD', { field, expected: 'an amount below 2^256', received: raw })
}

export const leverageOf = (body: AdjustLeverageBody): Adjustment => ({
  leverage: body.leverage,
  maxMarginIn: uint256('max_margin_in_e18_raw', body.max_margin_in_e18_raw),
  minMarginOut: uint256('min_margin_out_e18_raw', body.min_margin_out_e18_raw),
})

type Body = AdjustLeverageBody | AdjustMarginBody

/** The market of the symbol. Throws an ApiError unless it has the id, and unless the address is the caller's. */
export async function marketOf(caller: Caller, body: Body, markets: MarketDirectory): Promise<MarketSpec> {
  const received = body.address.toLowerCase()
  if (received !== caller.address)
    throw new ApiError('NOT_YOURS', { field: 'address', expected: caller.address, received })
  const spec = await markets.bySymbol(body.symbol)
  if (body.market_id === undefined || body.market_id === spec.marketId) return spec
  const expected = `${spec.marketId}, the market of ${spec.symbol}`
  throw new ApiError('INVALID_FIELD', { field: 'market_id', expected, received: body.market_id })
}

/** Throws an ApiError if no signer can be recovered. */
export function readRequest(spec: MarketSpec, body: Body, adjustment: Adjustment): AdjustmentRequest {
  const deadline = body.deadline as Seconds
  const account = body.address.toLowerCase() as Address
  const authorization = { account, nonce: BigInt(body.nonce), deadline }
  const digest = isLeverage(adjustment)
    ? hashLeverageAdjustment({ ...adjustment, ...authorization }, spec, keccak)
    : hashMarginAdjustment({ ...adjustment, ...authorization }, spec, keccak)
  const verdict = recoverAdjuster(digest, body.signature, keccak, recover)
  if (!verdict.ok) {
    const { code, ...context } = verdict.refusal
    // The form is that of adjustments, which has a code of its own.
    const isForm = code === 'SIGNATURE_FORMAT' || code === 'SIGNATURE_SUFFIX'
    throw new ApiError(isForm ? 'ADJUSTMENT_SIGNATURE_FORMAT' : code, {
      field: 'signature',
      ...context,
      digest,
    })
  }
  const signature = body.signature.toLowerCase()
  return {
    spec,
    digest,
    nonce: body.nonce,
    signed: { adjustment, signer: verdict.value, signature, deadline },
  }
}
