/** Forced (liquidation) records: not signed, allowed only by the account's margin ratio. */
import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import {
  binaryExchange,
  buildPart,
  chain,
  type Exchange,
  type FillInput,
  type PartInput,
  pair,
  perpetualExchange,
  send,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { expectPartRefused, expectRefused, withBytes } from '../../support/refusals.ts'
import { audit } from '../support/audit.ts'

/** Bought at 50,000 with 5 %: liquidatable (below 2.75 %) from 1 wei below this price. */
const LAST_SAFE = 48_843_187_660_668_380_462_725n
const FALLEN = e18('48750')
const CLEARING = 488_000
/** Offset of the second record. */
const FORCED = 64 + 110

describe('settleBatch: forced records', () => {
  let exchange: Exchange
  const user = (index: number) => exchange.users[index]!

  /** Alice is long 1,000 steps and Bob short 1,000, at the highest leverage. */
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    await settle(exchange, { price: 500_000, fills: pair(user(0), user(1), 1_000, { leverage: 20 }) })
  })

  const liquidation = (change: Partial<FillInput> = {}, input: Partial<PartInput> = {}): PartInput => {
    const fill = change.fill ?? 400
    return {
      price: CLEARING,
      oraclePrice: FALLEN,
      fills: [
        { by: user(2), side: 'LONG', fill },
        { by: user(0), side: 'SHORT', fill, forced: 7n, ...change },
      ],
      ...input,
    }
  }

  it('when the ratio is below requirement and buffer, it reduces the position without using a salt', async () => {
    await settle(exchange, liquidation())
    expect((await exchange.trader.position(user(0).address)).size).to.equal(600n)
    expect(await exchange.trader.saltState(user(0).address, 7)).to.equal(0n)
    await audit(exchange)
  })

  it('when it closes the whole position, the remaining margin is credited', async () => {
    const before = (await exchange.bank.account(user(0).address)).free
    await settle(exchange, liquidation({ fill: 1_000 }))
    // 2,500 margin less 1,200 lost at 48,800, less the fee: as maker 1 bp (as taker it would be 5 bps of 48,800).
    const free = (await exchange.bank.account(user(0).address)).free
    expect(free - before).to.equal(e18('2500') - e18('1200') - e18('4.88'))
    await audit(exchange)
  })

  it('when the ratio equals the requirement, it reverts with NotLiquidatable; 1 wei of price lower it settles', async () => {
    const at = (oraclePrice: bigint) => liquidation({}, { oraclePrice })
    const [equity, notional] = await exchange.trader.health(user(0).address, LAST_SAFE)
    await expectPartRefused(exchange, at(LAST_SAFE), {
      error: 'NotLiquidatable',
      args: [user(0).address, equity, (notional * 27_500n) / 1_000_000n],
    })
    await settle(exchange, at(LAST_SAFE - 1n))
  })

  it('when the account is healthy or flat, it reverts with NotLiquidatable', async () => {
    await expectPartRefused(exchange, liquidation({}, { oraclePrice: e18('49500') }), {
      error: 'NotLiquidatable',
    })
    await expectPartRefused(exchange, liquidation({ by: user(3) }), {
      error: 'NotLiquidatable',
      args: [user(3).address, 0, 0],
    })
  })

  it('when it would open, grow or flip a position, it reverts with ReduceOnlyExceeded', async () => {
    await expectPartRefused(exchange, liquidation({ fill: 1_001 }), {
      error: 'ReduceOnlyExceeded',
      args: [user(0).address, 7, 1_000, 1_001],
    })
    const grown = liquidation()
    const [buy, sell] = grown.fills
    await expectPartRefused(
      exchange,
      {
        ...grown,
        fills: [
          { ...buy!, side: 'SHORT' },
          { ...sell!, side: 'LONG' },
        ],
      },
      { error: 'ReduceOnlyExceeded', args: [user(0).address, 7, 0, 400] },
    )
  })

  it('when the price is worse than the bankruptcy price, it reverts with ProceedsNegative', async () => {
    await expectPartRefused(exchange, liquidation({}, { price: 474_999, oraclePrice: e18('47400') }), {
      error: 'ProceedsNegative',
    })
    await settle(exchange, liquidation({}, { price: 475_000, oraclePrice: e18('47400') }))
    await audit(exchange)
  })

  it('when a signed order of the account precedes it, opening reverts with MarginInsufficient and reducing settles', async () => {
    const { fills, ...rest } = liquidation()
    const [buy, forced] = fills
    const opening: FillInput = { by: user(0), side: 'LONG', fill: 10, leverage: 5 }
    const seller: FillInput = { by: user(3), side: 'SHORT', fill: 10 }
    await expectPartRefused(
      exchange,
      { ...rest, fills: [buy!, seller, opening, forced!] },
      { error: 'MarginInsufficient' },
    )
    // Reducing first does not improve the ratio that decides over the liquidation.
    const reducing: FillInput = { by: user(0), side: 'SHORT', fill: 10 }
    await settle(exchange, { ...rest, fills: [{ ...buy!, fill: 410 }, reducing, forced!] })
    await audit(exchange)
  })

  it('when one part liquidates an account twice, the second is judged after the first', async () => {
    const { fills, ...rest } = liquidation()
    const [buy, forced] = fills
    await settle(exchange, { ...rest, fills: [{ ...buy!, fill: 800 }, forced!, { ...forced!, forced: 8n }] })
    expect((await exchange.trader.position(user(0).address)).size).to.equal(200n)
    await audit(exchange)
  })

  const spoiled: readonly [string, number, number][] = [
    ['no reduce-only flag', 33, 0x70],
    ['leverage', 26, 2],
    ['a limit', 38, 1],
    ['a life', 43, 1],
    ['a slot', 44, 0xfe],
    ['the parity of a signature', 45, 0xcc],
    // The optional fields are then read from the oracle's proof, which follows.
    ['another quantity', 45, 0xc6],
    ['a trigger', 45, 0xc5],
    ['a taker share above the fill', 45, 0xe4],
  ]
  for (const [what, at, value] of spoiled) {
    it(`when the record has ${what}, it reverts with ForcedEncoding`, () =>
      expectPartRefused(
        exchange,
        liquidation(),
        { error: 'ForcedEncoding', args: [user(0).address, 7] },
        (bytes) => withBytes(bytes, FORCED + at, value),
      ))
  }

  it('when its forced flag is removed, it reverts as an order with leverage 0', async () => {
    const part = await buildPart(exchange, liquidation())
    const bytes = withBytes(encodeSettleBatch(part, exchange.spec), FORCED + 45, 0xc0)
    await expectRefused(exchange, bytes, { error: 'LeverageOutOfRange' })
  })

  it('when the market is cancel-only, it settles and every other order reverts with MarketNotOpen', async () => {
    const { trader, admin, connection } = exchange
    await trader.connect(admin).restrictMode(1)
    await connection.networkHelpers.time.increase(6)
    await settle(exchange, liquidation())
    const { fills, ...rest } = liquidation()
    const others = pair(user(3), user(4), 1)
    await expectPartRefused(
      exchange,
      { ...rest, fills: [...fills, ...others] },
      { error: 'MarketNotOpen', args: [1] },
    )
    await expectPartRefused(exchange, { ...rest, fills: others }, { error: 'MarketNotOpen', args: [1] })
  })

  it('when a binary position is fully collateralised, it reverts with NotLiquidatable', async () => {
    const binary = await (await chain()).networkHelpers.loadFixture(binaryExchange)
    const [alice, bob, carol] = binary.users
    await settle(binary, { price: 100, fills: pair(alice!, bob!, 10, { leverage: 1 }) })
    const fills: FillInput[] = [
      { by: carol!, side: 'LONG', fill: 10, leverage: 1 },
      { by: alice!, side: 'SHORT', fill: 10, forced: 1n },
    ]
    const part = await buildPart(binary, { price: 91, oraclePrice: e18('0.0905'), fills })
    await expect(send(binary, encodeSettleBatch(part, binary.spec))).to.be.revertedWithCustomError(
      binary.trader,
      'NotLiquidatable',
    )
  })
})
