/**
 * Gas per settled order and per owner call must stay within 1 % of test/contracts/gas.json. To record a decrease or an
 * intended increase, run with UPDATE_GAS=1 and commit the file.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import hre, { artifacts } from 'hardhat'
import { type GasTable, gasTable } from './support/gas.ts'
import { adjustmentGas } from './support/gas-adjust.ts'
import { ownerGas } from './support/gas-owner.ts'

const file = new URL('gas.json', import.meta.url)
const SIZE_LIMIT = 24_576

/** Absolute tolerance in gas: differences of two batches are small and vary with the zero bytes of addresses and signatures. */
const CHANCE = 100

const hasGrown = (now: number, golden: number): boolean => now > Math.max(golden * 1.01, golden + CHANCE)

describe('gas', () => {
  before(function () {
    // Code instrumented for coverage is larger and costs more gas.
    if (hre.globalOptions.coverage) this.skip()
  })

  it('per settled order and per owner call stays within 1 % of the recorded figures', async () => {
    const table = { ...(await gasTable()), ...(await ownerGas()), ...(await adjustmentGas()) }
    if (process.env.UPDATE_GAS) writeFileSync(file, `${JSON.stringify(table, null, 2)}\n`)
    const golden = JSON.parse(readFileSync(file, 'utf8')) as GasTable
    expect(Object.keys(table)).to.deep.equal(Object.keys(golden))
    const grown = Object.entries(table).filter(([name, gas]) => hasGrown(gas, golden[name] as number))
    expect(grown).to.deep.equal([])
  }).timeout(120_000)

  it('stays within the design’s budget in batches of 50', () => {
    const golden = JSON.parse(readFileSync(file, 'utf8')) as GasTable
    expect(golden['sequential 2 growing']).to.be.at.most(65_000)
    expect(golden['sequential 2 reducing']).to.be.at.most(65_000)
    expect(golden['sequential 50 growing']).to.be.at.most(27_000)
    expect(golden['sequential 50 reducing']).to.be.at.most(27_000)
    expect(golden['sequential 50 opening']).to.be.at.most(45_000)
    expect(golden['random 50 growing']).to.be.at.most(45_000)
    expect(golden['random 50 opening']).to.be.at.most(62_000)
    expect(golden['partial fill, slot in use: above a whole one']).to.be.at.most(8_000)
    expect(golden['session key: above the own signature']).to.be.at.most(3_500)
    const forced = golden['batch of two with a forced fill, per order'] as number
    expect(2 * (forced - (golden['sequential 2 reducing'] as number))).to.be.at.most(90_000)
  })

  it('stays within the design’s budget for inheritance and deleveraging', () => {
    const golden = JSON.parse(readFileSync(file, 'utf8')) as GasTable
    expect(golden['inherit, first position']).to.be.at.most(110_000)
    expect(golden.inherit).to.be.at.most(110_000)
    expect(golden['deleverage, per counterparty of ten']).to.be.at.most(90_000)
    expect(golden['deleverage, per further counterparty']).to.be.at.most(90_000)
    expect(golden['deleverage, one counterparty, at the last report']).to.be.at.most(90_000)
  })

  it('stays within the design’s budget for owner calls', () => {
    const golden = JSON.parse(readFileSync(file, 'utf8')) as GasTable
    expect(golden['deposit, first']).to.be.at.most(70_000)
    expect(golden.deposit).to.be.at.most(53_000)
    expect(golden.withdraw).to.be.at.most(45_000)
    const looked = (golden['deposit, while the bank has ether'] as number) - (golden.deposit as number)
    expect(looked).to.be.within(2_100, 2_200)
    expect(golden.cancel).to.be.at.most(30_000)
    expect(golden['cancel of one salt']).to.be.at.most(30_000)
    expect(golden['adjust margin, added']).to.be.at.most(75_000)
    expect(golden['adjust margin, removed']).to.be.at.most(75_000)
    expect(golden['adjust margin, by a session key']).to.be.at.most(75_000)
    expect(golden['adjust leverage']).to.be.at.most(75_000)
  })

  it('leaves every contract’s runtime below the size limit', async () => {
    const isOurs = (name: string) => name.startsWith('contracts/') && !name.startsWith('contracts/mocks/')
    const names = [...(await artifacts.getAllFullyQualifiedNames())].filter(isOurs)
    expect(names.length).to.be.greaterThan(20)
    for (const name of names) {
      const { deployedBytecode } = await artifacts.readArtifact(name)
      expect((deployedBytecode.length - 2) / 2, name).to.be.at.most(SIZE_LIMIT)
    }
  })
})
