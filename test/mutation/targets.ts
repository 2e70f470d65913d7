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

const HARNESS: Stage = {
  path: 'contracts/mocks/LibHarness.sol',
  contract: 'LibHarness',
  tests: ['test/parity/*.test.ts'],
}

const MARKET: Stage = {
  path: 'contracts/IsolatedTrader.sol',
  contract: 'IsolatedTrader',
  tests: ['test/contracts/IsolatedTrader/**/*.test.ts', 'test/contracts/vectors.test.ts'],
}

const library = (name: string, ...stages: readonly Stage[]): Target => ({
  file: `contracts/libraries/${name}.sol`,
  stages,
})

const alone = (contract: string): Target => {
  const path = `contracts/${contract}.sol`
  return { file: path, stages: [{ path, contract, tests: [`test/contracts/${contract}/**/*.test.ts`] }] }
}

export const TARGETS: readonly Target[] = [
  library('FeeLib', HARNESS, MARKET),
  library('MarginLib', HARNESS, MARKET),
  library('BandLib', HARNESS, MARKET),
  library('ListingLib', MARKET),
  library('PositionLib', HARNESS, MARKET),
  library('OrderLib', HARNESS, MARKET),
  library('BackstopLib', HARNESS),
  library('DeleverageLib', HARNESS),
  library('SaltLib', MARKET),
  library('SettlementCodec', HARNESS, MARKET),
  alone('MarginBank'),
  alone('AccountManager'),
  alone('SignedPriceOracle'),
]
