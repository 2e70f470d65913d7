/**
 * Commands and answers as JSON: an amount is `{"$int": "digits"}`, a map `{"$map": [[key, value], …]}`. No other
 * property of a command begins with `$`.
 */

const INT = '$int'
const MAP = '$map'
/** An amount has at most 78 digits and a sign. */
const INT_PATTERN = /^-?\d{1,78}$/

/** The value itself if it is JSON already: most objects of a command are, and a copy of each would cost more than its text. */
export function encode(value: unknown): unknown {
  if (typeof value === 'bigint') return { [INT]: value.toString() }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return encodeList(value)
  if (value instanceof Map) return { [MAP]: [...value].map(encode) }
  return encodeObject(value as Record<string, unknown>)
}

function encodeList(values: readonly unknown[]): readonly unknown[] {
  const encoded = values.map(encode)
  return encoded.every((item, at) => item === values[at]) ? values : encoded
}

function encodeObject(value: Record<string, unknown>): Record<string, unknown> {
  let encoded = value
  for (const key of Object.keys(value)) {
    const item = value[key]
    const changed = encode(item)
    if (changed === item) continue
    if (encoded === value) encoded = { ...value }
    encoded[key] = changed
  }
  return encoded
}

/** Changes the value, which nothing else may refer to. Throws an Error that says what is malformed. */
export function decode(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) value[at] = decode(value[at])
    return value
  }
  if (INT in value) return decodeInt(value[INT])
  if (MAP in value) return decodeMap(value[MAP])
  return decodeObject(value as Record<string, unknown>)
}

function decodeObject(value: Record<string, unknown>): Record<string, unknown> {
  for (const key of Object.keys(value)) {
    // As a key of an object literal it would be the prototype.
    if (key === '__proto__') throw new Error('a command has no property __proto__')
    const item = value[key]
    if (typeof item === 'object' && item !== null) value[key] = decode(item)
  }
  return value
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
