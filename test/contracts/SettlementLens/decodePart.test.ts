import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import { SettlementLens__factory } from '../../../typechain-types/factories/SettlementLens__factory.ts'
import {
  addressOf,
  buildPart,
  chain,
  fieldsOf,
  pair,
  perpetualExchange,
  signedFills,
} from '../../support/exchange.ts'

describe('decodePart', () => {
  it('returns the encoded header, orders and proof as structs', async () => {
    const exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const [alice, bob] = exchange.users
    const fills = [
      ...pair(alice!, bob!, 1000, { quantity: 3000, slot: 7, leverage: 3 }),
      ...pair(bob!, alice!, 5, { type: 'STOP_LIMIT', trigger: 11, reduceOnly: true, expiration: 0 }),
    ]
    const part = await buildPart(exchange, { price: 500_000, batchId: 9, parts: 2, fills })
    const lens = await new SettlementLens__factory(exchange.admin).deploy()
    const [header, orders, proof] = await lens.decodePart(encodeSettleBatch(part, exchange.spec))

    expect(fieldsOf(header)).to.deep.equal({
      actionId: 1n,
      batchId: 9n,
      asOf: BigInt(part.asOf),
      part: 1n,
      parts: 2n,
      orders: 4n,
      proofLength: 130n,
      price: 500_000n,
      makerFee: 100n,
      takerFee: 500n,
      oraclePrice: part.oracle.price,
      observedAt: BigInt(part.oracle.observedAt),
    })
    expect(proof).to.equal(part.oracle.signatures)
    for (const [index, { order, fill, taker, partialSlot }] of signedFills(part).entries()) {
      const read = fieldsOf(orders[index]!)
      expect(read.maker.toLowerCase()).to.equal(addressOf({ address: order.maker }))
      expect([read.salt, read.buy, read.reduceOnly]).to.deep.equal([
        order.salt,
        order.side === 'LONG',
        order.reduceOnly,
      ])
      const numbers = [
        read.quantity,
        read.price,
        read.trigger,
        read.leverage,
        read.expiration,
        read.fill,
        read.taker,
        read.slot,
      ]
      const given = [
        order.quantity,
        order.price,
        order.trigger,
        order.leverage,
        order.expiration,
        fill,
        taker,
        partialSlot ?? 1023,
      ]
      expect(numbers.map(Number)).to.deep.equal(given)
      expect(`${read.r}${read.s.slice(2)}${read.v.toString(16)}01`).to.equal(order.signature)
    }
  })
})
