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

  it('when any account deposits for it, its free balance grows', async () => {
    const { usdm, bank, shared } = exchange
    const from = await caller(exchange, carol)
    await usdm.connect(from).mint(carol.address, 5n)
    await usdm.connect(from).approve(shared.marginBank, 5n)
    await bank.connect(from).depositFor(shared.backstop, 5n)
    expect((await bank.account(shared.backstop)).free).to.equal(FUNDS + 5n)
  })

  it('when its trading key is registered as a session key, it closes an inherited position by a signed order', async () => {
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

  it('when its trading key is revoked, orders signed by that key revert with SignerUnauthorized after CANCEL_GRACE', async () => {
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

  it('when the treasury withdraws funds, the withdrawal delay applies and the chosen receiver is paid', async () => {
    const { usdm, bank, shared } = exchange
    const backstop = backstopOf()
    await backstop.requestWithdrawal(e18('400'))
    await expect(backstop.withdraw(bob.address)).to.be.revertedWithCustomError(bank, 'WithdrawalEarly')
    await pass(exchange, 16)
    await expect(backstop.withdraw(bob.address)).to.emit(backstop, 'Paid').withArgs(bob.address, e18('400'))
    expect(await usdm.balanceOf(bob.address)).to.equal(e18('400'))
    expect((await bank.account(shared.backstop)).free).to.equal(e18('600'))
  })

  it('when the receiver is the zero address, it reverts with ReceiverZero', async () => {
    const backstop = backstopOf()
    await expect(backstop.withdraw(`0x${'00'.repeat(20)}`)).to.be.revertedWithCustomError(
      backstop,
      'ReceiverZero',
    )
  })

  it('when the caller lacks the role, every restricted function reverts with AccessManagedUnauthorized', async () => {
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

  it('when it no longer backs a market, that market’s setBackstop reverts with BackstopUnwilling', async () => {
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

  it('returns the addresses of its bank and account manager', async () => {
    const { bank, keys } = exchange
    expect([await backstopOf().bank(), await backstopOf().accountManager()]).to.deep.equal([
      await bank.getAddress(),
      await keys.getAddress(),
    ])
  })
})
