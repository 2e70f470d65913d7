/** The part that docs/audit/encoding.md shows in hex, in the market `perpetual` of the tests. */
import { getBytes, TypedDataEncoder } from 'ethers'
import type { SettlementPart } from '../../../domain/settlement/settlement.ts'
import type { Address, Millis, Price, Rate, Steps, Ticks } from '../../../domain/units.ts'
import { feedIdOf } from '../../../stack/deploy.ts'
import { orderOf, signOrder, wallet } from '../../support/exchange.ts'
import { e18, perpetual } from '../../support/markets.ts'

/** Alice buys 1,000 steps of 3,000 with a limit, from bob's market order; one signer proves the oracle price. */
export function examplePart(): SettlementPart {
  const asOf = 1_900_000_000_000 as Millis
  const price = 500_000
  const oraclePrice = e18('50010') as Price
  const fillOf = (name: string, given: Partial<Parameters<typeof orderOf>[0]>, taker: number) => {
    const by = wallet(name)
    const order = orderOf(
      { by, side: 'LONG', fill: 1_000, expiration: 1_900_000_060, ...given },
      price,
      perpetual,
    )
    return { order: signOrder(order, perpetual, by), fill: 1_000 as Steps, taker: taker as Steps }
  }
  return {
    marketId: perpetual.marketId,
    actionId: 7,
    batchId: 3,
    part: 1,
    parts: 1,
    asOf,
    price: price as Ticks,
    makerFee: e18('0.0001') as Rate,
    takerFee: e18('0.0005') as Rate,
    oracle: { price: oraclePrice, observedAt: asOf, signatures: proofOf(oraclePrice, asOf) },
    fills: [
      { ...fillOf('alice', { quantity: 3_000, limit: 500_100, salt: 5n }, 1_000), partialSlot: 0 },
      { ...fillOf('bob', { side: 'SHORT', limit: 0, salt: 9n, leverage: 10 }, 0), partialSlot: null },
    ],
  }
}

/** One signature, by a signer of a SignedPriceOracle at a fixed address. */
function proofOf(price: Price, observedAt: Millis): `0x${string}` {
  const domain = {
    name: 'SignedPriceOracle',
    version: '1',
    chainId: perpetual.chainId,
    verifyingContract: '0x3333333333333333333333333333333333333333' as Address,
  }
  const types = {
    PriceReport: [
      { name: 'feedId', type: 'bytes32' },
      { name: 'price', type: 'uint256' },
      { name: 'observedAt', type: 'uint256' },
    ],
  }
  const value = { feedId: feedIdOf(perpetual.marketId), price, observedAt }
  const hash = getBytes(TypedDataEncoder.hash(domain, types, value))
  return wallet('oracle 1').signingKey.sign(hash).serialized as `0x${string}`
}
