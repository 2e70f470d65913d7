/** A forwarder acts for owners in the functions that trust it, and never for a role, a payer or an operator. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { Forwarder__factory } from '../../../typechain-types/factories/Forwarder__factory.ts'
import { caller, chain, type Exchange, perpetualExchange } from '../../support/exchange.ts'
import { expectRejected } from '../../support/refusals.ts'
import { audit } from '../support/audit.ts'
import { forwarderOf, signForward } from '../support/forward.ts'

describe('the forwarder', () => {
  let exchange: Exchange
  const alice = () => exchange.users[0]!
  const forwarder = () => forwarderOf(exchange)

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })
  afterEach(() => audit(exchange))

  const signed = (
    from: Wallet | Exchange['admin'],
    to: string,
    data: string,
    signer: Wallet | Exchange['admin'] = from,
  ) => signForward(exchange, from, { to, data }, signer)

  describe('when an admin who holds every role signs a request', () => {
    it('every restricted function reverts with FailedCall or ERC2771UntrustfulTarget', async () => {
      const { bank, trader, oracle, access, spec, shared, admin } = exchange
      const calls: readonly (readonly [string, string])[] = [
        [shared.marginBank, bank.interface.encodeFunctionData('pause')],
        [shared.marginBank, bank.interface.encodeFunctionData('setTreasury', [alice().address])],
        [shared.marginBank, bank.interface.encodeFunctionData('announceMarket', [shared.oracle])],
        [spec.trader, trader.interface.encodeFunctionData('proposeOperator', [alice().address])],
        [spec.trader, trader.interface.encodeFunctionData('revokeOperator', [exchange.operator.address])],
        [spec.trader, trader.interface.encodeFunctionData('restrictMode', [2])],
        [
          shared.oracle,
          oracle.interface.encodeFunctionData('setFeed', [`0x${'11'.repeat(32)}`, [alice().address], 1]),
        ],
        [shared.access, access.interface.encodeFunctionData('grantRole', [0, alice().address, 0])],
        [shared.access, access.interface.encodeFunctionData('renounceRole', [3, admin.address])],
      ]
      for (const [to, data] of calls) {
        await exchange.connection.ethers.provider.call({ from: admin.address, to, data })
        // Contracts that do not trust the forwarder fail before the call; the market trusts it for owners and reverts by role.
        const failure = spec.trader === to ? 'FailedCall' : 'ERC2771UntrustfulTarget'
        const request = await signed(admin, to, data)
        await expect(forwarder().execute(request)).to.be.revertedWithCustomError(forwarder(), failure)
      }
    })
    it('a direct call with the admin’s address appended reverts with AccessManagedUnauthorized, also from the forwarder', async () => {
      const { bank, trader, spec, shared, admin, operator, connection } = exchange
      await connection.networkHelpers.impersonateAccount(shared.forwarder)
      await connection.networkHelpers.setBalance(shared.forwarder, 10n ** 18n)
      const asForwarder = await connection.ethers.getSigner(shared.forwarder)
      const suffix = admin.address.slice(2)
      for (const from of [operator, asForwarder])
        for (const [to, data] of [
          [shared.marginBank, bank.interface.encodeFunctionData('pause')],
          [spec.trader, trader.interface.encodeFunctionData('proposeOperator', [alice().address])],
        ] as const)
          await expect(from.sendTransaction({ to, data: data + suffix }))
            .to.be.revertedWithCustomError(bank, 'AccessManagedUnauthorized')
            .withArgs(from === operator ? operator.address : await asForwarder.getAddress())
    })
  })

  it('when an operator signs a request, settleBatch and acceptOperator revert with FailedCall', async () => {
    const { trader, spec, operator } = exchange
    for (const data of [
      trader.interface.encodeFunctionData('settleBatch', ['0x']),
      trader.interface.encodeFunctionData('acceptOperator'),
    ]) {
      const request = await signed(operator, spec.trader, data)
      await expect(forwarder().execute(request)).to.be.revertedWithCustomError(forwarder(), 'FailedCall')
    }
  })
  it('when an owner signs a withdrawal request, it reverts with ERC2771UntrustfulTarget', async () => {
    const { bank, shared } = exchange
    for (const data of [
      bank.interface.encodeFunctionData('requestWithdrawal', [1]),
      bank.interface.encodeFunctionData('withdraw'),
    ]) {
      const request = await signed(alice(), shared.marginBank, data)
      await expect(forwarder().execute(request)).to.be.revertedWithCustomError(
        forwarder(),
        'ERC2771UntrustfulTarget',
      )
    }
  })
  it('when owners sign, it cancels the orders of each signer, in a batch of requests or alone', async () => {
    const { trader, spec, users, admin } = exchange
    const data = trader.interface.encodeFunctionData('cancelSalts', [[7]])
    const requests = [await signed(users[0]!, spec.trader, data), await signed(users[1]!, spec.trader, data)]
    await forwarder().executeBatch(requests, admin)
    for (const at of [0, 1]) expect(await trader.saltState(users[at]!.address, 7)).to.equal(3n)
    expect(await trader.saltState(users[2]!.address, 7)).to.equal(0n)
  })
  it('when a request is repeated, expired, changed or signed by another account, it reverts with the forwarder’s error', async () => {
    const { trader, spec, users } = exchange
    const data = trader.interface.encodeFunctionData('cancelSalts', [[7]])
    const request = await signed(alice(), spec.trader, data)
    const refused = (call: Promise<unknown>, error: string) =>
      expect(call).to.be.revertedWithCustomError(forwarder(), error)
    const other = trader.interface.encodeFunctionData('cancelSalts', [[8]])
    await refused(forwarder().execute({ ...request, data: other }), 'ERC2771ForwarderInvalidSigner')
    await refused(
      forwarder().execute({ ...request, from: users[1]!.address }),
      'ERC2771ForwarderInvalidSigner',
    )
    await refused(
      forwarder().execute(await signed(alice(), spec.trader, data, users[1]!)),
      'ERC2771ForwarderInvalidSigner',
    )
    await forwarder().execute(request)
    await refused(forwarder().execute(request), 'ERC2771ForwarderInvalidSigner')
    const late = await signed(alice(), spec.trader, other)
    await exchange.connection.networkHelpers.time.increase(601)
    await refused(forwarder().execute(late), 'ERC2771ForwarderExpiredRequest')
  })
  it('when an unauthorized caller appends an owner’s address to a call, it cancels the caller’s own orders only', async () => {
    const { trader, spec, users } = exchange
    const unauthorized = await caller(exchange, users[1]!)
    const data = trader.interface.encodeFunctionData('cancelSalts', [[7]])
    await unauthorized.sendTransaction({ to: spec.trader, data: data + alice().address.slice(2) })
    expect(await trader.saltState(alice().address, 7)).to.equal(0n)
    expect(await trader.saltState(unauthorized.address, 7)).to.equal(3n)
  })
  it('when a second forwarder passes an owner’s request on, the market does not trust it', async () => {
    const { trader, spec, admin } = exchange
    const second = await new Forwarder__factory(admin).deploy()
    const data = trader.interface.encodeFunctionData('cancelSalts', [[7]])
    const request = await signed(alice(), spec.trader, data)
    await expectRejected(second.execute(request), /ERC2771UntrustfulTarget/)
    expect(await trader.isTrustedForwarder(second)).to.equal(false)
  })
})

describe('nested calls', () => {
  it('are impossible: no contract of the exchange has a multicall or a fallback', async () => {
    const { trader, bank, oracle, keys, access, shared } = await (await chain()).networkHelpers.loadFixture(
      perpetualExchange,
    )
    for (const { interface: abi } of [
      trader,
      bank,
      oracle,
      keys,
      Forwarder__factory.connect(shared.forwarder),
    ]) {
      expect(abi.fallback).to.equal(null)
      expect(abi.hasFunction('multicall')).to.equal(false)
    }
    await expect(access.multicall([])).to.be.revertedWithCustomError(access, 'NoMulticall')
  })
})
