/**
 * A table of fixed-width records in byte pages outside the garbage-collected heap.
 * A row is decoded on read and encoded on write. The same bytes are hashed for the digest and written to checkpoints.
 */
import { invariant, violated } from '../invariant.ts'
import { type Fields, Layout } from './layout.ts'
import { hashOfCounts, SlotIndex } from './slot-index.ts'
import { CHUNK_BYTES, type SlotObserver, type StateCore, type Table } from './table.ts'

/** Approximate bytes per page. */
const PAGE_BYTES = 1 << 20

interface Page {
  readonly bytes: Uint8Array
  readonly words: Int32Array
  readonly view: DataView
  /** 1: the slot has a record. */
  readonly used: Uint8Array
}

interface KeyField {
  readonly place: number
  read(view: DataView, at: number): number
}

export interface RecordTableOptions<Row extends object> {
  readonly name: string
  /** Seed that is unique among the tables of a state. */
  readonly seed: number
  readonly fields: Fields<Row>
  readonly keyOf: (row: Row) => readonly number[]
}

export class RecordTable<Row extends object> implements Table {
  readonly name: string
  readonly #core: StateCore
  readonly #seed: number
  readonly #layout: Layout<Row>
  readonly #keyOf: (row: Row) => readonly number[]
  /** log2 of the records per page: the high bits of a slot are its page. */
  readonly #shift: number
  readonly #mask: number
  readonly #pages: Page[] = []
  readonly #free: number[] = []
  readonly #index = new SlotIndex()
  readonly #fields: Fields<Row>
  readonly #observers: SlotObserver<Row>[] = []
  readonly #keys: readonly KeyField[]
  /** Compares the key in a slot with the sought key. */
  readonly #isSought: (slot: number) => boolean
  #sought: readonly number[] = []
  /** The last row read or written, because a change reads its row first. */
  #last: { readonly slot: number; readonly row: Row } | null = null
  #end = 0
  #size = 0

  /** `keys`: the key fields, in the order of `keyOf`. */
  constructor(core: StateCore, options: RecordTableOptions<Row>, keys: readonly (keyof Row & string)[]) {
    this.#core = core
    this.name = options.name
    this.#seed = options.seed
    this.#layout = new Layout(options.fields)
    this.#keyOf = options.keyOf
    this.#fields = options.fields
    this.#shift = Math.max(0, Math.floor(Math.log2(PAGE_BYTES / this.#layout.width)))
    this.#mask = (1 << this.#shift) - 1
    this.#keys = keys.map((name) => ({
      read: options.fields[name].read as (view: DataView, at: number) => number,
      place: this.#layout.placeOf(name),
    }))
    this.#isSought = (slot) => {
      const { view } = this.#pageOf(slot)
      const at = this.#offsetOf(slot)
      for (let index = 0; index < this.#keys.length; index++) {
        const { read, place } = this.#keys[index] as KeyField
        if (read(view, at + place) !== this.#sought[index]) return false
      }
      return true
    }
  }

  get size(): number {
    return this.#size
  }

  /** Total bytes of all pages. */
  get bytes(): number {
    return this.#pages.reduce((sum, { bytes, used }) => sum + bytes.length + used.length, 0)
  }

  observe(observer: SlotObserver<Row>): void {
    this.#observers.push(observer)
  }

  has(...key: readonly number[]): boolean {
    return this.#find(key) >= 0
  }

  get(...key: readonly number[]): Row | undefined {
    const slot = this.#find(key)
    return slot < 0 ? undefined : this.#read(slot)
  }

  /** Returns the row. The row must exist. */
  need(...key: readonly number[]): Row {
    const row = this.get(...key)
    if (row === undefined) throw violated(`${this.name} has a row with the key ${key.join(', ')}`)
    return row
  }

  /** Row in a slot that an index received from `observe`. */
  at(slot: number): Row {
    return this.#read(slot)
  }

  /** Creates a reader of one field by slot, so that indexes compare the field without decoding the row. */
  reader<Name extends keyof Row & string>(name: Name): (slot: number) => Row[Name] {
    const { read } = this.#fields[name]
    const place = this.#layout.placeOf(name)
    return (slot) => read(this.#pageOf(slot).view, this.#offsetOf(slot) + place)
  }

  /** Creates a reader of the four bytes of a field that begin at `from`, most significant first, so that indexes hash hex text undecoded. */
  wordReader(name: keyof Row & string, from: number): (slot: number) => number {
    const place = this.#layout.placeOf(name) + from
    return (slot) => this.#pageOf(slot).view.getUint32(this.#offsetOf(slot) + place)
  }

  /** Inserts the row, or replaces the row with the same key. */
  put(row: Row): void {
    const key = this.#keyOf(row)
    const found = this.#find(key)
    if (found < 0) this.#insert(key, row)
    else this.#replace(found, row)
  }

  remove(...key: readonly number[]): void {
    const slot = this.#find(key)
    if (slot < 0) return
    const before = this.#read(slot)
    this.#hash(slot, 'subtract')
    this.#index.remove(hashOfCounts(key), slot)
    const page = this.#pageOf(slot)
    const at = this.#offsetOf(slot)
    page.bytes.fill(0, at, at + this.#layout.width)
    page.used[slot & this.#mask] = 0
    this.#last = null
    this.#free.push(slot)
    this.#size--
    this.#core.undo.push(() => this.put(before))
    for (const observer of this.#observers) observer(before, undefined, slot)
  }

  /** Returns all rows, in no particular order. */
  *rows(): IterableIterator<Row> {
    for (let slot = 0; slot < this.#end; slot++) {
      if (this.#pageOf(slot).used[slot & this.#mask] === 1) yield this.#read(slot)
    }
  }

  *chunks(): IterableIterator<Uint8Array> {
    const { width } = this.#layout
    const most = Math.max(1, Math.floor(CHUNK_BYTES / width))
    let chunk = new Uint8Array(most * width)
    let records = 0
    for (let slot = 0; slot < this.#end; slot++) {
      const page = this.#pageOf(slot)
      if (page.used[slot & this.#mask] !== 1) continue
      const at = this.#offsetOf(slot)
      chunk.set(page.bytes.subarray(at, at + width), records * width)
      records++
      if (records < most) continue
      yield chunk
      chunk = new Uint8Array(most * width)
      records = 0
    }
    if (records > 0) yield chunk.subarray(0, records * width)
  }

  loadChunk(bytes: Uint8Array): void {
    const { width } = this.#layout
    invariant(bytes.length % width === 0, `a chunk of ${this.name} has whole records of ${width} bytes`)
    for (let from = 0; from < bytes.length; ) {
      const first = this.#extend()
      const records = Math.min((bytes.length - from) / width, this.#mask + 1 - (first & this.#mask))
      this.#pageOf(first).bytes.set(bytes.subarray(from, from + records * width), this.#offsetOf(first))
      this.#end = first + records
      for (let slot = first; slot < this.#end; slot++) this.#load(slot)
      from += records * width
    }
  }

  /** Adds a copied record, undecoded. Its key must be new; the state's digest finds a record that is damaged or occurs twice. */
  #load(slot: number): void {
    const { view, used } = this.#pageOf(slot)
    const at = this.#offsetOf(slot)
    used[slot & this.#mask] = 1
    this.#size++
    this.#index.add(this.#hashOfKey(view, at), slot)
    this.#hash(slot, 'add')
    if (this.#observers.length === 0) return
    const row = this.#layout.lazy(view, at)
    for (const observer of this.#observers) observer(undefined, row, slot)
  }

  #hashOfKey(view: DataView, at: number): number {
    return hashOfCounts(this.#keys.map(({ read, place }) => read(view, at + place)))
  }

  #insert(key: readonly number[], row: Row): void {
    const slot = this.#free.pop() ?? this.#extend()
    const page = this.#pageOf(slot)
    const at = this.#offsetOf(slot)
    try {
      this.#layout.write(page.view, at, row)
    } catch (error) {
      page.bytes.fill(0, at, at + this.#layout.width)
      this.#free.push(slot)
      throw error
    }
    page.used[slot & this.#mask] = 1
    this.#last = { slot, row }
    this.#size++
    this.#index.add(hashOfCounts(key), slot)
    this.#hash(slot, 'add')
    this.#core.undo.push(() => this.remove(...key))
    for (const observer of this.#observers) observer(undefined, row, slot)
  }

  #replace(slot: number, row: Row): void {
    const page = this.#pageOf(slot)
    const at = this.#offsetOf(slot)
    const before = this.#read(slot)
    this.#hash(slot, 'subtract')
    try {
      this.#layout.write(page.view, at, row)
    } catch (error) {
      this.#layout.write(page.view, at, before)
      this.#hash(slot, 'add')
      throw error
    }
    this.#hash(slot, 'add')
    this.#last = { slot, row }
    this.#core.undo.push(() => this.put(before))
    for (const observer of this.#observers) observer(before, row, slot)
  }

  #hash(slot: number, how: 'add' | 'subtract'): void {
    const { width } = this.#layout
    this.#core.digest[how](this.#pageOf(slot).words, this.#offsetOf(slot) >>> 2, width >>> 2, this.#seed)
  }

  #read(slot: number): Row {
    if (this.#last?.slot === slot) return this.#last.row
    const row = this.#layout.read(this.#pageOf(slot).view, this.#offsetOf(slot))
    this.#last = { slot, row }
    return row
  }

  #find(key: readonly number[]): number {
    this.#sought = key
    return this.#index.find(hashOfCounts(key), this.#isSought)
  }

  #pageOf(slot: number): Page {
    return this.#pages[slot >>> this.#shift] as Page
  }

  #offsetOf(slot: number): number {
    return (slot & this.#mask) * this.#layout.width
  }

  #extend(): number {
    if (this.#end === this.#pages.length << this.#shift) this.#pages.push(this.#newPage())
    return this.#end++
  }

  #newPage(): Page {
    const records = 1 << this.#shift
    const bytes = new Uint8Array(records * this.#layout.width)
    return {
      bytes,
      words: new Int32Array(bytes.buffer),
      view: new DataView(bytes.buffer),
      used: new Uint8Array(records),
    }
  }
}
