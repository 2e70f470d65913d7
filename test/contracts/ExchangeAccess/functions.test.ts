import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { getAddress, ZeroAddress } from 'ethers'
import { FUNCTIONS, ROLES, type Role } from '../../../stack/access.ts'
import { AggregatorOracle__factory } from '../../../typechain-types/factories/AggregatorOracle__factory.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { chain, perpetualExchange } from '../../support/exchange.ts'

const contracts = new URL('../../../contracts/', import.meta.url)

/** A `restricted` function of an implementation: its name, up to the brace that opens its body. */
const RESTRICTED = /function (\w+)\([^{;]*?\brestricted\b[^{;]*\{/g

/** Restricted functions by the contract that declares them; those of a base contract count for the market. */
function declared(): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  for (const folder of ['', 'base/'])
    for (const name of readdirSync(new URL(folder, contracts)).filter((file) => file.endsWith('.sol'))) {
      const source = readFileSync(new URL(folder + name, contracts), 'utf8')
      const functions = [...source.matchAll(RESTRICTED)].map((match) => match[1] as string)
      const owner = folder === '' ? name.replace('.sol', '') : 'IsolatedTrader'
      if (functions.length > 0) found[owner] = [...(found[owner] ?? []), ...functions].sort()
    }
  return found
}

describe('role permissions', () => {
  it('list every restricted function of every contract exactly once and no other function', () => {
    const listed = Object.entries(FUNCTIONS).map(([contract, roles]) => [
      contract,
      Object.values(roles).flat().sort(),
    ])
    expect(Object.fromEntries(listed)).to.deep.equal(declared())
  })

  it('are assigned to their roles at deployment', async () => {
    const { access, shared, spec, bank, oracle, trader } = await (await chain()).networkHelpers.loadFixture(
      perpetualExchange,
    )
    const deployed = [
      ['MarginBank', shared.marginBank, bank],
      ['SignedPriceOracle', shared.oracle, oracle],
      ['IsolatedTrader', spec.trader, trader],
    ] as const
    for (const [name, target, contract] of deployed)
      for (const [role, functions] of Object.entries(FUNCTIONS[name]))
        for (const each of functions) {
          const selector = contract.interface.getFunction(each as never)?.selector as string
          expect(await access.getTargetFunctionRole(target, selector), each).to.equal(ROLES[role as Role])
        }
  })

  it('stay under one authority: every attempt to change it, the admin’s included, reverts with AuthorityFixed', async () => {
    const { access, shared, bank, oracle, trader, admin } = await (await chain()).networkHelpers.loadFixture(
      perpetualExchange,
    )
    const backstop = Backstop__factory.connect(shared.backstop, admin)
    const aggregators = await new AggregatorOracle__factory(admin).deploy(access, 0, ZeroAddress, 0)
    for (const contract of [bank, oracle, trader, backstop, aggregators]) {
      const target = await contract.getAddress()
      const data = bank.interface.encodeFunctionData('setAuthority', [shared.usdm])
      for (const exchanging of [
        () => access.updateAuthority(target, shared.usdm),
        () => access.execute(target, data),
        () => bank.attach(target).connect(admin).getFunction('setAuthority')(shared.usdm),
      ])
        await expect(exchanging())
          .to.be.revertedWithCustomError(bank, 'AuthorityFixed')
          .withArgs(getAddress(shared.access))
    }
  })

  it('allow each role its own functions and revert with AccessManagedUnauthorized for those of another role', async () => {
    const { access, bank, oracle, trader, connection } = await (await chain()).networkHelpers.loadFixture(
      perpetualExchange,
    )
    const signers = await connection.ethers.getSigners()
    const holders = Object.fromEntries(
      (['listing', 'parameters', 'guardian', 'treasury'] as const).map((role, at) => [
        role,
        signers[5 + at]!,
      ]),
    )
    for (const [role, holder] of Object.entries(holders)) {
      await access.grantRole(ROLES[role as Role], holder, 0)
      await access.connect(holder).acceptRole(ROLES[role as Role])
    }
    const calls: readonly [Role, (by: (typeof signers)[0]) => Promise<unknown>][] = [
      ['listing', (by) => bank.connect(by).announceMarket.staticCall(bank)],
      ['guardian', (by) => bank.connect(by).pause.staticCall()],
      ['treasury', (by) => bank.connect(by).setTreasury.staticCall(by)],
      ['parameters', (by) => oracle.connect(by).setFeed.staticCall(`0x${'11'.repeat(32)}`, [by.address], 1)],
      ['parameters', (by) => trader.connect(by).proposeOperator.staticCall(by)],
      ['guardian', (by) => trader.connect(by).revokeOperator.staticCall(by)],
    ]
    for (const [role, call] of calls)
      for (const [name, holder] of Object.entries(holders)) {
        if (name === role) await call(holder)
        else await expect(call(holder)).to.be.revertedWithCustomError(bank, 'AccessManagedUnauthorized')
      }
  })
})
