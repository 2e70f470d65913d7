/**
 * Units of the exchange, and arithmetic with explicit rounding: `Down` and `Floor` yield the smaller result, `Up` and
 * `Ceil` the larger result. Branded types reject mixed units.
 */
import { invariant } from './invariant.ts'

declare const kind: unique symbol
type Amount<Kind extends string> = bigint & { readonly [kind]: Kind }
/** Safe integers in a `number`, because the auction compares and adds millions of them. */
type Count<Kind extends string> = number & { readonly [kind]: Kind }
type Text<Kind extends string> = `0x${string}` & { readonly [kind]: Kind }

/** USDM per unit of the underlying, × 1e18. */
export type Price = Amount<'Price'>
/** Units of the underlying, × 1e18; never negative. */
export type Quantity = Amount<'Quantity'>
/** USDM wei (18 decimals); may be negative for a change or an equity. */
export type Quote = Amount<'Quote'>
/** A fraction, × 1e18: 0.0005 (5 bps) is 5e14. */
export type Rate = Amount<'Rate'>
/** Wei that a long has paid per quantity step since listing; signed, grows while longs pay. */
export type FundingIndex = Amount<'FundingIndex'>
/** Wei that a long pays per quantity step and hour; negative if shorts pay. */
export type HourlyFunding = Amount<'HourlyFunding'>

/** A price counted in ticks of its market. */
export type Ticks = Count<'Ticks'>
/** A quantity counted in quantity steps of its market; signed for a position (long positive). */
export type Steps = Count<'Steps'>
/** Unix seconds. */
export type Seconds = Count<'Seconds'>
/** Unix milliseconds. */
export type Millis = Count<'Millis'>
/** A Gregorian calendar date, as days since 1970-01-01; the caller chooses the time zone. */
export type Day = Count<'Day'>
/** Journal sequence number of an order in its market. A smaller number is earlier. */
export type Seq = Count<'Seq'>
export type MarketId = Count<'MarketId'>
export type UserId = Count<'UserId'>

/** 20 bytes, lower case hex. */
export type Address = Text<'Address'>
/** 32 bytes, lower case hex: the EIP-712 digest of an order. */
export type OrderHash = Text<'OrderHash'>

export const ONE = 10n ** 18n

/** floor(a × b / c); a and b not negative, c positive. */
export const mulDivDown = (a: bigint, b: bigint, c: bigint): bigint => {
  invariant(
    a >= 0n && b >= 0n && c > 0n,
    'mulDivDown gets factors that are not negative and a positive divisor',
  )
  return (a * b) / c
}

/** ceil(a × b / c); a and b not negative, c positive. */
export const mulDivUp = (a: bigint, b: bigint, c: bigint): bigint => {
  invariant(
    a >= 0n && b >= 0n && c > 0n,
    'mulDivUp gets factors that are not negative and a positive divisor',
  )
  return (a * b + c - 1n) / c
}

/** Rounds towards minus infinity, unlike the bigint operator `/`: divFloor(-7n, 2n) is -4n. b is positive. */
export const divFloor = (a: bigint, b: bigint): bigint => {
  invariant(b > 0n, 'divFloor gets a positive divisor')
  const quotient = a / b
  return a % b < 0n ? quotient - 1n : quotient
}

/** Rounds towards plus infinity; b positive. */
export const divCeil = (a: bigint, b: bigint): bigint => -divFloor(-a, b)

export const abs = (value: bigint): bigint => (value < 0n ? -value : value)
export const minOf = <T extends bigint | number>(a: T, b: T): T => (a < b ? a : b)
export const maxOf = <T extends bigint | number>(a: T, b: T): T => (a > b ? a : b)

/**
 * Formats an amount × 1e18 as a decimal: exact, without trailing zeros. `toDecimal(5n * 10n ** 17n)` is
 * '0.5'.
 */
export function toDecimal(amount: bigint): string {
  const digits = abs(amount).toString().padStart(19, '0')
  const fraction = digits.slice(-18).replace(/0+$/, '')
  const sign = amount < 0n ? '-' : ''
  return `${sign}${digits.slice(0, -18)}${fraction === '' ? '' : `.${fraction}`}`
}
