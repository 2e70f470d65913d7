/** Shows amounts × 1e18 exactly: they are formatted as decimal text and never become floating-point numbers. */
import { fromE18, toE18 } from '../../client/decimals.ts'

export type Raw = string | bigint | null | undefined

const formats = new Map<string, Intl.NumberFormat>()

function formatOf(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = JSON.stringify(options)
  let format = formats.get(key)
  if (format === undefined) {
    format = new Intl.NumberFormat(undefined, options)
    formats.set(key, format)
  }
  return format
}

/** `format` takes decimal text exactly; the types do not know that yet for a variable. */
const exact = (decimal: string): Intl.StringNumericLiteral => decimal as Intl.StringNumericLiteral

/** Such as `1 order`, `2 orders`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

export const NONE = '–'

const ONE_E18 = 10n ** 18n

/** Rounded to `places` towards zero, so that a balance is never shown larger than it is. */
export function truncated(raw: bigint, places: number): bigint {
  const unit = 10n ** BigInt(18 - places)
  return (raw / unit) * unit
}

export interface NumberOptions {
  readonly places?: number
  readonly sign?: boolean
  /** Without trailing zeros. */
  readonly short?: boolean
}

export function number(raw: Raw, { places = 2, sign = false, short = false }: NumberOptions = {}): string {
  if (raw === null || raw === undefined) return NONE
  const value = truncated(BigInt(raw), places)
  return formatOf({
    minimumFractionDigits: short ? 0 : places,
    maximumFractionDigits: places,
    signDisplay: sign ? 'exceptZero' : 'negative',
  }).format(exact(fromE18(value)))
}

export const usd = (raw: Raw, options: NumberOptions = {}): string => number(raw, { places: 2, ...options })

/** A quantity or price of any market, without trailing zeros. */
export const quantity = (raw: Raw): string => number(raw, { places: 8, short: true })

export const quantityOrNone = (raw: string | null): string => (raw === '0' ? NONE : quantity(raw))

/** For example 12.4M. */
export function compact(raw: Raw): string {
  if (raw === null || raw === undefined) return NONE
  return formatOf({ notation: 'compact', maximumFractionDigits: 2 }).format(exact(fromE18(BigInt(raw))))
}

/** A fraction × 1e18 as per cent. */
export function percent(raw: Raw, { places = 2, sign = false }: NumberOptions = {}): string {
  if (raw === null || raw === undefined) return NONE
  return `${number(BigInt(raw) * 100n, { places, sign })}%`
}

/** Decimal places of a grid: 0.01 has 2. */
export function placesOf(increment: string): number {
  const [, fraction = ''] = fromE18(BigInt(increment)).split('.')
  return fraction.length
}

export const signOf = (raw: Raw): 'up' | 'down' | '' => {
  if (raw === null || raw === undefined) return ''
  const value = BigInt(raw)
  return value > 0n ? 'up' : value < 0n ? 'down' : ''
}

/** For charts and bars only, never for amounts. */
export const plain = (raw: string | bigint): number => Number(fromE18(BigInt(raw)))

export const mul = (a: bigint, b: bigint): bigint => (a * b) / ONE_E18
export const div = (a: bigint, b: bigint): bigint => (b === 0n ? 0n : (a * ONE_E18) / b)

/** Null if the text is no decimal. */
export function parsed(text: string): bigint | null {
  try {
    return text.trim() === '' ? null : toE18(text.trim().replace(/,/g, ''))
  } catch {
    return null
  }
}

export { fromE18, toE18 }
