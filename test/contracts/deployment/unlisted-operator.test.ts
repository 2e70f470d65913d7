/** The gate before a listing, against a market with an operator that its description does not list. */
import { expect } from 'chai'
import { artifacts } from 'hardhat'
import type { Address } from '../../../domain/units.ts'
import { compiledFrom } from '../../../ignition/build.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { chain } from '../../support/exchange.ts'
import { deployTampered, differenceIn } from '../support/tampering.ts'

const compiled = compiledFrom(artifacts)

describe('the check of a market before each call that completes it', function () {
  this.timeout(600_000)

  it('when an account that the description does not list has become an operator, the market is refused until it is revoked', async () => {
    const connection = await chain()
    const [admin, , thief] = await connection.ethers.getSigners()
    if (!admin || !thief) throw new Error('the chain has too few accounts')
    const exchange = await deployTampered(connection)
    const { file, deployment } = exchange
    const market = IsolatedTrader__factory.connect(deployment.markets.get(file.spec.marketId) ?? '', admin)
    const difference = () => differenceIn(connection, compiled, exchange)
    expect(await difference()).to.equal(null)

    await market.proposeOperator(thief)
    expect(await difference()).to.equal(null)
    await market.connect(thief).acceptOperator()
    expect(await difference()).to.equal(
      'market 1: operators that the description does not list: expected 0, found 1',
    )
    const listed = { ...file, operators: [...file.operators, thief.address.toLowerCase() as Address] }
    expect(await differenceIn(connection, compiled, { ...exchange, file: listed })).to.equal(null)

    await market.revokeOperator(thief)
    expect(await difference()).to.equal(null)
    // A market without its operators is not complete, and can be completed.
    await market.revokeOperator(file.operators[0] ?? '')
    expect(await difference()).to.equal(null)
  })
})
