/**
 * Converts a statement to JSON and back: snake-case names, wei amounts as decimal strings under names that
 * end in `_e18_raw`.
 * Prices are in ticks, quantities in steps.
 */
import { toHex } from '../hex.ts'
import type { Keccak } from '../orders/order-hash.ts'
import type { BatchStatement } from './batch-statement.ts'

const WEI = '_e18_raw'
const toSnake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const toCamel = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Cache of snake-case names, because names repeat in every order of a batch. */
const snakeNames = new Map<string, string>()

function snakeName(name: string): string {
  let known = snakeNames.get(name)
  if (known === undefined) {
    known = toSnake(name)
    snakeNames.set(name, known)
  }
  return known
}

export function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toWire)
  if (typeof value !== 'object' || value === null) return value
  const wire: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    if (typeof field === 'bigint') wire[snakeName(name) + WEI] = field.toString()
    else wire[snakeName(name)] = toWire(field)
  }
  return wire
}

/** Parses a value that has the right shape. */
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

/** The value with the keys of each object sorted. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const fields = value as Record<string, unknown>
  const copy: Record<string, unknown> = {}
  for (const name of Object.keys(fields).sort()) copy[name] = sorted(fields[name])
  return copy
}

/** keccak256 of the statement's JSON without spaces and with sorted keys. */
export const digestOf = (statement: unknown, keccak: Keccak): string =>
  toHex(keccak(new TextEncoder().encode(JSON.stringify(sorted(statement)))))

export const statementFrom = (wire: unknown): BatchStatement => fromWire(wire) as BatchStatement

/** The first differences between two JSON values, at most `most`, each with both values. */
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
