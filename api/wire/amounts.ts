/** Converts amounts between wei and JSON: answers contain each amount twice, as number `x` and as exact string `x_e18_raw`. */
import { ONE } from '../../domain/units.ts'

const DECIMALS = 18

/** The decimal text of an amount scaled by 1e18, without trailing zeros. */
export function decimalText(wei: bigint): string {
  const digits = (wei < 0n ? -wei : wei).toString().padStart(DECIMALS + 1, '0')
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '')
  const text = digits.slice(0, -DECIMALS) + (fraction && `.${fraction}`)
  return wei < 0n ? `-${text}` : text
}

const SAFE = BigInt(Number.MAX_SAFE_INTEGER)

/** The double nearest to the amount. */
export function toNumber(wei: bigint): number {
  // Both operands are exact doubles, so the division rounds once.
  if (wei <= SAFE && wei >= -SAFE) return Number(wei) / 1e18
  return Number(decimalText(wei))
}

type Twice<Name extends string, Value, Raw> = { [Key in Name]: Value } & { [Key in `${Name}_e18_raw`]: Raw }

export const amount = <Name extends string>(name: Name, wei: bigint): Twice<Name, number, string> =>
  ({ [name]: toNumber(wei), [`${name}_e18_raw`]: wei.toString() }) as Twice<Name, number, string>

/** Like `amount`; both fields are null if the amount is unknown. */
export const maybeAmount = <Name extends string>(
  name: Name,
  wei: bigint | null,
): Twice<Name, number | null, string | null> =>
  (wei === null
    ? { [name]: null, [`${name}_e18_raw`]: null }
    : { [name]: toNumber(wei), [`${name}_e18_raw`]: wei.toString() }) as Twice<
    Name,
    number | null,
    string | null
  >

/** A double as JavaScript prints it; the power of ten is at most 308. */
const PRINTED = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/** A JSON number, or a decimal string without an exponent, times 1e18; null if it has more than 18 decimals or is not a decimal. */
export function parseDecimal(value: number | string): bigint | null {
  const match = (typeof value === 'number' ? PRINTED : /^(\d+)(?:\.(\d+))?$/).exec(String(value))
  if (match === null) return null
  const [, whole = '', fraction = '', power = '0'] = match
  const shift = DECIMALS - fraction.length + Number(power)
  const digits = BigInt(whole + fraction)
  if (shift >= 0) return digits * 10n ** BigInt(shift)
  const divisor = 10n ** BigInt(-shift)
  return digits % divisor === 0n ? digits / divisor : null
}

/** As `parseDecimal`, of either sign. */
export function parseSignedDecimal(value: number | string): bigint | null {
  const text = String(value)
  if (!text.startsWith('-')) return parseDecimal(value)
  const wei = parseDecimal(typeof value === 'number' ? -value : text.slice(1))
  return wei === null ? null : -wei
}

export const isWhole = (wei: bigint): boolean => wei % ONE === 0n

export const isoTime = (millis: number): string => new Date(millis).toISOString()

/**
 * The time of the last change. A change that the chain has made has the time of its block, whose precision is a second: it can precede the
 * acceptance of what it ended.
 */
export const changeTime = (row: { readonly created_at: number; readonly updated_at: number }): string =>
  isoTime(Math.max(row.created_at, row.updated_at))

/** Milliseconds of an ISO 8601 time; null if it names no day or hour. */
export function parseTime(iso: string): number | null {
  const millis = Date.parse(iso)
  return Number.isNaN(millis) ? null : millis
}
export const maybeTime = (millis: number | null): string | null => (millis === null ? null : isoTime(millis))
