/** Parses decimal text to exact amounts. */

const DECIMALS = 18
const FORM = /^(-?)(\d{1,60})(?:\.(\d{1,60}))?(?:[eE]([+-]?\d{1,2}))?$/

/**
 * The number × 1e18; null if the text is not a decimal number, or has a non-zero digit beyond 18 decimals.
 * Accepts JSON number notation.
 */
export function parseDecimal(text: string): bigint | null {
  const match = FORM.exec(text)
  if (match === null) return null
  const [, sign, whole = '', fraction = '', power = '0'] = match
  const shift = DECIMALS - fraction.length + Number(power)
  const digits = BigInt(`${sign}${whole}${fraction}`)
  if (shift >= 0) return digits * 10n ** BigInt(shift)
  const divisor = 10n ** BigInt(-shift)
  return digits % divisor === 0n ? digits / divisor : null
}

/** As `parseDecimal`, but truncates beyond 18 decimals, because price sources can send more digits. */
export function parsePrice(text: string): bigint | null {
  const cut = /^-?\d+\.\d{18}(?=\d+$)/.exec(text)
  return parseDecimal(cut === null ? text : cut[0])
}
