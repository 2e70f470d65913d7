/** The sequence of actions, attacked through each kind: replays, gaps, and `asOf` that decreases, runs ahead or is stale. */
import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import type { Millis } from '../../../domain/units.ts'
import {
  buildPart,
  type Exchange,
  futureExchange,
  nextSecond,
  pair,
  perpetualExchange,
  settle,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import {
  type ActionInput,
  actionOf,
  pass,
  passDisputeWindow,
  reportFinal,
  settleMode,
  tick,
  trade,
} from '../support/risk.ts'
import { fresh } from '../support/wind-down.ts'

const [alice, bob] = [wallet('alice'), wallet('bob')]
const [carol, dave] = [wallet('carol'), wallet('dave')]

/** 1,000 ticks of 0.1: bought at 100 with 5 of margin, below maintenance at 97. */
const BOUGHT = { steps: 1000, price: 1000, sellerLeverage: 1 }
const BELOW = e18('97')

type Place = Pick<ActionInput, 'actionId' | 'asOf' | 'observedAt'>

interface Kind {
  readonly name: string
  /** A market in which the action succeeds if its number and time are valid. */
  readonly market: () => Promise<Exchange>
  readonly encode: (exchange: Exchange, place: Place) => Promise<string>
}

// ---------------------------------------------------------------------- markets

async function bought(): Promise<Exchange> {
  const exchange = await perpetualExchange()
  await trade(exchange, alice, bob, BOUGHT)
  await pass(exchange, 20)
  return exchange
}

/** The dispute window of its final report is over. */
async function settling(): Promise<Exchange> {
  const exchange = await futureExchange()
  await trade(exchange, alice, bob, { ...BOUGHT, leverage: 1 })
  await settleMode(exchange)
  await reportFinal(exchange, { price: e18('600') })
  await passDisputeWindow(exchange)
  await pass(exchange, 20)
  return exchange
}

// ---------------------------------------------------------------------- kinds

const batchOf = async (exchange: Exchange, place: Place): Promise<string> => {
  const { asOf, observedAt, ...number } = place
  const part = await buildPart(exchange, {
    ...number,
    ...(asOf !== undefined && { asOf: asOf as Millis }),
    ...(observedAt !== undefined && { observedAt }),
    price: 1000,
    fills: pair(alice, bob, 10, { leverage: 1 }),
  })
  return exchange.trader.interface.encodeFunctionData('settleBatch', [encodeSettleBatch(part, exchange.spec)])
}

const fundingOf = async (exchange: Exchange, place: Place): Promise<string> => {
  const { actionId, asOf, report } = await actionOf(exchange, { ...place, price: e18('100') })
  const none = { price: 0n, observedAt: 0, proof: '0x' }
  return exchange.trader.interface.encodeFunctionData('updateFunding', [
    actionId,
    asOf,
    1n,
    asOf + 1000,
    report,
    none,
  ])
}

const inheritanceOf = async (exchange: Exchange, place: Place): Promise<string> => {
  const { actionId, asOf, report } = await actionOf(exchange, { ...place, price: BELOW })
  return exchange.trader.interface.encodeFunctionData('inheritPosition', [
    actionId,
    asOf,
    alice.address,
    report,
  ])
}

const deleveragingOf = async (exchange: Exchange, place: Place): Promise<string> => {
  const { actionId, asOf, report } = await actionOf(exchange, { ...place, price: BELOW })
  return exchange.trader.interface.encodeFunctionData('deleverage', [
    actionId,
    asOf,
    alice.address,
    [bob.address],
    [1],
    report,
  ])
}

const finalOf = async (exchange: Exchange, place: Place): Promise<string> => {
  const { actionId, asOf } = await actionOf(exchange, { ...place, price: e18('600') })
  return exchange.trader.interface.encodeFunctionData('finalizeMarket', [actionId, asOf])
}

/** No kind changes what the next attempt depends on: the inheritance fails for lack of a backstop; deleveraging closes one step of many. */
const KINDS: readonly Kind[] = [
  { name: 'a batch', market: bought, encode: batchOf },
  { name: 'an update of funding', market: bought, encode: fundingOf },
  { name: 'an inheritance', market: bought, encode: inheritanceOf },
  { name: 'a deleveraging', market: bought, encode: deleveragingOf },
  { name: 'a final settlement', market: settling, encode: finalOf },
]

// ---------------------------------------------------------------------- attacks

for (const { name, market, encode } of KINDS) {
  describe(`${name} in the sequence of actions`, () => {
    let exchange: Exchange
    beforeEach(async () => {
      exchange = await fresh(market)
    })
    const ms = async (): Promise<number> => (await nextSecond(exchange)) * 1000
    const last = () => exchange.trader.clock()

    /** Mined one second after the latest block. */
    async function sent(data: string) {
      await tick(exchange)
      return exchange.operator.sendTransaction({ to: exchange.spec.trader, data })
    }

    async function refused(place: Place, error: string, args: readonly unknown[]): Promise<void> {
      const before = await last()
      await expect(sent(await encode(exchange, place)))
        .to.be.revertedWithCustomError(exchange.trader, error)
        .withArgs(...args)
      expect(await last()).to.deep.equal(before)
    }

    async function taken(place: Place): Promise<void> {
      const { actionId } = await last()
      await sent(await encode(exchange, place))
      expect((await last()).actionId).to.equal(actionId + 1n)
    }

    it('when its actionId is not the last + 1, it reverts with ActionOutOfOrder', async () => {
      const { actionId } = await last()
      const next = Number(actionId) + 1
      for (const given of [0, next - 1, next + 1, next + 1000]) {
        await refused({ actionId: given }, 'ActionOutOfOrder', [next, given])
      }
      await taken({ actionId: next })
    })

    it('when the same call is sent again, it reverts with ActionOutOfOrder', async () => {
      const data = await encode(exchange, {})
      await sent(data)
      const { actionId } = await last()
      await expect(sent(data))
        .to.be.revertedWithCustomError(exchange.trader, 'ActionOutOfOrder')
        .withArgs(actionId + 1n, actionId)
    })

    it('when two actions are sent in the wrong order, the second reverts with ActionOutOfOrder until the first is mined', async () => {
      const { actionId } = await last()
      await refused({ actionId: Number(actionId) + 2 }, 'ActionOutOfOrder', [actionId + 1n, actionId + 2n])
      await taken({})
    })

    it('when asOf is 1 ms before the last action’s, it reverts with AsOfDecreased', async () => {
      const { asOf } = await last()
      await refused({ asOf: Number(asOf) - 1 }, 'AsOfDecreased', [asOf, asOf - 1n])
    })

    it('when asOf is 2 s ahead of block time, it succeeds; 1 ms more reverts with AsOfAhead', async () => {
      const blockTime = await ms()
      await refused({ asOf: blockTime + 2001 }, 'AsOfAhead', [blockTime, blockTime + 2001])
      await taken({ asOf: (await ms()) + 2000 })
    })

    it('when asOf is 10 s old, it succeeds; 1 ms more reverts with AsOfStale', async () => {
      const blockTime = await ms()
      await refused({ asOf: blockTime - 10_001 }, 'AsOfStale', [blockTime, blockTime - 10_001])
      await taken({ asOf: (await ms()) - 10_000 })
    })

    it('when it has become stale, it keeps reverting with AsOfStale and its actionId can be used by another action', async () => {
      const data = await encode(exchange, {})
      await pass(exchange, 11)
      for (const _again of [1, 2]) {
        await expect(sent(data)).to.be.revertedWithCustomError(exchange.trader, 'AsOfStale')
      }
      await taken({})
    })
  })
}

describe('an unfinished batch', () => {
  it('when an action of another kind is mined between its parts, its further parts revert with BatchTermsChanged or PartOutOfOrder', async () => {
    for (const between of [fundingOf, inheritanceOf, deleveragingOf]) {
      const exchange = await fresh(bought)
      const asOf = ((await nextSecond(exchange)) * 1000) as Millis
      // The same price and report time as the action in between, so that only the order of actions can be wrong.
      const oraclePrice = between === fundingOf ? e18('100') : BELOW
      const part = { price: 1000, oraclePrice, asOf, observedAt: asOf, batchId: 5, parts: 2 }
      const partOf = (number: number, salt: bigint) => {
        return { ...part, part: number, fills: pair(carol, dave, 10, { leverage: 1, salt }) }
      }
      await settle(exchange, partOf(1, 1001n))
      await tick(exchange)
      const data = await between(exchange, { asOf, observedAt: asOf })
      await exchange.operator.sendTransaction({ to: exchange.spec.trader, data })
      const { trader } = exchange
      const second = partOf(2, 1002n)
      await expect(settle(exchange, second)).to.be.revertedWithCustomError(trader, 'BatchTermsChanged')
      const shortened = { ...second, parts: 1 }
      await expect(settle(exchange, shortened)).to.be.revertedWithCustomError(trader, 'PartOutOfOrder')
    }
  })
})
