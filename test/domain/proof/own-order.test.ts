import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { clear } from '../../../domain/auction/auction.ts'
import type { Cleared } from '../../../domain/auction/clearing.ts'
import { placeOf, reachOf } from '../../../domain/proof/own-order.ts'
import { statedSequence } from '../../../domain/proof/statement.ts'
import { statementFrom } from '../../../domain/proof/wire.ts'
import { anyBatch, toInput } from '../support/any-auction.ts'
import { keccak, provenBatch } from '../support/proven.ts'

const anyPair = anyBatch({ minOrders: 5 })
  .map((batch) => ({ batch, clearing: clear(toInput(batch)) }))
  .filter(({ clearing }) => clearing.outcome === 'cleared')

describe('own orders in a proof', () => {
  it('when an order was live with a limit within reach, the statement has it', () => {
    fc.assert(
      fc.property(anyPair, ({ batch, clearing }) => {
        const statement = statementFrom(provenBatch(clearing as Cleared).proof.statement)
        const reach = reachOf(statement)
        expect(reach).to.not.equal(null)
        const stated = new Set(statedSequence(clearing.inputs).map(({ seq }) => seq))
        const { asOf } = clearing.inputs
        for (const { seq, side, type, limit, expiration, leverage } of batch.orders) {
          const isLive =
            (expiration === 0 || expiration * 1000 + 999 >= asOf) && leverage <= batch.spec.maxLeverage
          if (type === 'MARKET' || !isLive || reach === null) continue
          const isWithin = side === 'LONG' ? limit >= reach.LONG : limit <= reach.SHORT
          if (isWithin) expect(stated.has(seq), `order ${seq}`).to.equal(true)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('when an order is looked for with its hash and salt, its place is found; with another salt it is not', () => {
    fc.assert(
      fc.property(anyPair, ({ clearing }) => {
        const { proof } = provenBatch(clearing as Cleared)
        const statement = statementFrom(proof.statement)
        for (const { order, order_hash: orderHash, salt } of proof.parts.flatMap(({ fills }) => fills)) {
          if (orderHash === null || salt === null) continue
          expect(placeOf(statement, { orderHash, salt }, keccak)).to.equal(order)
          const other = `${salt.slice(0, -1)}${salt.endsWith('0') ? '1' : '0'}`
          expect(placeOf(statement, { orderHash, salt: other }, keccak)).to.equal(null)
        }
      }),
      { numRuns: 50 },
    )
  })
})
