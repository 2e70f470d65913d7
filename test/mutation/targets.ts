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
const saltRules = harness('SaltHarness')

const onMarket =
  (path: string, contract: string) =>
  (...names: readonly string[]): Stage => ({
    path,
    contract,
    tests: names.map((name) => `test/contracts/IsolatedTrader/${name}.test.ts`),
  })

/** A library that is deployed by itself and linked. */
const linked = (name: string) => onMarket(`contracts/libraries/${name}.sol`, name)
const extension = onMarket('contracts/MarketExtension.sol', 'MarketExtension')
const market = onMarket('contracts/IsolatedTrader.sol', 'IsolatedTrader')

/** A contract of its own, by its own tests. */
const contract = (name: string, ...places: readonly string[]): Target => ({
  file: `contracts/${name}.sol`,
  ...(places.length > 0 ? { places } : {}),
  stages: [{ path: `contracts/${name}.sol`, contract: name, tests: [`test/contracts/${name}/*.test.ts`] }],
})

const library = (name: string, ...stages: readonly Stage[]): Target => ({
  file: `contracts/libraries/${name}.sol`,
  stages,
})

// ---------------------------------------------------------------------- targets

/** What keeps an order from filling twice, and cancels it. */
const SALTS = [
  ...['consume', '_consumeShare', 'requireAlive', '_filled', '_claimSlot', '_requireUnbound'],
  ...['requestCancel', '_endRequests', 'requestFloor', 'requireAboveFloor', 'stateOf', 'readSlot'],
  ...['wordKey', 'slotKey', 'requestKey', '_shift', '_withState'],
]

/** What an adjustment signs and what may move. */
const ADJUST_RULES = [
  ...['hashMargin', 'hashLeverage', '_hash', 'isNonceUsed', 'nonceKey'],
  ...['marginToMove', '_requireAdditionEnough', 'maxRemovable', 'marginForLeverage'],
  ...['_maximumLoss', '_initialRequirement', '_surplus', '_divUp'],
]

/** Who may send an adjustment, how often and until when; what it writes. */
const ADJUST_STATE = [
  ...['AdjustLib', 'adjustMargin', 'adjustLeverage', 'invalidateNonces', '_spendNonce'],
  ...['_requireInTime', '_requireSigner', '_open', '_newestPrice', '_move'],
]
const ADJUST_TESTS = [
  ...['adjustMargin.authority', 'adjustMargin', 'adjustLeverage', 'adjusting.changes'],
  ...['invalidateMarginNonces'],
]

/** What an adjustment changes in the slot of a position. */
const SLOT = ['addMargin', 'withLeverage']
const FILLS = [
  ...['PositionLib', 'unpack', 'pack', 'applyFill', 'closingSteps', '_close', 'closedShare', '_grow'],
  ...['openingMarginPerStep', 'abs', '_divUp'],
]

/** Of the bank: all but the loop over a part's deltas, which never ends with some faults. Constructor and `receive` have no name. */
const CUSTODY = [
  ...['', 'MarginBank', '_credit', '_unpack', '_pack', '_toUint96', '_move', '_drawPending'],
  ...['deposit', 'depositFor', 'depositWithPermit', '_deposit', 'requestWithdrawal', 'withdraw'],
  ...['announceMarket', 'withdrawAnnouncement', 'listMarket', '_takeAnnouncement', 'listingDelay'],
  ...['pause', 'unpause', 'restoreLatch', '_giveBack', '_pauseUntil', 'isPaused', '_requireNotPaused'],
  ...['whenNotPaused', 'collectFees', 'setTreasury', '_setTreasury'],
]

/** What an order's signature is checked by, outside settlement. */
const VALIDATION = ['hashOrder', 'validateOrder', '_recover', '_pack', '_onGrid']

/** What decides over margin, fees, funding and signatures, and that an order fills once. */
export const TARGETS: readonly Target[] = [
  library('FeeLib', rules('rules', 'position')),
  library('MarginLib', rules('position', 'risk'), ownerRules('adjust')),
  library('FundingLib', ownerRules('funding'), linked('FundingLib')('updateFunding')),
  library('BandLib', rules('rules'), ownerRules('reports')),
  library('ReportLib', linked('FundingLib')('updateFunding'), extension('inheritPosition', 'deleverage')),
  library('OrderLib', rules('records')),
  { ...library('SaltLib', saltRules('salts')), places: SALTS },
  // Constants: how far salts go is asked by the market alone.
  { ...library('SaltLib', saltRules('salts'), market('cancelSaltsBelow')), places: ['SaltLib'] },
  { ...library('AdjustLib', ownerRules('adjust')), places: ADJUST_RULES },
  { ...library('PositionLib', rules('position')), places: SLOT },
  { ...library('OrderDeskLib', linked('OrderDeskLib')('validateOrder')), places: VALIDATION },
  contract('SignedPriceOracle', 'verify', '_recover', 'reportDigest', 'SignedPriceOracle'),
]

/** Tried where they are asked for by name. */
export const OTHERS: readonly Target[] = [
  { ...library('PositionLib', rules('position', 'risk')), places: FILLS },
  library('BackstopLib', rules('risk'), extension('inheritPosition')),
  library('DeleverageLib', rules('risk'), extension('deleverage')),
  library('LiquidationLib', extension('inheritPosition', 'deleverage')),
  library('WindLib', linked('WindLib')('freeze', 'finalizeMarket', 'claim')),
  { ...library('AdjustLib', market(...ADJUST_TESTS)), places: ADJUST_STATE },
  contract('MarginBank', ...CUSTODY),
  { ...contract('MarginBank'), file: 'contracts/PauseLatch.sol' },
]
