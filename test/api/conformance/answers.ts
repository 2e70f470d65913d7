/** Checks that an answer has the fields and types of the contract. */
import { expect } from 'chai'
import { EXACTLY, FIELDS, type FieldType } from './contract.ts'

type Json = Readonly<Record<string, unknown>>

/** Every object of an answer with its path. */
function* objectsIn(value: unknown, at = 'answer'): Generator<readonly [string, Json]> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* objectsIn(item, `${at}[${index}]`)
  } else if (typeof value === 'object' && value !== null) {
    yield [at, value as Json]
    for (const [name, item] of Object.entries(value)) yield* objectsIn(item, `${at}.${name}`)
  }
}

const toNumber = (raw: string): number => {
  const digits = raw.replace('-', '').padStart(19, '0')
  return Number(`${raw.startsWith('-') ? '-' : ''}${digits.slice(0, -18)}.${digits.slice(-18)}`)
}

/** Raw amounts are exact integers as strings, and the number of the same name is equal to them. */
export function expectAmountsAgree(body: unknown): void {
  for (const [at, object] of objectsIn(body)) {
    for (const [name, raw] of Object.entries(object)) {
      if (!name.endsWith('_e18_raw')) continue
      const place = `${at}.${name}`
      const human = object[name.replace('_e18_raw', '')]
      if (raw === null) {
        expect(human, place).to.equal(null)
        continue
      }
      expect(raw, place).to.match(/^-?\d+$/)
      expect(human, place).to.equal(toNumber(raw as string))
    }
  }
}

function expectType(value: unknown, type: FieldType, place: string): void {
  if (Array.isArray(type)) expect(type, place).to.include(value)
  else if (type === 'integer') expect(Number.isSafeInteger(value), `${place}: ${value}`).to.equal(true)
  else if (type === 'amount') expect(value, place).to.be.a('number')
  else expect(value, place).to.be.a(type as string)
}

/** The object has the field with the type of the table. */
export function expectField(name: string, object: Json, field: string): void {
  const type = FIELDS[name]?.[field] as FieldType
  const place = `${name}.${field}`
  expect(object, place).to.have.property(field)
  expectType(object[field], type, place)
  if (type === 'amount') expect(object[`${field}_e18_raw`], place).to.match(/^-?\d+$/)
}

/** The object has all fields of the table, and no others if the contract is exact. */
export function expectObject(name: string, object: Json): void {
  const fields = Object.entries(FIELDS[name] ?? {})
  for (const [field] of fields) expectField(name, object, field)
  if (!EXACTLY.includes(name)) return
  const all = fields.flatMap(([field, type]) => (type === 'amount' ? [field, `${field}_e18_raw`] : [field]))
  expect(Object.keys(object)).to.have.members(all)
}
