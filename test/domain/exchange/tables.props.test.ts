/** Tables of a state: undo, digest and chunks, for any changes. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { Digest } from '../../../domain/exchange/digest.ts'
import { canonicalJson, DocumentTable } from '../../../domain/exchange/document-table.ts'
import { count, optionalCount, optionalText, wei } from '../../../domain/exchange/layout.ts'
import { RecordTable } from '../../../domain/exchange/record-table.ts'
import type { StateCore } from '../../../domain/exchange/table.ts'
import { UndoLog } from '../../../domain/exchange/undo-log.ts'

interface Row {
  readonly a: number
  readonly b: number
  readonly amount: bigint
  readonly maybe: number | null
  readonly text: string | null
}

interface Document {
  readonly key: string
  readonly value: unknown
}

class Tables {
  readonly core: StateCore = { digest: new Digest(), undo: new UndoLog() }
  readonly records = new RecordTable<Row>(
    this.core,
    {
      name: 'records',
      seed: 1,
      fields: {
        a: count<number>(),
        b: count<number>(),
        amount: wei<bigint>(),
        maybe: optionalCount<number>(),
        text: optionalText(20),
      },
      keyOf: ({ a, b }) => [a, b],
    },
    ['a', 'b'],
  )
  readonly documents = new DocumentTable<Document>(this.core, {
    name: 'documents',
    seed: 2,
    keyOf: ({ key }) => key,
  })
  /** What an observer has seen: an index that must follow. */
  readonly seen = new Map<string, bigint>()

  constructor() {
    this.records.observe((before, after) => {
      if (before !== undefined) this.seen.delete(`${before.a}-${before.b}`)
      if (after !== undefined) this.seen.set(`${after.a}-${after.b}`, after.amount)
    })
  }

  content() {
    const records = [...this.records.rows()].sort((x, y) => x.a - y.a || x.b - y.b)
    const documents = [...this.documents.rows()].sort((x, y) => (x.key < y.key ? -1 : 1))
    return { records, documents, seen: new Map([...this.seen].sort()), digest: this.core.digest.bytes() }
  }

  take(change: Change): void {
    if (change.kind === 'put') this.records.put(change.row)
    else if (change.kind === 'remove') this.records.remove(change.a, change.b)
    else if (change.kind === 'document') this.documents.put({ key: change.key, value: change.value })
    else this.documents.remove(change.key)
  }
}

type Change =
  | { readonly kind: 'put'; readonly row: Row }
  | { readonly kind: 'remove'; readonly a: number; readonly b: number }
  | { readonly kind: 'document'; readonly key: string; readonly value: unknown }
  | { readonly kind: 'forget'; readonly key: string }

const key = fc.constantFrom(0, 1, 2, 2 ** 31, 2 ** 40)
const text = fc.string({ unit: 'binary-ascii', maxLength: 20 })
const anyRow: fc.Arbitrary<Row> = fc.record({
  a: key,
  b: key,
  amount: fc.bigInt({ min: -(2n ** 127n), max: 2n ** 127n - 1n }),
  maybe: fc.option(fc.nat()),
  text: fc.option(text),
})
const anyChange: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), row: anyRow }),
  fc.record({ kind: fc.constant('remove' as const), a: key, b: key }),
  fc.record({ kind: fc.constant('document' as const), key: text, value: fc.jsonValue() }),
  fc.record({ kind: fc.constant('forget' as const), key: text }),
)
const changes = fc.array(anyChange, { maxLength: 40 })

describe('the tables of a state', () => {
  it('when changes are rolled back to a mark, rows, indexes and digest equal the state at the mark', () => {
    fc.assert(
      fc.property(changes, changes, (first, second) => {
        const tables = new Tables()
        for (const change of first) tables.take(change)
        const before = tables.content()
        const { mark } = tables.core.undo
        for (const change of second) tables.take(change)
        tables.core.undo.undoTo(mark)
        expect(tables.content()).to.deep.equal(before)
      }),
    )
  })

  it('when equal rows were written in another history, their digest is equal', () => {
    fc.assert(
      fc.property(changes, fc.infiniteStream(fc.nat()), (taken, order) => {
        const tables = new Tables()
        for (const change of taken) tables.take(change)
        const { records, documents, digest } = tables.content()
        const other = new Tables()
        const rows = records.map((row) => ({ row, place: order.next().value as number }))
        for (const document of documents.toReversed()) other.documents.put(document)
        for (const { row } of rows.sort((x, y) => x.place - y.place)) other.records.put(row)
        expect(other.content().digest).to.deep.equal(digest)
      }),
    )
  })

  it('when one field of one row differs, the digest differs', () => {
    fc.assert(
      fc.property(anyRow, anyRow, (one, other) => {
        const digests = [one, other].map((row) => {
          const tables = new Tables()
          tables.records.put(row)
          return tables.content().digest
        })
        const isSame = JSON.stringify(digests[0]) === JSON.stringify(digests[1])
        const text = (row: Row) => canonicalJson({ ...row, amount: row.amount.toString() })
        expect(isSame).to.equal(text(one) === text(other))
      }),
    )
  })

  it('when all chunks are loaded into empty tables, they have the same rows and digest', () => {
    fc.assert(
      fc.property(changes, (taken) => {
        const tables = new Tables()
        for (const change of taken) tables.take(change)
        const loaded = new Tables()
        for (const chunk of tables.records.chunks()) loaded.records.loadChunk(chunk)
        for (const chunk of tables.documents.chunks()) loaded.documents.loadChunk(chunk)
        expect(loaded.content()).to.deep.equal(tables.content())
      }),
    )
  })

  it('when loaded rows change further, the tables equal those that were never stored', () => {
    fc.assert(
      fc.property(changes, changes, (taken, further) => {
        const tables = new Tables()
        for (const change of taken) tables.take(change)
        const loaded = new Tables()
        for (const chunk of tables.records.chunks()) loaded.records.loadChunk(chunk)
        for (const chunk of tables.documents.chunks()) loaded.documents.loadChunk(chunk)
        for (const change of further) for (const one of [tables, loaded]) one.take(change)
        expect(loaded.content()).to.deep.equal(tables.content())
      }),
    )
  })

  it('when a row does not fit its layout, it is rejected and nothing has changed', () => {
    const tables = new Tables()
    const row: Row = { a: 1, b: 2, amount: 3n, maybe: null, text: 'kept' }
    tables.records.put(row)
    const before = tables.content()
    const invalid: readonly Row[] = [
      { ...row, amount: 2n ** 127n },
      { ...row, text: 'x'.repeat(21) },
      { ...row, text: 'é' },
      { ...row, maybe: -1 },
      { ...row, b: 7, amount: -(2n ** 127n) - 1n },
    ]
    for (const wrong of invalid) expect(() => tables.records.put(wrong)).to.throw('invariant')
    expect(tables.content()).to.deep.equal(before)
  })
})
