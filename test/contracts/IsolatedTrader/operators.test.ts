import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import { buildPart, chain, type Exchange, pair, perpetualExchange } from '../../support/exchange.ts'

const STATUS = { none: 0n, proposed: 1n, approved: 2n } as const

describe('proposeOperator, acceptOperator, revokeOperator', () => {
  let exchange: Exchange
  const proposed = () => exchange.treasury
  const asAdmin = () => exchange.trader.connect(exchange.admin)
  const asProposed = () => exchange.trader.connect(proposed())
  const status = () => exchange.trader.operatorStatus(proposed().address)

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  it('when proposed, settleBatch reverts with NotOperator until the account accepts', async () => {
    const { trader, spec, users } = exchange
    await expect(asAdmin().proposeOperator(proposed().address))
      .to.emit(trader, 'OperatorChanged')
      .withArgs(proposed().address, STATUS.proposed)
    const input = { price: 500_000, fills: pair(users[0]!, users[1]!, 10) }
    await expect(asProposed().settleBatch(encodeSettleBatch(await buildPart(exchange, input), spec)))
      .to.be.revertedWithCustomError(trader, 'NotOperator')
      .withArgs(proposed().address)

    await expect(asProposed().acceptOperator())
      .to.emit(trader, 'OperatorChanged')
      .withArgs(proposed().address, STATUS.approved)
    await asProposed().settleBatch(encodeSettleBatch(await buildPart(exchange, input), spec))
  })
  it('when not proposed or already accepted, acceptOperator reverts with OperatorNotProposed', async () => {
    const refused = () =>
      expect(asProposed().acceptOperator())
        .to.be.revertedWithCustomError(exchange.trader, 'OperatorNotProposed')
        .withArgs(proposed().address)
    await refused()
    await asAdmin().proposeOperator(proposed().address)
    await asProposed().acceptOperator()
    await refused()
  })
  it('when an operator is proposed again, it stays approved', async () => {
    const { trader, operator } = exchange
    await expect(asAdmin().proposeOperator(operator.address)).not.to.emit(trader, 'OperatorChanged')
    expect(await trader.operatorStatus(operator.address)).to.equal(STATUS.approved)
  })
  it('when revoked, a proposal or approval ends at once', async () => {
    await asAdmin().proposeOperator(proposed().address)
    await asAdmin().revokeOperator(proposed().address)
    await expect(asProposed().acceptOperator()).to.be.revertedWithCustomError(
      exchange.trader,
      'OperatorNotProposed',
    )
    await asAdmin().proposeOperator(proposed().address)
    await asProposed().acceptOperator()
    await asAdmin().revokeOperator(proposed().address)
    expect(await status()).to.equal(STATUS.none)
    await expect(asProposed().settleBatch('0x')).to.be.revertedWithCustomError(exchange.trader, 'NotOperator')
  })
  it('when the caller lacks the role, it reverts with AccessManagedUnauthorized', async () => {
    const { trader, operator } = exchange
    for (const call of [
      () => trader.proposeOperator(operator.address),
      () => trader.revokeOperator(exchange.admin.address),
    ])
      await expect(call())
        .to.be.revertedWithCustomError(trader, 'AccessManagedUnauthorized')
        .withArgs(operator.address)
  })
})
