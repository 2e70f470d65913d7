/** What a row of the feed contains. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { decodeChanges, encodeChanges, type FeedChanges } from '../../db/feed-changes.ts'

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

  it('when one list is read, the others are not parsed', () => {
    const text = encodeChanges(changes).replace('transactions [', 'transactions no JSON [')
    const decoded = decodeChanges(text)
    expect(decoded.removedParts).to.deep.equal(changes.removedParts)
    expect(decoded.fills).to.equal(decoded.fills)
    expect(() => decoded.transactions).to.throw(SyntaxError)
  })

  it('when the version before has written them, they are read as well', () => {
    const text = JSON.stringify(changes, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    expect(plain(decodeChanges(text))).to.deep.equal(changes)
  })
})
