/** Which files are given faults, and which tests must notice: the quick ones first. */

export interface Stage {
  /** The contract that is compiled with the fault and takes the place of the real one. */
  readonly path: string
  readonly contract: string
  readonly tests: readonly string[]
}

export interface Target {
  readonly file: string
  readonly stages: readonly Stage[]
}

/** The pure rules against their twins off the chain. */
const parity = (...names: readonly string[]): Stage => ({
  path: 'contracts/mocks/LibHarness.sol',
  contract: 'LibHarness',
  tests: names.map((name) => `test/parity/${name}.test.ts`),
})

const onMarket = (...names: readonly string[]): Stage => ({
  path: 'contracts/IsolatedTrader.sol',
  contract: 'IsolatedTrader',
  tests: names.map((name) => `test/contracts/IsolatedTrader/${name}.test.ts`),
})

const SETTLING = onMarket('settleBatch*', 'cancelSalts*')

const library = (name: string, ...stages: readonly Stage[]): Target => ({
  file: `contracts/libraries/${name}.sol`,
  stages,
})

/** A library that is deployed by itself and linked. */
const linked = (name: string, ...tests: readonly string[]): Target => {
  const path = `contracts/libraries/${name}.sol`
  return {
    file: path,
    stages: [
      { path, contract: name, tests: tests.map((test) => `test/contracts/IsolatedTrader/${test}.test.ts`) },
    ],
  }
}

const alone = (contract: string): Target => {
  const path = `contracts/${contract}.sol`
  return { file: path, stages: [{ path, contract, tests: [`test/contracts/${contract}/**/*.test.ts`] }] }
}

export const TARGETS: readonly Target[] = [
  library('FeeLib', parity('rules', 'position')),
  library('MarginLib', parity('position', 'risk'), SETTLING),
  library('BandLib', parity('rules'), SETTLING),
  library('PositionLib', parity('position', 'risk'), SETTLING),
  library('BackstopLib', parity('risk')),
  library('DeleverageLib', parity('risk')),
  library('OrderLib', parity('rules'), SETTLING, onMarket('validateOrder')),
  library('ListingLib', onMarket('constructor')),
  library('SettlementCodec', parity('codec'), SETTLING),
  library('SaltLib', SETTLING),
  linked('LiquidationLib', 'inheritPosition', 'deleverage'),
  linked('WindLib', 'freeze', 'finalizeMarket', 'claim'),
  alone('MarginBank'),
  alone('AccountManager'),
  alone('SignedPriceOracle'),
]
