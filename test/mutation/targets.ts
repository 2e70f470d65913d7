/** Which files are given faults, and which tests must notice: the quick ones first. */

export interface Stage {
  /** The contract that is compiled with the fault and takes the place of the real one. */
  readonly path: string
  readonly contract: string
  readonly tests: readonly string[]
}

export interface Target {
  readonly file: string
  /** The functions (and the library itself, for its constants) that are given faults; all of them by default. */
  readonly places?: readonly string[]
  readonly stages: readonly Stage[]
}

// ---------------------------------------------------------------------- stages

const harness =
  (contract: string) =>
  (...names: readonly string[]): Stage => ({
    path: `contracts/mocks/${contract}.sol`,
    contract,
    tests: names.map((name) => `test/parity/${name}.test.ts`),
  })

/** The pure rules against their twins off the chain. */
const rules = harness('LibHarness')
const ownerRules = harness('OwnerHarness')

const onMarket =
  (path: string, contract: string) =>
  (...names: readonly string[]): Stage => ({
    path,
    contract,
    tests: names.map((name) => `test/contracts/IsolatedTrader/${name}.test.ts`),
  })

/** A library that is deployed by itself and linked. */
const linked = (name: string) => onMarket(`contracts/libraries/${name}.sol`, name)
const desk = onMarket('contracts/MarketDesk.sol', 'MarketDesk')

const library = (name: string, ...stages: readonly Stage[]): Target => ({
  file: `contracts/libraries/${name}.sol`,
  stages,
})

// ---------------------------------------------------------------------- targets

/** What an adjustment signs and what may move. Who may send it, and when, is asked on the market's storage. */
const ADJUST_RULES = [
  ...['hashMargin', 'hashLeverage', '_hash', 'isNonceUsed', 'nonceKey'],
  ...['marginToMove', '_requireAdditionEnough', 'maxRemovable', 'marginForLeverage'],
  ...['_maximumLoss', '_initialRequirement', '_surplus', '_divUp'],
]

/** What decides over margin, fees, funding and signatures. */
export const TARGETS: readonly Target[] = [
  library('FeeLib', rules('rules', 'position')),
  library('MarginLib', rules('position', 'risk'), ownerRules('adjust')),
  library('FundingLib', ownerRules('funding'), linked('FundingLib')('updateFunding')),
  library('BandLib', rules('rules'), ownerRules('reports')),
  library('ReportLib', linked('FundingLib')('updateFunding'), desk('inheritPosition', 'deleverage')),
  library('OrderLib', rules('records')),
  { ...library('AdjustLib', ownerRules('adjust')), places: ADJUST_RULES },
]

/** Tried where they are asked for by name. */
export const OTHERS: readonly Target[] = [
  library('PositionLib', rules('position', 'risk')),
  library('BackstopLib', rules('risk')),
  library('DeleverageLib', rules('risk')),
]
