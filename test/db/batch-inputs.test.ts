import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { packInputs, unpackInputs } from '../../db/batch-inputs.ts'
import { toJson } from '../../db/json.ts'
import { clear } from '../../domain/auction/auction.ts'
import { anyBatch, toInput } from '../domain/support/any-auction.ts'
import { bigBatch } from '../domain/support/big-batch.ts'

describe('the stored inputs of a batch', () => {
  it('when any inputs are packed and unpacked, they are the same', () => {
    fc.assert(
      fc.property(anyBatch({ minOrders: 5 }), (batch) => {
        const { inputs } = clear(toInput(batch))
        expect(unpackInputs(packInputs(inputs))).to.deep.equal(inputs)
      }),
    )
  })

  it('when inputs were stored as JSON by an earlier version, they are read', () => {
    const { inputs } = clear(toInput(bigBatch({ seed: 1, orders: 50, accounts: 20, holders: 30 })))
    expect(unpackInputs(Buffer.from(toJson(inputs)))).to.deep.equal(inputs)
  })

  it('when inputs have a thousand orders, they take less than 20 bytes each', () => {
    const { inputs } = clear(toInput(bigBatch({ seed: 7, orders: 1_000, accounts: 1_000, holders: 20 })))
    expect(packInputs(inputs).length).to.be.below(20_000)
  })
})
