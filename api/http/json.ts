/**
 * JSON bodies, read so that nothing is lost silently: a number that a double would change is refused and not rounded, and so is a name
 * that an object has twice, of which the last would win.
 */
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
  const all = whole + fraction
  const [start, end] = spanOf(all)
  return {
    digits: all.slice(start, end),
    exponent: start === end ? 0 : Number(power) - fraction.length + (all.length - end),
  }
}

/** Where the digits begin and end that are not zeros at either side: in one pass, as a number may be as long as a body. */
function spanOf(digits: string): readonly [start: number, end: number] {
  let start = 0
  let end = digits.length
  while (start < end && digits[start] === '0') start++
  while (end > start && digits[end - 1] === '0') end--
  return [start, end]
}

/** Whether `value`, printed, is the number that `source` says. */
export function keepsPrecision(source: string, value: number): boolean {
  const printed = String(value)
  if (printed === source) return true
  if (!Number.isFinite(value)) return false
  const [said, kept] = [partsOf(source), partsOf(printed)]
  return said.digits === kept.digits && said.exponent === kept.exponent
}

/** No request nests deeper than a batch of orders does; what does would end in a stack that is too small. */
const DEEPEST = 8

/** How many names the objects of a value have, all together. Refuses what nests too deep. */
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

/** At least as many as there are names: a string that holds quotes may match as well. */
function nameEnds(text: string): number {
  const end = /"\s*:/g
  let count = 0
  while (end.test(text)) count++
  return count
}

/** A number of 16 digits or more, or with an exponent. A double keeps every other number. What a string holds may match as well. */
const DOUBTFUL = /[:,[]\s*-?(?:[\d.]{16}|[\d.]+[eE])/

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|[{}[\]:,]/g

/** An object or a list that the scan is in: the names so far, or null in a list; and where it is. */
interface Place {
  readonly names: Set<string> | null
  at: string | number
}

/** Goes through a text that is JSON: refuses a name that an object has twice, and a number that a double would change. */
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
      if (place.names.has(place.at)) throw twice(fieldAt(places))
      place.names.add(place.at)
    } else if (/^[-\d]/.test(token) && !keepsPrecision(token, Number(token)))
      throw precisionLost(fieldAt(places), token)
    last = token
  }
}

const fieldAt = (places: readonly Place[]): string => places.map(({ at }) => at).join('.') || 'body'

const twice = (field: string): ApiError =>
  new ApiError('DUPLICATE_FIELD', { field, expected: 'every name once in an object' })

function precisionLost(field: string, received: string): ApiError {
  const nearest = Number(received)
  const expected = 'a decimal string, or a number that a double keeps exactly'
  const told = Number.isFinite(nearest) ? { nearest_valid: String(nearest) } : {}
  return new ApiError('PRECISION_LOST', { field, expected, received, ...told })
}

/** Parses a body; an empty one is an empty object. */
export function parseJson(text: string): unknown {
  if (text.trim() === '') return {}
  const value = parse(text)
  // Looking at every token takes longer than reading them, so that is left to texts that need it.
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
