/**
 * Values of commands and answers as JSON: an amount is `{"$int": "digits"}`, a map `{"$map": [[key, value], …]}`. Everything else of them is JSON
 * already. An object of a command has no other property that begins with `$`.
 */

const INT = '$int'
const MAP = '$map'
/** An amount has at most 78 digits and a sign. */
const INT_PATTERN = /^-?\d{1,78}$/

export function encode(value: unknown): unknown {
  if (typeof value === 'bigint') return { [INT]: value.toString() }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(encode)
  if (value instanceof Map) return { [MAP]: [...value].map(encode) }
  const encoded: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) encoded[key] = encode(item)
  return encoded
}

/** Throws an Error that says what is malformed. */
export function decode(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(decode)
  if (INT in value) return decodeInt(value[INT])
  if (MAP in value) return decodeMap(value[MAP])
  const decoded: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    // As a key of an object literal it would be the prototype.
    if (key === '__proto__') throw new Error('a command has no property __proto__')
    decoded[key] = decode(item)
  }
  return decoded
}

function decodeInt(digits: unknown): bigint {
  if (typeof digits !== 'string' || !INT_PATTERN.test(digits))
    throw new Error(`${INT} has at most 78 decimal digits, received ${JSON.stringify(digits)?.slice(0, 100)}`)
  return BigInt(digits)
}

function decodeMap(pairs: unknown): Map<unknown, unknown> {
  const isMap = Array.isArray(pairs) && pairs.every((pair) => Array.isArray(pair) && pair.length === 2)
  if (!isMap) throw new Error(`${MAP} has pairs of a key and a value`)
  return new Map((pairs as [unknown, unknown][]).map(([key, item]) => [decode(key), decode(item)]))
}
