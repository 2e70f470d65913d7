import { expect } from 'chai'
import { binaryExchange, caller, chain, type Exchange, nextSecond, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { adjustLeverage, leverageCall } from '../support/adjust.ts'
import { adjustmentCalls, alice, bob, openPositions } from '../support/adjustment-fixture.ts'
import { audit } from '../support/audit.ts'
import { pass, tick, trade } from '../support/risk.ts'

const carol = wallet('carol')
const key = wallet('session key')

describe('adjustLeverage', () => {
  let exchange: Exchange
  const { adjust, refused } = adjustmentCalls(() => exchange, adjustLeverage)

  beforeEach(async () => {
    exchange = await openPositions()
  })
  afterEach(() => audit(exchange))

  it('when leverage falls, it debits exactly the missing margin and emits LeverageAdjusted', async () => {
    const { trader, bank } = exchange
    const { free } = await bank.account(alice.address)
    const sent = await adjust({ leverage: 2, nonce: 4n })
    const asOf = BigInt((await sent.getBlock())!.timestamp) * 1000n
    await expect(sent)
      .to.emit(trader, 'LeverageAdjusted')
      .withArgs(alice.address, alice.address, 4n, asOf, 2n, e18('30'), e18('50'))
    const held = await trader.position(alice.address)
    expect([held.leverage, held.margin, held.size]).to.deep.equal([2n, e18('50'), 1000n])
    expect((await bank.account(alice.address)).free).to.equal(free - e18('30'))
  })

  it('when asOf is more than 2 s ahead of block time or more than 10 s old, it reverts with AsOfAhead or AsOfStale', async () => {
    const blockTime = async () => (await nextSecond(exchange)) * 1000
    await refused({ leverage: 4, asOf: (await blockTime()) + 2001 }, 'AsOfAhead')
    await adjust({ leverage: 4, asOf: (await blockTime()) + 2000 })
    await pass(exchange, 20)
    await refused({ leverage: 3, asOf: (await blockTime()) - 10_001 }, 'AsOfStale')
    await adjust({ leverage: 3, asOf: (await blockTime()) - 10_000 })
  })

  it('when leverage rises, it credits the released margin', async () => {
    const { free } = await exchange.bank.account(alice.address)
    await adjust({ leverage: 20 })
    expect((await exchange.trader.position(alice.address)).margin).to.equal(e18('5'))
    expect((await exchange.bank.account(alice.address)).free).to.equal(free + e18('15'))
  })

  it('when the oracle price has left the entry price, margin follows equity and profit is not paid out', async () => {
    await adjust({ leverage: 20, price: e18('110') })
    // 5.5 are required and the profit is 10: all of the margin is released.
    expect((await exchange.trader.position(alice.address)).margin).to.equal(0n)
    await pass(exchange, 2)
    await adjust({ by: bob, leverage: 5, price: e18('110') })
    // The other side lost 10: equity 10, and 22 are required.
    expect((await exchange.trader.position(bob.address)).margin).to.equal(e18('32'))
  })

  it('when the margin moved exceeds the signed bounds by 1 wei, it reverts with MarginInTooLarge or MarginOutTooSmall', async () => {
    const needed = e18('30')
    await refused({ leverage: 2, maxMarginIn: needed - 1n }, 'MarginInTooLarge', [
      alice.address,
      needed - 1n,
      needed,
    ])
    await refused({ leverage: 20, minMarginOut: e18('15') + 1n }, 'MarginOutTooSmall', [
      alice.address,
      e18('15') + 1n,
      e18('15'),
    ])
    await refused({ leverage: 2, minMarginOut: 1n }, 'MarginOutTooSmall', [alice.address, 1n, 0n])
    await adjust({ leverage: 20, minMarginOut: e18('15') })
    await adjust({ leverage: 2, maxMarginIn: e18('45') })
  })

  it('when the leverage is 0, above the maximum or fractional, it reverts with LeverageInvalid', async () => {
    for (const leverage of [0, 21]) {
      await refused({ leverage }, 'LeverageInvalid', [alice.address, e18('20'), e18(String(leverage))])
    }
    const call = await leverageCall(exchange, { by: alice, leverage: 2 })
    const half = { ...call.struct, leverage: e18('2') + 1n }
    const { domain, types } = typedData(exchange)
    const signature = await alice.signTypedData(domain, types, half)
    await expect(exchange.trader.adjustLeverage(call.asOf, half, call.report, signature))
      .to.be.revertedWithCustomError(exchange.trader, 'LeverageInvalid')
      .withArgs(alice.address, e18('20'), e18('2') + 1n)
    for (const leverage of [1, 20]) await adjust({ leverage })
  })

  it('when there is no position, it only sets the leverage', async () => {
    const { free } = await exchange.bank.account(carol.address)
    await adjust({ by: carol, leverage: 7 })
    expect((await exchange.trader.position(carol.address)).leverage).to.equal(7n)
    expect((await exchange.bank.account(carol.address)).free).to.equal(free)
    await refused({ by: carol, leverage: 7, minMarginOut: 1n }, 'MarginOutTooSmall')
  })

  it('when the position is liquidatable, it debits the margin that restores the requirement', async () => {
    await pass(exchange, 5)
    const price = e18('81')
    await refused({ leverage: 20, price, maxMarginIn: e18('3.05') - 1n }, 'MarginInTooLarge')
    await adjust({ leverage: 20, price, maxMarginIn: e18('3.05') })
    expect((await exchange.trader.position(alice.address)).margin).to.equal(e18('23.05'))
  })

  it('when the free balance does not suffice, it reverts with FreeBalanceInsufficient and the leverage stays', async () => {
    const { free } = await exchange.bank.account(alice.address)
    await exchange.bank.connect(await caller(exchange, alice)).requestWithdrawal(free - 1n)
    await expect(adjust({ leverage: 2 })).to.be.revertedWithCustomError(
      exchange.bank,
      'FreeBalanceInsufficient',
    )
    expect((await exchange.trader.position(alice.address)).leverage).to.equal(5n)
  })

  it('when any field differs from the signed one, it reverts with AdjusterUnauthorized', async () => {
    const call = await leverageCall(exchange, { by: alice, leverage: 4, maxMarginIn: e18('9') })
    const changes = [
      { account: bob.address },
      { leverage: e18('3') },
      { maxMarginIn: e18('10') },
      { minMarginOut: 1n },
      { nonce: call.struct.nonce + 1n },
      { deadline: call.struct.deadline + 1 },
    ]
    for (const change of changes) {
      await tick(exchange)
      await expect(
        exchange.trader.adjustLeverage(call.asOf, { ...call.struct, ...change }, call.report, call.signature),
        Object.keys(change)[0],
      ).to.be.revertedWithCustomError(exchange.trader, 'AdjusterUnauthorized')
    }
    expect(await exchange.trader.hashLeverageAdjustment(call.struct)).to.equal(call.digest)
  })

  it('when nonce, deadline, signer or sender is invalid, it reverts with the same errors as adjustMargin', async () => {
    await adjust({ leverage: 4, nonce: 6n })
    await refused({ leverage: 3, nonce: 6n }, 'MarginNonceUsed')
    await refused({ leverage: 3, deadline: 1 }, 'DeadlinePassed')
    await refused({ leverage: 3, signer: bob }, 'AdjusterUnauthorized', [alice.address, bob.address])
    const { asOf, struct, signature, report } = await leverageCall(exchange, { by: alice, leverage: 3 })
    await expect(
      exchange.trader.connect(exchange.admin).adjustLeverage(asOf, struct, report, signature),
    ).to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
    const owner = exchange.keys.connect(await caller(exchange, alice))
    await owner.registerSessionKey(key.address, 2)
    await adjust({ leverage: 3, signer: key, form: 'personal' })
  })

  it('when the market is halted, it reverts with MarketNotOpen', async () => {
    await exchange.trader.connect(exchange.admin).restrictMode(2)
    await pass(exchange, 6)
    await refused({ leverage: 4 }, 'MarketNotOpen', [2])
  })
})

describe('adjustLeverage in a binary market', () => {
  it('when leverage rises from 1, it releases the collateral above the new requirement', async () => {
    const exchange = await (await chain()).networkHelpers.loadFixture(binaryExchange)
    await trade(exchange, alice, bob, { steps: 10, price: 600, leverage: 1 })
    await adjustLeverage(exchange, { by: bob, leverage: 5, price: e18('0.6') })
    // 10 short at 0.6: the maximum loss is 4; one fifth of it stays.
    expect((await exchange.trader.position(bob.address)).margin).to.equal(e18('0.8'))
    await adjustLeverage(exchange, { by: bob, leverage: 1, price: e18('0.6') })
    expect((await exchange.trader.position(bob.address)).margin).to.equal(e18('4'))
    await audit(exchange)
  })
})

const typedData = ({ spec }: Exchange) => ({
  domain: {
    name: 'IsolatedTrader',
    version: '2.0',
    chainId: spec.chainId,
    verifyingContract: spec.trader,
  },
  types: {
    AdjustLeverage: [
      { name: 'account', type: 'address' },
      { name: 'leverage', type: 'uint256' },
      { name: 'maxMarginIn', type: 'uint256' },
      { name: 'minMarginOut', type: 'uint256' },
      { name: 'nonce', type: 'uint256' },
      { name: 'deadline', type: 'uint256' },
    ],
  },
})
