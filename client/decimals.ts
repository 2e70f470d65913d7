/** Converts between human-readable decimals and the signed integers × 1e18. Exact in both directions. */

const PLACES = 18
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/

/** A decimal as text or number, or an integer that is already scaled by 1e18. */
export type Decimal = string | number | bigint

/**
 * `1.5` -> 1500000000000000000n. Returns a bigint unchanged.
 * Throws if the value is not a decimal or has more than 18 places.
 */
export function toE18(value: Decimal): bigint {
  if (typeof value === 'bigint') return value
  const match = DECIMAL.exec(typeof value === 'number' ? plain(value) : value.trim())
  const fraction = match?.[3] ?? ''
  if (match === null || fraction.length > PLACES)
    throw new RangeError(`"${value}" is not a decimal with at most ${PLACES} places, such as 64000.1`)
  const scaled = BigInt(`${match[2]}${fraction.padEnd(PLACES, '0')}`)
  return match[1] === '-' ? -scaled : scaled
}

/** 1500000000000000000n -> `1.5`. */
export function fromE18(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().padStart(PLACES + 1, '0')
  const fraction = digits.slice(-PLACES).replace(/0+$/, '')
  const whole = digits.slice(0, -PLACES)
  return `${value < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}

/** A JSON number if it represents the value exactly, otherwise text. */
export function toWire(value: bigint): number | string {
  const text = fromE18(value)
  return plain(Number(text)) === text ? Number(text) : text
}

/** Decimal text without an exponent: 1e-7 -> `0.0000001`. */
function plain(value: number): string {
  const text = String(value)
  const match = /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/.exec(text)
  if (match === null) return text
  const digits = `${match[2]}${match[3] ?? ''}`
  return `${match[1]}0.${'0'.repeat(Number(match[4]) - 1)}${digits}`
}
