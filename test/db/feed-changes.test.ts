/** What a row of the feed contains. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { decodeChanges, encodeChanges, type FeedChanges } from '../../db/feed-changes.ts'
import { toJson } from '../../db/json.ts'

const changes = {
  transactions: [{ id: 'a\nb', user_id: 1, amount: 2n ** 200n, available_margin_delta: -5n, asset: null }],
  removedParts: [{ batch_id: 1, part: 2 }],
  fills: [{ fill_id: '1 {"x"}', fee: 0n, realized_pnl: null, available_margin_delta: 7n }],
} as unknown as FeedChanges

const plain = (decoded: FeedChanges) =>
  Object.fromEntries(Object.entries(decoded).map(([name, rows]) => [name, rows]))

describe('the changes in a row of the feed', () => {
  it('when they are written and read, every list and amount is the same', () => {
    expect(plain(decodeChanges(encodeChanges(changes)))).to.deep.equal(changes)
    expect(plain(decodeChanges(encodeChanges({ ...changes, orders: [] })))).to.deep.equal(changes)
    expect(plain(decodeChanges(encodeChanges({})))).to.deep.equal({})
  })

  it('when a list has many rows, the names of its columns are written once', () => {
    const rows = Array.from({ length: 100 }, (_, index) => ({ id: `${index}`, user_id: index }))
    const text = encodeChanges({ removedTransactions: rows })
    expect(text.split('user_id').length - 1).to.equal(1)
    expect(decodeChanges(text).removedTransactions).to.deep.equal(rows)
  })

  it('when rows name their columns in different orders, each value stays in its column', () => {
    const rows = [
      { batch_id: 1, part: 2 },
      { part: 4, batch_id: 3 },
    ]
    expect(decodeChanges(encodeChanges({ removedParts: rows })).removedParts).to.deep.equal(rows)
  })

  it('when one list is read, no other list is parsed', () => {
    const text = encodeChanges(changes).replace('transactions [', 'transactions no JSON [')
    const decoded = decodeChanges(text)
    expect(decoded.removedParts).to.deep.equal(changes.removedParts)
    expect(decoded.fills).to.equal(decoded.fills)
    expect(() => decoded.transactions).to.throw(SyntaxError)
  })

  it('when older versions have written them, they are read as well', () => {
    const lines = Object.entries(changes).map(([name, rows]) => `${name} ${toJson(rows)}`)
    for (const text of [toJson(changes), lines.join('\n')])
      expect(plain(decodeChanges(text))).to.deep.equal(changes)
  })
})
