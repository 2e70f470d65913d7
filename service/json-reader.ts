/**
 * Reads JSON configuration files. Every value is checked, unknown names are rejected, and an error names the path.
 */
import { parseDecimal } from './decimal.ts'

/** The message names the path, the received value, and a valid value. */
export class JsonError extends Error {
  override readonly name = 'JsonError'
}

export interface JsonReader {
  /** Path of the object, for example `feeds[0].sources[1]`. */
  readonly path: string
  reject(name: string, valid: string): never
  has(name: string): boolean
  text(name: string, fallback?: string): string
  matching(name: string, pattern: RegExp, valid: string): string
  oneOf<const Word extends string>(name: string, words: readonly Word[], fallback?: Word): Word
  /** A whole number. */
  count(
    name: string,
    bounds?: { readonly least?: number; readonly most?: number; readonly fallback?: number },
  ): number
  /** A decimal number or text, times 1e18. */
  amount(name: string, fallback?: bigint): bigint
  /** A fraction in millionths, rounded down. */
  millionths(name: string, fallback?: bigint): bigint
  flag(name: string, fallback: boolean): boolean
  object(name: string): JsonReader
  objects(name: string): readonly JsonReader[]
  /** Rejects names that no call has read. */
  end(): void
}

const MILLIONTH = 10n ** 12n

function readerOf(value: unknown, path: string): JsonReader {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new JsonError(`${path || 'the file'} is ${JSON.stringify(value)}: expected an object`)
  const fields = value as Readonly<Record<string, unknown>>
  const read = new Set<string>()
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`)
  const reject = (name: string, valid: string): never => {
    const found = fields[name] === undefined ? 'is missing' : `is ${JSON.stringify(fields[name])}`
    throw new JsonError(`${at(name)} ${found}: expected ${valid}`)
  }
  /** Undefined if the field is missing. */
  const take = (name: string): unknown => {
    read.add(name)
    return fields[name]
  }
  const text = (name: string, fallback?: string): string => {
    const found = take(name) ?? fallback
    return typeof found === 'string' && found !== '' ? found : reject(name, 'a text')
  }
  const amount = (name: string, fallback?: bigint): bigint => {
    const found = take(name)
    if (found === undefined && fallback !== undefined) return fallback
    const parsed = typeof found === 'string' || typeof found === 'number' ? parseDecimal(String(found)) : null
    return parsed ?? reject(name, 'a decimal number with at most 18 decimals')
  }
  return {
    path,
    reject,
    has: (name) => fields[name] !== undefined,
    text,
    matching(name, pattern, valid) {
      const found = text(name)
      return pattern.test(found) ? found : reject(name, valid)
    },
    oneOf(name, words, fallback) {
      const found = take(name) ?? fallback
      return words.find((word) => word === found) ?? reject(name, `one of ${words.join(', ')}`)
    },
    count(name, { least = 0, most = Number.MAX_SAFE_INTEGER, fallback } = {}) {
      const found = take(name) ?? fallback
      const isValid = Number.isSafeInteger(found) && (found as number) >= least && (found as number) <= most
      const bounds = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
      return isValid ? (found as number) : reject(name, `a whole number ${bounds}`)
    },
    amount,
    millionths: (name, fallback) =>
      fallback !== undefined && fields[name] === undefined ? fallback : amount(name) / MILLIONTH,
    flag(name, fallback) {
      const found = take(name) ?? fallback
      return typeof found === 'boolean' ? found : reject(name, 'true or false')
    },
    object: (name) => readerOf(take(name), at(name)),
    objects(name) {
      const found = take(name)
      if (!Array.isArray(found) || found.length === 0) return reject(name, 'a list of at least one object')
      return found.map((item, index) => readerOf(item, `${at(name)}[${index}]`))
    },
    end() {
      const unknown = Object.keys(fields).find((name) => !read.has(name))
      if (unknown !== undefined)
        throw new JsonError(`${at(unknown)} is not known: expected only ${[...read].join(', ')}`)
    },
  }
}

/** Throws a JsonError if the text is not a JSON object. */
export function readJsonObject(text: string): JsonReader {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    throw new JsonError(`the file is not JSON: ${(error as Error).message}`)
  }
  return readerOf(parsed, '')
}
