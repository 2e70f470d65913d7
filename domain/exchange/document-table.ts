/** A table of immutable JSON objects by text key, for rows that are few or have no fixed width. */
import { violated } from '../invariant.ts'
import { aligned } from './digest.ts'
import { PartedMap } from './parted-map.ts'
import { CHUNK_BYTES, type Observer, type StateCore, type Table } from './table.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
let scratch = new Uint8Array(1 << 16)

/** JSON with sorted keys and without absent values: equal objects have equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    const entries = Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(entries)
  })
}

/** Bytes of the text, zero-padded, in a shared buffer. */
function encoded(text: string): { readonly words: Int32Array; readonly length: number } {
  if (scratch.length < aligned(text.length * 3)) scratch = new Uint8Array(aligned(text.length * 6))
  const { written } = encoder.encodeInto(text, scratch)
  const width = aligned(written)
  scratch.fill(0, written, width)
  return { words: new Int32Array(scratch.buffer, 0, width / 4), length: width / 4 }
}

export interface DocumentTableOptions<Row extends object> {
  readonly name: string
  /** Seed that is unique among the tables of a state. */
  readonly seed: number
  readonly keyOf: (row: Row) => string
}

export class DocumentTable<Row extends object> implements Table {
  readonly name: string
  readonly #core: StateCore
  readonly #seed: number
  readonly #keyOf: (row: Row) => string
  readonly #rows = new PartedMap<Row>()
  readonly #observers: Observer<Row>[] = []

  constructor(core: StateCore, { name, seed, keyOf }: DocumentTableOptions<Row>) {
    this.#core = core
    this.name = name
    this.#seed = seed
    this.#keyOf = keyOf
  }

  get size(): number {
    return this.#rows.size
  }

  observe(observer: Observer<Row>): void {
    this.#observers.push(observer)
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key)
  }

  /** Returns the row. The row must exist. */
  need(key: string): Row {
    const row = this.get(key)
    if (row === undefined) throw violated(`${this.name} has a row with the key ${key}`)
    return row
  }

  /**
   * Inserts the row, or replaces the row with the same key. The caller must not change the row afterwards.
   */
  put(row: Row): void {
    this.#change(this.#keyOf(row), row)
  }

  remove(key: string): void {
    this.#change(key, undefined)
  }

  /** Returns all rows, in no particular order. */
  rows(): IterableIterator<Row> {
    return this.#rows.values()
  }

  /** Encodes one row per line. */
  *chunks(): IterableIterator<Uint8Array> {
    let lines: string[] = []
    let characters = 0
    for (const row of this.rows()) {
      const line = canonicalJson(row)
      lines.push(line)
      characters += line.length
      if (characters < CHUNK_BYTES) continue
      yield encoder.encode(lines.join('\n'))
      lines = []
      characters = 0
    }
    if (lines.length > 0) yield encoder.encode(lines.join('\n'))
  }

  loadChunk(bytes: Uint8Array): void {
    for (const line of decoder.decode(bytes).split('\n')) this.put(JSON.parse(line) as Row)
  }

  #change(key: string, after: Row | undefined): void {
    const before = this.#rows.get(key)
    if (before === undefined && after === undefined) return
    if (before !== undefined) this.#hash(before, 'subtract')
    if (after !== undefined) this.#hash(after, 'add')
    if (after === undefined) this.#rows.delete(key)
    else this.#rows.set(key, after)
    this.#core.undo.push(() => this.#change(key, before))
    for (const observer of this.#observers) observer(before, after)
  }

  #hash(row: Row, how: 'add' | 'subtract'): void {
    const { words, length } = encoded(canonicalJson(row))
    this.#core.digest[how](words, 0, length, this.#seed)
  }
}
