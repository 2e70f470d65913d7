/** JSON bodies, with every number read by its source text: what a double would change is refused, not rounded. */
import { ApiError } from '../errors.ts'

interface Parts {
  readonly digits: string
  /** Power of ten of the last digit. */
  readonly exponent: number
}

/** A JSON number as digits without leading or trailing zeros, and a power of ten: equal numbers have equal parts. */
function partsOf(source: string): Parts {
  const [mantissa = '', power = '0'] = source.replace(/^-/, '').toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = (whole + fraction).replace(/^0+/, '')
  const digits = all.replace(/0+$/, '')
  return {
    digits,
    exponent: digits === '' ? 0 : Number(power) - fraction.length + (all.length - digits.length),
  }
}

/** Whether `value`, printed, is the number that `source` says. */
export function keepsPrecision(source: string, value: number): boolean {
  const printed = String(value)
  if (printed === source) return true
  if (!Number.isFinite(value)) return false
  const [said, kept] = [partsOf(source), partsOf(printed)]
  return said.digits === kept.digits && said.exponent === kept.exponent
}

interface ReviverContext {
  readonly source?: string
}

function reviver(this: unknown, key: string, value: unknown, context?: ReviverContext): unknown {
  if (typeof value !== 'number') return value
  const source = context?.source ?? String(value)
  if (keepsPrecision(source, value)) return value
  const expected = 'a decimal string, or a number that a double keeps exactly'
  throw new ApiError('PRECISION_LOST', {
    field: key,
    expected,
    received: source,
    nearest_valid: String(value),
  })
}

/** A number of 16 digits or more, or with an exponent. A double keeps every other number. What a string holds may match as well. */
const DOUBTFUL = /[:,[]\s*-?(?:[\d.]{16}|[\d.]+[eE])/

/** Parses a body; an empty one is an empty object. */
export function parseJson(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    // Looking at every value takes four times as long as reading them, so that is left to texts that need it.
    if (!DOUBTFUL.test(text)) return JSON.parse(text)
    return JSON.parse(text, reviver as (this: unknown, key: string, value: unknown) => unknown)
  } catch (error) {
    if (error instanceof ApiError) throw error
    const received = (error as Error).message
    throw new ApiError('INVALID_JSON', { field: 'body', expected: 'a JSON object', received })
  }
}
