/** The files that are mutated, and the tests that have to kill the mutants: fast ones first. */

export interface TestStage {
  /** The contract that is compiled with the fault and replaces the real one. */
  readonly path: string
  readonly contract: string
  readonly tests: readonly string[]
}

export interface Target {
  readonly file: string
  /** The mutated functions (and the library's own name, for its constants); by default all of them. */
  readonly places?: readonly string[]
  readonly stages: readonly TestStage[]
}

// ---------------------------------------------------------------------- stages

const harness =
  (contract: string) =>
  (...names: readonly string[]): TestStage => ({
    path: `contracts/mocks/${contract}.sol`,
    contract,
    tests: names.map((name) => `test/parity/${name}.test.ts`),
  })

/** Parity tests of the pure rules against domain/. */
const rules = harness('LibHarness')
const ownerRules = harness('OwnerHarness')
const saltRules = harness('SaltHarness')

const onMarket =
  (path: string, contract: string) =>
  (...names: readonly string[]): TestStage => ({
    path,
    contract,
    tests: names.map((name) => `test/contracts/IsolatedTrader/${name}.test.ts`),
  })

/** A library that is deployed separately and linked. */
const linked = (name: string) => onMarket(`contracts/libraries/${name}.sol`, name)
const extension = onMarket('contracts/MarketExtension.sol', 'MarketExtension')
const market = onMarket('contracts/IsolatedTrader.sol', 'IsolatedTrader')

const withTests = (stage: TestStage, ...tests: readonly string[]): TestStage => ({
  ...stage,
  tests: [...stage.tests, ...tests],
})

/** The views of keeper and indexer. */
const lens = (name: string): TestStage => ({
  path: 'contracts/SettlementLens.sol',
  contract: 'SettlementLens',
  tests: [`test/parity/${name}.test.ts`],
})

/** A contract with its own tests. */
const contract = (name: string, ...places: readonly string[]): Target => ({
  file: `contracts/${name}.sol`,
  ...(places.length > 0 ? { places } : {}),
  stages: [{ path: `contracts/${name}.sol`, contract: name, tests: [`test/contracts/${name}/*.test.ts`] }],
})

const library = (name: string, ...stages: readonly TestStage[]): Target => ({
  file: `contracts/libraries/${name}.sol`,
  stages,
})

// ---------------------------------------------------------------------- targets

/** Prevents an order from filling twice, and cancels it. */
const SALTS = [
  ...['consume', '_consumeShare', 'requireAlive', '_filled', '_claimSlot', '_requireUnbound'],
  ...['requestCancel', '_endRequests', 'requestFloor', 'requireAboveFloor', 'stateOf', 'readSlot'],
  ...['wordKey', 'slotKey', 'requestKey', '_shift', '_withState'],
]

/** Digest of an adjustment, and limits of the amount that it moves. */
const ADJUST_RULES = [
  ...['hashMargin', 'hashLeverage', '_hash', 'isNonceUsed', 'nonceKey'],
  ...['marginToMove', '_requireAdditionEnough', 'maxRemovable', 'marginForLeverage'],
  ...['_maximumLoss', '_initialRequirement', '_surplus', '_divUp'],
]

/** Authorization and time limits of an adjustment, and the state that it writes. */
const ADJUST_STATE = [
  ...['AdjustLib', 'adjustMargin', 'adjustLeverage', 'invalidateNonces', '_useNonce'],
  ...['_requireInTime', '_requireSigner', '_loadContext', '_newestPrice', '_move'],
]
const ADJUST_TESTS = [
  ...['adjustMargin.authority', 'adjustMargin', 'adjustLeverage', 'adjustments.scheduled-changes'],
  ...['invalidateMarginNonces'],
]

/** Changes of an adjustment to a position's slot. */
const SLOT = ['addMargin', 'withLeverage']
const FILLS = [
  ...['PositionLib', 'unpack', 'pack', 'applyFill', 'closingSteps', '_close', 'closedShare', '_grow'],
  ...['openingMarginPerStep', 'abs', '_divUp'],
]

/** The bank except the loop over a part's deltas, which does not terminate with some faults. Constructor and `receive` have no name. */
const CUSTODY = [
  ...['', 'MarginBank', '_credit', '_unpack', '_pack', '_move', '_drawPending'],
  ...['deposit', 'depositFor', 'depositWithPermit', '_deposit', 'requestWithdrawal', 'withdraw'],
  ...['announceMarket', 'withdrawAnnouncement', 'listMarket', '_removeAnnouncement', 'listingDelay'],
  ...['pause', 'unpause', 'restoreLatch', '_returnEther', 'isPaused', '_requireNotPaused'],
  ...['whenNotPaused', 'collectFees', 'setTreasury', '_setTreasury'],
]

/** Checks of an order's signature outside settlement. */
const VALIDATION = ['hashOrder', 'validateOrder', '_recover', '_pack', '_onGrid']

/** Code that decides over margin, fees, funding and signatures, and that an order fills once. */
export const TARGETS: readonly Target[] = [
  library('FeeLib', rules('rules', 'position')),
  library(
    'MarginLib',
    rules('position', 'risk'),
    ownerRules('adjust'),
    extension('inheritPosition', 'deleverage'),
  ),
  library('FundingLib', ownerRules('funding'), linked('FundingLib')('updateFunding')),
  library('BandLib', rules('rules'), ownerRules('reports')),
  library('ReportLib', linked('FundingLib')('updateFunding'), extension('inheritPosition', 'deleverage')),
  library('OrderLib', rules('records')),
  { ...library('SaltLib', saltRules('salts')), places: SALTS },
  // Constants: only the market checks the largest salt.
  { ...library('SaltLib', saltRules('salts'), market('cancelSaltsBelow')), places: ['SaltLib'] },
  { ...library('AdjustLib', ownerRules('adjust')), places: ADJUST_RULES },
  { ...library('PositionLib', rules('position')), places: SLOT },
  { ...library('ValidationLib', linked('ValidationLib')('validateOrder')), places: VALIDATION },
  contract('SignedPriceOracle', 'verify', '_recover', 'reportDigest', 'feedAt', 'SignedPriceOracle'),
]

/** Mutated only if selected by name. */
export const OTHERS: readonly Target[] = [
  { ...library('PositionLib', rules('position', 'risk')), places: FILLS },
  library('BackstopLib', rules('risk'), extension('inheritPosition', 'deleverage')),
  library('DeleverageLib', rules('risk'), extension('deleverage')),
  library('LiquidationLib', extension('inheritPosition', 'deleverage', 'pause-grace')),
  library('WindDownLib', linked('WindDownLib')('freeze', 'finalizeMarket', 'ending', 'claim', 'claim.pause')),
  library(
    'EndingLib',
    withTests(linked('WindDownLib')('finalizeMarket', 'ending'), 'test/parity/ending.test.ts'),
    lens('ending'),
    withTests(market('constructor'), 'test/contracts/ExchangeAccess/mainnet.test.ts'),
  ),
  { ...library('AdjustLib', market(...ADJUST_TESTS)), places: ADJUST_STATE },
  contract('MarginBank', ...CUSTODY),
  { ...contract('MarginBank'), file: 'contracts/PauseLatch.sol' },
]
