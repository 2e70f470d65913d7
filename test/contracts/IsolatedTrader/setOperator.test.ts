import { expect } from 'chai'
import { ZeroAddress } from 'ethers'
import { chain, type Exchange, perpetualExchange } from '../../support/exchange.ts'

describe('setOperator and the admin', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  it('when the admin approves and removes an operator, it says so', async () => {
    const { trader, admin, treasury } = exchange
    for (const approved of [true, false]) {
      await expect(trader.connect(admin).setOperator(treasury.address, approved))
        .to.emit(trader, 'OperatorChanged')
        .withArgs(treasury.address, approved)
      expect(await trader.isOperator(treasury.address)).to.equal(approved)
    }
  })
  it('when somebody else tries', async () => {
    const { trader, operator } = exchange
    await expect(trader.setOperator(operator.address, true))
      .to.be.revertedWithCustomError(trader, 'NotAdmin')
      .withArgs(operator.address)
  })
  it('when the operator is nobody', async () => {
    const { trader, admin } = exchange
    await expect(trader.connect(admin).setOperator(ZeroAddress, true)).to.be.revertedWithCustomError(
      trader,
      'AddressZero',
    )
  })

  it('when the admin hands over, nothing changes until the candidate accepts', async () => {
    const { trader, admin, treasury, operator } = exchange
    await expect(trader.connect(admin).proposeAdmin(treasury.address))
      .to.emit(trader, 'AdminProposed')
      .withArgs(admin.address, treasury.address)
    expect([await trader.admin(), await trader.candidate()]).to.deep.equal([admin.address, treasury.address])
    await expect(trader.connect(operator).acceptAdmin())
      .to.be.revertedWithCustomError(trader, 'NotCandidate')
      .withArgs(operator.address)
    await expect(trader.connect(treasury).acceptAdmin())
      .to.emit(trader, 'AdminChanged')
      .withArgs(admin.address, treasury.address)
    expect([await trader.admin(), await trader.candidate()]).to.deep.equal([treasury.address, ZeroAddress])
    await expect(trader.connect(admin).proposeAdmin(admin.address)).to.be.revertedWithCustomError(
      trader,
      'NotAdmin',
    )
  })
  it('when the proposal is withdrawn, nobody can accept', async () => {
    const { trader, admin, treasury } = exchange
    await trader.connect(admin).proposeAdmin(treasury.address)
    await trader.connect(admin).proposeAdmin(ZeroAddress)
    await expect(trader.connect(treasury).acceptAdmin()).to.be.revertedWithCustomError(trader, 'NotCandidate')
  })
})
