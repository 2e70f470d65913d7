import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { afterFirstBatch, beforeLastBatch } from '../../../indexer/project/batch-bounds.ts'

/** p: placed, x: an order that is replaced and settles, y: an order that is replaced, c: batch cleared and o: orders protected as of 2, r: reservation changed, digits: an order ended at that time. */
const rowsOf = (text: string): JournalRow[] =>
  [...text].map((letter) => {
    if (letter === 'x' || letter === 'y')
      return {
        kind: letter === 'x' ? 'order_ending' : 'order_ended',
        reason: 'REPLACED',
        at: 2,
      } as JournalRow
    const kinds = { p: 'order_placed', c: 'batch_cleared', o: 'orders_protected', r: 'reservation_changed' }
    const kind = kinds[letter as keyof typeof kinds]
    return (
      kind === undefined ? { kind: 'order_ended', at: Number(letter) } : { kind, as_of: 2 }
    ) as JournalRow
  })

describe('where a chunk ends', () => {
  const cases: [string, number, string][] = [
    ['ppp', 3, 'no batch'],
    ['ppo', 2, 'protections whose batch follows'],
    ['ppoc', 2, 'a batch of which more may follow'],
    ['pp22oc2r2', 2, 'a batch with orders that time has ended'],
    ['pp1211', 4, 'ended orders of one transaction, whose batch may follow'],
    ['p2oc2p', 6, 'a batch that is complete'],
    ['oc1oc1', 3, 'the second of two batches'],
    ['oc11', 0, 'a batch that began with the chunk'],
    ['pr', 2, 'a reservation without a batch'],
    ['pxpx', 3, 'a replaced order that settles, whose replacement follows'],
    ['pypy', 3, 'a replaced order, whose replacement follows'],
  ]
  for (const [text, expected, what] of cases)
    it(`when the rows end with ${what}, the chunk ends before row ${expected} of ${text.length}`, () => {
      expect(beforeLastBatch(rowsOf(text))).to.equal(expected)
    })

  it('when a batch is larger than a chunk, it ends before the first row that is not its own', () => {
    expect(afterFirstBatch(rowsOf('11oc1r1pp'))).to.equal(7)
    expect(afterFirstBatch(rowsOf('oc1roc1'))).to.equal(4)
    expect(afterFirstBatch(rowsOf('oc1r'))).to.equal(4)
  })
})
