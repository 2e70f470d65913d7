/**
 * Gas per settled order and per owner call must stay within 1 % of test/contracts/gas.json, in the receipt and as 4326 and
 * 6343 charge it. To record a decrease or an intended increase, run with UPDATE_GAS=1, which also writes the tables of
 * docs/audit/gas.md, and commit the files.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import hre, { artifacts } from 'hardhat'
import { gasTable } from './support/gas.ts'
import { GAS_BUDGETS } from './support/gas-budgets.ts'
import { chargedGas, type Gas, type GasTable } from './support/gas-charge.ts'
import { gasReport } from './support/gas-report.ts'

const file = new URL('gas.json', import.meta.url)
const PAGE = 'docs/audit/gas.md'
const SIZE_LIMIT = 24_576

/** Absolute tolerance in gas: differences of two batches are small and vary with the zero bytes of addresses and signatures. */
const CHANCE = { receipt: 100, charged: 1_000 } as const

const hasGrown = (now: Gas, golden: Gas | undefined): boolean =>
  golden === undefined ||
  (['receipt', 'charged'] as const).some(
    (column) => now[column] > Math.max(golden[column] * 1.01, golden[column] + CHANCE[column]),
  )

const recorded = (): GasTable => JSON.parse(readFileSync(file, 'utf8')) as GasTable

// ---------------------------------------------------------------------- tables of the page

/** Text between `<!-- name -->` and the next `<!-- end -->`. */
const block = (name: string): RegExp => new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(\n<!-- end -->)`)

function blockOf(name: string): string[] {
  const found = block(name).exec(readFileSync(PAGE, 'utf8'))
  if (found === null) throw new Error(`${PAGE} has no block "${name}"`)
  return found[0].split('\n').slice(1, -1)
}

function writeBlock(name: string, lines: readonly string[]): void {
  const text = readFileSync(PAGE, 'utf8')
  writeFileSync(
    PAGE,
    text.replace(block(name), (_, from, to) => `${from}${lines.join('\n')}${to}`),
  )
}

function record(table: GasTable): void {
  const rows = Object.entries(table).map(
    ([name, { receipt, charged }]) => `  "${name}": { "receipt": ${receipt}, "charged": ${charged} }`,
  )
  writeFileSync(file, `{\n${rows.join(',\n')}\n}\n`)
  writeBlock('gas', gasReport(table))
}

describe('gas', () => {
  before(function () {
    // Code instrumented for coverage is larger and costs more gas.
    if (hre.globalOptions.coverage) this.skip()
  })

  it('when orders settle and owners call, it stays within 1 % of the recorded figures in both schedules', async () => {
    const table = await gasTable()
    if (process.env.UPDATE_GAS) record(table)
    const golden = recorded()
    expect(Object.keys(table)).to.deep.equal(Object.keys(golden))
    const grown = Object.entries(table).filter(([name, gas]) => hasGrown(gas, golden[name]))
    expect(grown).to.deep.equal([])
  }).timeout(180_000)

  it('when the page lists gas, its tables are those of the recorded figures', () => {
    expect(blockOf('gas')).to.deep.equal(gasReport(recorded()))
  })

  for (const [name, budget] of Object.entries(GAS_BUDGETS))
    it(`when the design has a budget, the recorded receipt is within it: ${name}`, () => {
      expect(recorded()[name]?.receipt).to.be.at.most(budget)
    })

  it('when a fill is forced, it costs at most 90,000 more than the reduction of two accounts', () => {
    const golden = recorded()
    const forced = golden['batch of two with a forced fill, per order']?.receipt as number
    const plain = golden['sequential 2 reducing']?.receipt as number
    expect(2 * (forced - plain)).to.be.at.most(90_000)
  })

  it('when the bank has ether, a deposit reads one more slot', () => {
    const golden = recorded()
    const withEther = golden['deposit, while the bank has ether']?.receipt as number
    expect(withEther - (golden.deposit?.receipt as number)).to.be.within(2_100, 2_200)
  })

  it('when a transaction stores little, 4326 and 6343 charge at least their minimum', () => {
    expect(chargedGas(new Uint8Array(0), 21_000, [])).to.equal(60_000)
    // 21,000 + 4 + 16 in the receipt: the minimum for bytes is 60,000 + 110 + 440.
    expect(chargedGas(Uint8Array.of(0, 1), 21_020, [])).to.equal(60_550)
    // 39,000 for the transaction, 40 + 160 for calldata, 2 x 3,750 + 3 x 80 for the log.
    const log = { topics: ['0x', '0x'], data: '0x010203' }
    expect(chargedGas(Uint8Array.of(0, 1), 50_000, [log])).to.equal(50_000 + 39_000 + 200 + 7_740)
  })

  it('when a contract of ours is deployed, its runtime is below the size limit', async () => {
    const isOurs = (name: string) => name.startsWith('contracts/') && !name.startsWith('contracts/mocks/')
    const names = [...(await artifacts.getAllFullyQualifiedNames())].filter(isOurs)
    expect(names.length).to.be.greaterThan(20)
    for (const name of names) {
      const { deployedBytecode } = await artifacts.readArtifact(name)
      expect((deployedBytecode.length - 2) / 2, name).to.be.at.most(SIZE_LIMIT)
    }
  })
})
