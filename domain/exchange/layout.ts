/**
 * Fixed-width layouts: how an object is written to and read from a byte record.
 * Equal objects have equal bytes on every machine, so digests are computed from the bytes.
 */
import { hexAt, writeHexAt } from '../hex.ts'
import { InvariantError, invariant, violated } from '../invariant.ts'
import { aligned } from './digest.ts'

/** One field: its width in bytes, and its encoding in a record. */
export interface Field<Value> {
  readonly width: number
  write(view: DataView, at: number, value: Value): void
  read(view: DataView, at: number): Value
}

const isCount = (value: number): boolean => Number.isSafeInteger(value)

const safeInteger: Field<number> = {
  width: 8,
  write(view, at, value) {
    if (!isCount(value)) throw violated(`a count is a safe integer, received ${value}`)
    // Adding 0 turns minus zero into zero, which has other bytes.
    view.setFloat64(at, value + 0, true)
  },
  read: (view, at) => view.getFloat64(at, true),
}

/** A safe integer. */
export const count = <Count extends number>(): Field<Count> => safeInteger as Field<number> as Field<Count>

const optionalInteger: Field<number | null> = {
  width: 8,
  write(view, at, value) {
    if (value !== null && !(value >= 0))
      throw violated(`an optional count is not negative, received ${value}`)
    safeInteger.write(view, at, value ?? -1)
  },
  read(view, at) {
    const value = view.getFloat64(at, true)
    return value < 0 ? null : value
  },
}

/** A safe integer that is not negative, or null. */
export const optionalCount = <Count extends number>(): Field<Count | null> =>
  optionalInteger as Field<number | null> as Field<Count | null>

const word: Field<number> = {
  width: 4,
  write(view, at, value) {
    if (value >>> 0 !== value) throw violated(`a small count has 32 bits, received ${value}`)
    view.setUint32(at, value, true)
  },
  read: (view, at) => view.getUint32(at, true),
}

/** An integer from 0 to 2^32 - 1. */
export const small = <Count extends number>(): Field<Count> => word as Field<number> as Field<Count>

export const flag: Field<boolean> = {
  width: 1,
  write: (view, at, value) => view.setUint8(at, value ? 1 : 0),
  read: (view, at) => view.getUint8(at) === 1,
}

const HALF = 64n
const WEI_END = 1n << 127n

const amount: Field<bigint> = {
  width: 16,
  write(view, at, value) {
    invariant(-WEI_END <= value && value < WEI_END, 'an amount has at most 127 bits and a sign')
    view.setBigInt64(at, value, true)
    view.setBigInt64(at + 8, value >> HALF, true)
  },
  read(view, at) {
    const low = view.getBigUint64(at, true)
    const high = view.getBigInt64(at + 8, true)
    return high === 0n ? low : (high << HALF) | low
  },
}

/** A signed amount of up to 127 bits. */
export const wei = <Amount extends bigint>(): Field<Amount> => amount as Field<bigint> as Field<Amount>

/** A value of a closed list. */
export function oneOf<const Value extends string>(values: readonly Value[]): Field<Value> {
  const indexes = new Map<string, number>(values.map((value, at) => [value, at]))
  return {
    width: 1,
    write(view, at, value) {
      const index = indexes.get(value)
      if (index === undefined) throw new InvariantError(`${value} is none of ${values.join(', ')}`)
      view.setUint8(at, index)
    },
    read: (view, at) => values[view.getUint8(at)] as Value,
  }
}

/** A value of a closed list, or null. */
export function optionalOf<const Value extends string>(values: readonly Value[]): Field<Value | null> {
  const one = oneOf(values)
  return {
    width: 1,
    write(view, at, value) {
      if (value === null) view.setUint8(at, 0xff)
      else one.write(view, at, value)
    },
    read: (view, at) => (view.getUint8(at) === 0xff ? null : one.read(view, at)),
  }
}

function clear(view: DataView, at: number, bytes: number): void {
  for (let place = at; place < at + bytes; place++) view.setUint8(place, 0)
}

/** Hex text of exactly this many bytes. */
export const hex = <Text extends string>(width: number): Field<Text> => ({
  width,
  write(view, at, value) {
    const isWhole = value.length === 2 + 2 * width && value.startsWith('0x')
    if (!isWhole || !writeHexAt(value, view, at))
      throw new InvariantError(`hex text of ${width} bytes is needed, received ${value}`)
  },
  read: (view, at) => hexAt(view, at, width) as string as Text,
})

/** Hex text of exactly this many bytes, or null. */
export function optionalHex<Text extends string>(width: number): Field<Text | null> {
  const bytes = hex<Text>(width)
  return {
    width: width + 1,
    write(view, at, value) {
      view.setUint8(at, value === null ? 0 : 1)
      if (value === null) clear(view, at + 1, width)
      else bytes.write(view, at + 1, value)
    },
    read: (view, at) => (view.getUint8(at) === 0 ? null : bytes.read(view, at + 1)),
  }
}

/** Text of printable ASCII characters up to this length, or null. */
export const optionalText = (longest: number): Field<string | null> => ({
  width: longest + 1,
  write(view, at, value) {
    clear(view, at, longest + 1)
    if (value === null) return
    if (value.length > longest)
      throw violated(`a text has at most ${longest} characters, received ${value.length}`)
    view.setUint8(at, value.length + 1)
    for (let place = 0; place < value.length; place++) {
      const code = value.charCodeAt(place)
      invariant(code < 128, 'a text is ASCII')
      view.setUint8(at + 1 + place, code)
    }
  },
  read(view, at) {
    const length = view.getUint8(at)
    if (length === 0) return null
    let text = ''
    for (let place = 1; place < length; place++) text += String.fromCharCode(view.getUint8(at + place))
    return text
  },
})

export type Fields<Row> = { readonly [Name in keyof Row]: Field<Row[Name]> }

/** How a whole row is written to and read from its record. */
interface Codec<Row> {
  write(view: DataView, at: number, row: Row): void
  read(view: DataView, at: number): Row
}

/** Offsets of a row's fields in its record. */
export class Layout<Row extends object> {
  /** Record length in bytes, padded. */
  readonly width: number
  /** Writes every byte of the row's fields. */
  readonly write: Codec<Row>['write']
  readonly read: Codec<Row>['read']
  readonly #places: ReadonlyMap<string, number>
  readonly #Lazy: new (
    record: DataView,
    start: number,
  ) => object

  constructor(fields: Fields<Row>) {
    const places = new Map<string, number>()
    let at = 0
    for (const name of Object.keys(fields) as (keyof Row & string)[]) {
      places.set(name, at)
      at += fields[name].width
    }
    this.width = aligned(at)
    this.#places = places
    const { write, read } = compiled<Row>(fields, places)
    this.write = write
    this.read = read
    this.#Lazy = lazyRows(fields, (name) => this.placeOf(name))
  }

  /** A row that decodes a field each time it is read, until the record changes. The fields are not its own: a spread copies none. */
  lazy(view: DataView, at: number): Row {
    return new this.#Lazy(view, at) as Row
  }

  /** Offset of a field in the record. */
  placeOf(name: keyof Row & string): number {
    const place = this.#places.get(name)
    invariant(place !== undefined, `the layout has no field ${name}`)
    return place as number
  }
}

/**
 * Functions that name each field, compiled from text: loops over computed names take ten times as long, because the
 * engine of JavaScript then knows neither the fields' types nor the shape of a row.
 */
function compiled<Row extends object>(fields: Fields<Row>, places: ReadonlyMap<string, number>): Codec<Row> {
  const list = [...places].map(([name, place], index) => {
    invariant(/^[a-z_]\w*$/i.test(name), `${name} is the name of a field`)
    return { name, codec: `field${index}`, at: `at + ${place}` }
  })
  const writes = list.map(({ name, codec, at }) => `${codec}.write(view, ${at}, row.${name})`)
  const reads = list.map(({ name, codec, at }) => `${name}: ${codec}.read(view, ${at})`)
  const compile = new Function(
    ...list.map(({ codec }) => codec),
    `return {
      write(view, at, row) { ${writes.join('; ')} },
      read(view, at) { return { ${reads.join(', ')} } },
    }`,
  )
  return compile(...list.map(({ name }) => fields[name as keyof Row])) as Codec<Row>
}

function lazyRows<Row extends object>(
  fields: Fields<Row>,
  placeOf: (name: keyof Row & string) => number,
): new (
  record: DataView,
  start: number,
) => object {
  class LazyRow {
    readonly record: DataView
    readonly start: number

    constructor(record: DataView, start: number) {
      this.record = record
      this.start = start
    }
  }
  for (const name of Object.keys(fields) as (keyof Row & string)[]) {
    const { read } = fields[name]
    const place = placeOf(name)
    Object.defineProperty(LazyRow.prototype, name, {
      get(this: LazyRow) {
        return read(this.record, this.start + place)
      },
    })
  }
  return LazyRow
}
