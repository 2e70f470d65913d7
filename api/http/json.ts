/**
 * Parses JSON bodies without silent loss: rejects a number that a double would round, and an object that contains a name twice, of which
 * `JSON.parse` would return the last value only.
 */
import { ApiError } from '../errors.ts'

interface Parts {
  readonly digits: string
  /** Power of ten of the last digit. */
  readonly exponent: number
}

/** Splits a JSON number into digits without leading or trailing zeros and a power of ten: equal numbers have equal parts. */
function partsOf(source: string): Parts {
  const [mantissa = '', power = '0'] = source.replace(/^-/, '').toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = whole + fraction
  const [start, end] = spanOf(all)
  return {
    digits: all.slice(start, end),
    exponent: start === end ? 0 : Number(power) - fraction.length + (all.length - end),
  }
}

/** Range of the digits without leading and trailing zeros, in one pass because a number may be as long as the body. */
function spanOf(digits: string): readonly [start: number, end: number] {
  let start = 0
  let end = digits.length
  while (start < end && digits[start] === '0') start++
  while (end > start && digits[end - 1] === '0') end--
  return [start, end]
}

/** Whether `value` equals the number that is written in `source`. */
export function keepsPrecision(source: string, value: number): boolean {
  const printed = String(value)
  if (printed === source) return true
  if (!Number.isFinite(value)) return false
  const [written, parsed] = [partsOf(source), partsOf(printed)]
  return written.digits === parsed.digits && written.exponent === parsed.exponent
}

/** Maximum nesting: more than any valid request has. It protects later recursive code from stack overflows. */
const DEEPEST = 8

/** Number of names in all objects of a value. Throws INVALID_FIELD if the value exceeds the maximum nesting. */
function namesIn(root: unknown): number {
  let names = 0
  let level = isNode(root) ? [root] : []
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > DEEPEST)
      throw new ApiError('INVALID_FIELD', { field: 'body', expected: `at most ${DEEPEST} levels of nesting` })
    const next: object[] = []
    for (const node of level) {
      const items = Object.values(node)
      if (!Array.isArray(node)) names += items.length
      for (const item of items) if (isNode(item)) next.push(item)
    }
    level = next
  }
  return names
}

const isNode = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Number of name endings in the text: at least the number of names, because strings that contain quotes may match as well. */
function nameEnds(text: string): number {
  const end = /"\s*:/g
  let count = 0
  while (end.test(text)) count++
  return count
}

/** A number of 16 digits or more, or with an exponent: a double represents all others exactly. The content of a string may match too. */
const DOUBTFUL = /[:,[]\s*-?(?:[\d.]{16}|[\d.]+[eE])/

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|[{}[\]:,]/g

/** An object or list around the current token: the names so far, or null in a list; and the current name or index. */
interface Place {
  readonly names: Set<string> | null
  at: string | number
}

/** Scans a JSON text; throws for a name that occurs twice in an object and for a number that a double would round. */
function scan(text: string): void {
  const places: Place[] = []
  let last = ''
  for (const [token] of text.matchAll(TOKEN)) {
    const place = places.at(-1)
    if (token === '{') places.push({ names: new Set(), at: '' })
    else if (token === '[') places.push({ names: null, at: 0 })
    else if (token === '}' || token === ']') places.pop()
    else if (token === ',' && typeof place?.at === 'number') place.at++
    else if (token === ':' && place?.names) {
      place.at = JSON.parse(last) as string
      if (place.names.has(place.at)) throw duplicateField(fieldAt(places))
      place.names.add(place.at)
    } else if (/^[-\d]/.test(token) && !keepsPrecision(token, Number(token)))
      throw precisionLost(fieldAt(places), token)
    last = token
  }
}

const fieldAt = (places: readonly Place[]): string => places.map(({ at }) => at).join('.') || 'body'

const duplicateField = (field: string): ApiError =>
  new ApiError('DUPLICATE_FIELD', { field, expected: 'each name at most once per object' })

function precisionLost(field: string, received: string): ApiError {
  const nearest = Number(received)
  const expected = 'a decimal string, or a number that a double represents exactly'
  const nearestValid = Number.isFinite(nearest) ? { nearest_valid: String(nearest) } : {}
  return new ApiError('PRECISION_LOST', { field, expected, received, ...nearestValid })
}

/** Parses a body; an empty one is an empty object. */
export function parseJson(text: string): unknown {
  if (text.trim() === '') return {}
  const value = parse(text)
  // Scanning every token takes longer than parsing, so only doubtful texts are scanned.
  if (nameEnds(text) !== namesIn(value) || DOUBTFUL.test(text)) scan(text)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const received = (error as Error).message
    throw new ApiError('INVALID_JSON', { field: 'body', expected: 'a JSON object', received })
  }
}
