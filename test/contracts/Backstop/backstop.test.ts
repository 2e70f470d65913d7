import { expect } from 'chai'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { caller, chain, type Exchange, perpetualExchange, settle, wallet } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'
import { inherit, pass, trade, withBackstop } from '../support/risk.ts'

const [alice, bob, carol, tradingKey] = ['alice', 'bob', 'carol', 'tradingKey'].map(wallet) as [
  ReturnType<typeof wallet>,
  ReturnType<typeof wallet>,
  ReturnType<typeof wallet>,
  ReturnType<typeof wallet>,
]
const FUNDS = e18('1000')

describe('Backstop', () => {
  let exchange: Exchange
  const backstopOf = () => Backstop__factory.connect(exchange.shared.backstop, exchange.admin)
  const fixture = async (): Promise<Exchange> => {
    const deployed = await perpetualExchange()
    await withBackstop(deployed, e18('100000'), FUNDS)
    return deployed
  }

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(fixture)
  })
  afterEach(() => audit(exchange))

  it('when funded by anyone, its free balance grows', async () => {
    const { usdm, bank, shared } = exchange
    const from = await caller(exchange, carol)
    await usdm.connect(from).mint(carol.address, 5n)
    await usdm.connect(from).approve(shared.marginBank, 5n)
    await bank.connect(from).depositFor(shared.backstop, 5n)
    expect((await bank.account(shared.backstop)).free).to.equal(FUNDS + 5n)
  })

  it('when its trading key is registered, it trades what was inherited by signed orders', async () => {
    const { shared, trader, keys } = exchange
    await trade(exchange, alice, bob, { steps: 1000, price: 1000, sellerLeverage: 1 })
    await inherit(exchange, alice, { price: e18('97') })
    await backstopOf().registerSessionKey(tradingKey.address, 1)
    expect((await keys.sessionKey(shared.backstop, tradingKey.address)).permissions).to.equal(1n)
    await settle(exchange, {
      price: 970,
      fills: [
        { by: carol, side: 'LONG', fill: 1000 },
        { by: { address: shared.backstop } as never, side: 'SHORT', fill: 1000, signer: tradingKey },
      ],
    })
    expect((await trader.position(shared.backstop)).size).to.equal(0n)
  })

  it('when the trading key is revoked, its orders are refused once G has passed', async () => {
    const { shared, trader } = exchange
    await backstopOf().registerSessionKey(tradingKey.address, 1)
    await backstopOf().revokeSessionKey(tradingKey.address)
    await pass(exchange, 6)
    await expect(
      settle(exchange, {
        price: 1000,
        fills: [
          { by: carol, side: 'LONG', fill: 1000 },
          { by: { address: shared.backstop } as never, side: 'SHORT', fill: 1000, signer: tradingKey },
        ],
      }),
    ).to.be.revertedWithCustomError(trader, 'SignerUnauthorized')
  })

  it('when the treasury takes funds out, it waits like anyone, and pays whom it says', async () => {
    const { usdm, bank, shared } = exchange
    const backstop = backstopOf()
    await backstop.requestWithdrawal(e18('400'))
    await expect(backstop.withdraw(bob.address)).to.be.revertedWithCustomError(bank, 'WithdrawalEarly')
    await pass(exchange, 16)
    await expect(backstop.withdraw(bob.address)).to.emit(backstop, 'Paid').withArgs(bob.address, e18('400'))
    expect(await usdm.balanceOf(bob.address)).to.equal(e18('400'))
    expect((await bank.account(shared.backstop)).free).to.equal(e18('600'))
  })

  it('when the receiver is nobody', async () => {
    const backstop = backstopOf()
    await expect(backstop.withdraw(`0x${'00'.repeat(20)}`)).to.be.revertedWithCustomError(
      backstop,
      'ReceiverZero',
    )
  })

  it('when the caller has no role, nothing goes', async () => {
    const backstop = backstopOf().connect(await caller(exchange, carol))
    const calls = [
      backstop.setBacked(exchange.spec.trader, true),
      backstop.registerSessionKey(carol.address, 1),
      backstop.revokeSessionKey(carol.address),
      backstop.requestWithdrawal(1n),
      backstop.withdraw(carol.address),
    ]
    for (const call of calls) {
      await expect(call).to.be.revertedWithCustomError(backstop, 'AccessManagedUnauthorized')
    }
  })

  it('when it backs a market no more, that market cannot name it again', async () => {
    const { trader, admin, spec, shared } = exchange
    const backstop = backstopOf()
    await expect(backstop.setBacked(spec.trader, false))
      .to.emit(backstop, 'MarketBacked')
      .withArgs(exchange.connection.ethers.getAddress(spec.trader), false)
    await expect(trader.connect(admin).setBackstop(shared.backstop, 1)).to.be.revertedWithCustomError(
      trader,
      'BackstopUnwilling',
    )
  })

  it('names what it works with', async () => {
    const { bank, keys } = exchange
    expect([await backstopOf().bank(), await backstopOf().accountManager()]).to.deep.equal([
      await bank.getAddress(),
      await keys.getAddress(),
    ])
  })
})
