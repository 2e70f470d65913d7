/**
 * Gas is a golden file: a settled order may not cost 1 % more than test/contracts/gas.json says. Where it costs less, or
 * more on purpose, run with UPDATE_GAS=1 and commit the file.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import hre, { artifacts } from 'hardhat'
import { type GasTable, gasTable } from '../support/gas.ts'
import { adjustmentGas } from '../support/gas-adjust.ts'
import { ownerGas } from '../support/owner-gas.ts'

const file = new URL('gas.json', import.meta.url)
const SIZE_LIMIT = 24_576

/** Differences of two batches are small, and vary by the zero bytes of addresses and signatures. */
const CHANCE = 100

const hasGrown = (now: number, golden: number): boolean => now > Math.max(golden * 1.01, golden + CHANCE)

describe('gas', () => {
  before(function () {
    // Instrumented for coverage, code is neither as small nor as cheap.
    if (hre.globalOptions.coverage) this.skip()
  })

  it('per settled order and per call of an owner stays where it was', async () => {
    const table = { ...(await gasTable()), ...(await ownerGas()), ...(await adjustmentGas()) }
    if (process.env.UPDATE_GAS) writeFileSync(file, `${JSON.stringify(table, null, 2)}\n`)
    const golden = JSON.parse(readFileSync(file, 'utf8')) as GasTable
    expect(Object.keys(table)).to.deep.equal(Object.keys(golden))
    const grown = Object.entries(table).filter(([name, gas]) => hasGrown(gas, golden[name] as number))
    expect(grown).to.deep.equal([])
  }).timeout(120_000)

  it('meets the budget of the design in batches of 50', () => {
    const golden = JSON.parse(readFileSync(file, 'utf8')) as GasTable
    expect(golden['sequential 50 growing']).to.be.at.most(27_000)
    expect(golden['sequential 50 reducing']).to.be.at.most(27_000)
    expect(golden['sequential 50 opening']).to.be.at.most(45_000)
    expect(golden['random 50 growing']).to.be.at.most(45_000)
    expect(golden['random 50 opening']).to.be.at.most(62_000)
  })

  it('meets the budget of the design for owners', () => {
    const golden = JSON.parse(readFileSync(file, 'utf8')) as GasTable
    expect(golden['deposit, first']).to.be.at.most(70_000)
    expect(golden.deposit).to.be.at.most(55_000)
    // 45,000 without the pause, which is read from a slot of its own.
    expect(golden.withdraw).to.be.at.most(46_000)
  })

  it('every contract fits the chain', async () => {
    const isOurs = (name: string) => name.startsWith('contracts/') && !name.startsWith('contracts/mocks/')
    const names = [...(await artifacts.getAllFullyQualifiedNames())].filter(isOurs)
    expect(names.length).to.be.greaterThan(20)
    for (const name of names) {
      const { deployedBytecode } = await artifacts.readArtifact(name)
      expect((deployedBytecode.length - 2) / 2, name).to.be.at.most(SIZE_LIMIT)
    }
  })
})
