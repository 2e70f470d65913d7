import { expect } from 'chai'
import { describe, it } from 'mocha'
import { checked } from '../../client/batch-result.ts'
import { ClearbatchError } from '../../client/errors.ts'

const accepted = { order_hash: '0x1' }
const refused = {
  error: {
    message: 'the price is outside of the band',
    details: { code: 'PRICE_BAND', field: 'price', outcome: 'not_placed' as const },
  },
}
/** An earlier command may have placed it. */
const inDoubt = { error: { message: 'no', details: { code: 'LEVERAGE_CAP', outcome: 'unknown' as const } } }

describe('client/batch-result', () => {
  it('when every item was accepted, orThrow returns the answer', () => {
    const answer = checked({ accepted: 1, results: [accepted] })
    expect(answer.orThrow()).to.equal(answer)
    expect(JSON.parse(JSON.stringify(answer))).to.deep.equal({ accepted: 1, results: [accepted] })
  })

  it('when an item was refused, orThrow throws its error with its index and the outcome of the other items', () => {
    const error = ((): unknown => {
      try {
        return checked({ results: [accepted, refused, refused] }).orThrow()
      } catch (thrown) {
        return thrown
      }
    })() as ClearbatchError
    expect(error).to.be.instanceOf(ClearbatchError)
    expect([error.code, error.outcome, error.details.index, error.details.accepted]).to.deep.equal([
      'PRICE_BAND',
      'placed',
      1,
      1,
    ])
    expect(error.details.rejected).to.have.length(2)
    expect(error.message).to.include('item 1 of 3 was refused (2 in all): the price')
    expect(() => checked({ results: [refused] }).orThrow())
      .to.throw(ClearbatchError)
      .with.property('outcome', 'not_placed')
    expect(() => checked({ results: [refused, inDoubt] }).orThrow())
      .to.throw(ClearbatchError)
      .with.property('outcome', 'unknown')
  })
})
