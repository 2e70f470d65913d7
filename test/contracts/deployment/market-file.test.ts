/** Descriptions that must be rejected before anything is deployed. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readParameters, requireOwnHolders } from '../../../ignition/handover.ts'
import { readMarketFile } from '../../../ignition/market-file.ts'

const BTC = 'ignition/markets/local/btc-perp.json'
const LOCAL = 'ignition/parameters/local.json'
const [TESTNET, MAINNET] = [6343n, 4326n]
const OWN = [
  '0x1111111111111111111111111111111111111111',
  '0x2222222222222222222222222222222222222222',
] as const
const ZERO = `0x${'0'.repeat(40)}`

describe('the description of a market', () => {
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-market-'))
  const path = join(folder, 'market.json')
  after(() => rmSync(folder, { recursive: true }))

  const errorOf = (change: object, chainId: bigint): string | null => {
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(BTC, 'utf8')), ...change }))
    try {
      readMarketFile(path, chainId)
      return null
    } catch (error) {
      return (error as Error).message
    }
  }
  const oracleOf = (...signers: string[]) => ({ oracle: { signers, threshold: 1 } })

  it('when it is the unedited example, only a test chain accepts its operators and signers, whose keys are public', () => {
    expect(errorOf({}, TESTNET)).to.equal(null)
    expect(errorOf({}, MAINNET)).to.equal(
      `${path}: oracle: signers must be accounts of yours; received 0x15d34aaf54267db7d7c367839aaf71a00a2c6a65, whose key is public`,
    )
    expect(errorOf(oracleOf(...OWN), MAINNET)).to.equal(
      `${path}: operators must be accounts of yours; received 0x14dc79964da2c08b23698b3d3cc7ca32193d9955, whose key is public`,
    )
    expect(errorOf({ ...oracleOf(...OWN), operators: [OWN[0]] }, MAINNET)).to.equal(null)
  })

  it('when a signer or an operator is zero or repeats, it names the address', () => {
    for (const chainId of [TESTNET, MAINNET]) {
      expect(errorOf(oracleOf(OWN[0], ZERO), chainId)).to.equal(
        `${path}: oracle: signers must be different addresses other than zero; received ${ZERO}`,
      )
      expect(errorOf({ ...oracleOf(OWN[0]), operators: [ZERO] }, chainId)).to.equal(
        `${path}: operators must be different addresses other than zero; received ${ZERO}`,
      )
      expect(errorOf(oracleOf(OWN[0], OWN[1], OWN[0]), chainId)).to.equal(
        `${path}: oracle: signers must be different addresses other than zero; received ${OWN[0]} twice`,
      )
    }
  })
})

describe('the parameters of a network', () => {
  it('when a holder, the treasury or a key of the backstop is an account with a public key, only a test chain accepts it', () => {
    const local = readParameters(LOCAL)
    expect(() => requireOwnHolders(local, LOCAL, TESTNET)).not.to.throw()
    expect(() => requireOwnHolders(local, LOCAL, MAINNET)).to.throw(
      `${LOCAL}: Exchange.treasury must be an account of yours; received ${local.exchange.treasury}, whose key is public`,
    )
    const exchange = { ...local.exchange, treasury: OWN[0] }
    expect(() => requireOwnHolders({ ...local, exchange }, LOCAL, MAINNET)).to.throw(
      `${LOCAL}: HandOver.admin must be an account of yours; received ${local.holders.admin}`,
    )
    const [own] = OWN
    const holders = { admin: own, listing: own, parameters: own, guardian: own, treasury: own }
    expect(() => requireOwnHolders({ ...local, exchange, holders }, LOCAL, MAINNET)).not.to.throw()
    const backstopKeys = [local.exchange.treasury]
    expect(() => requireOwnHolders({ exchange, holders, backstopKeys }, LOCAL, MAINNET)).to.throw(
      `${LOCAL}: HandOver.backstopKeys must be an account of yours`,
    )
  })
})
