/**
 * The JSON form of a statement, in both directions: names in snake case, amounts in wei as decimal strings under a name that ends in
 * `_e18_raw`, prices in ticks, quantities in steps.
 */
import { toHex } from '../hex.ts'
import type { Keccak } from '../orders/order-hash.ts'
import type { BatchStatement } from './batch-statement.ts'

const WEI = '_e18_raw'
const toSnake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const toCamel = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

export function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toWire)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([name, field]) =>
    typeof field === 'bigint' ? [`${toSnake(name)}${WEI}`, field.toString()] : [toSnake(name), toWire(field)],
  )
  return Object.fromEntries(fields)
}

/** Of a value of the right shape. */
export function fromWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromWire)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([name, field]) =>
    name.endsWith(WEI)
      ? [toCamel(name.slice(0, -WEI.length)), BigInt(field)]
      : [toCamel(name), fromWire(field)],
  )
  return Object.fromEntries(fields)
}

/** JSON with the fields of each object in alphabetical order. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonical(field)}`).join(',')}}`
}

/** keccak256 of the statement's JSON without spaces, with sorted names. */
export const digestOf = (statement: unknown, keccak: Keccak): string =>
  toHex(keccak(new TextEncoder().encode(canonical(statement))))

export const statementFrom = (wire: unknown): BatchStatement => fromWire(wire) as BatchStatement

/** Where two JSON values differ: at most `most` places, each with both values. */
export function differences(path: string, stated: unknown, computed: unknown, most = 20): string[] {
  if (stated === computed) return []
  if (typeof stated !== 'object' || typeof computed !== 'object' || stated === null || computed === null)
    return [`${path} is ${JSON.stringify(stated)}; by the rules it is ${JSON.stringify(computed)}`]
  const names = new Set([...Object.keys(stated), ...Object.keys(computed)])
  const found: string[] = []
  for (const name of names) {
    const at = Array.isArray(stated) ? `${path}[${name}]` : `${path}.${name}`
    const [a, b] = [stated, computed].map((side) => (side as Record<string, unknown>)[name])
    found.push(...differences(at, a, b, most))
    if (found.length >= most) break
  }
  return found.slice(0, most)
}
