/** The life of a market as a state machine: every call in every state, for a perpetual and for a future. */
import { expect } from 'chai'
import {
  addressOf,
  type Exchange,
  fieldsOf,
  futureExchange,
  nextSecond,
  perpetualExchange,
  restart,
  wallet,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { errorOf } from '../../support/parity.ts'
import { adjustLeverage, adjustMargin, setFunding } from '../support/adjust.ts'
import {
  actionOf,
  DAY,
  deleverage,
  depositFor,
  finalize,
  inherit,
  pass,
  passDisputeWindow,
  reportFinal,
  settleMode,
  tick,
  trade,
} from '../support/risk.ts'
import { fresh } from '../support/wind-down.ts'

const [alice, bob] = [wallet('alice'), wallet('bob')]
const WEEK = 7 * DAY
const [OPEN, CANCEL_ONLY, HALTED] = [0, 1, 2]

type Kind = 'perpetual' | 'future'
type State = 'open' | 'cancelOnly' | 'halted' | 'closed' | 'reported' | 'finalizable' | 'unreported' | 'ended'

// ---------------------------------------------------------------------- states

const PRICES = { perpetual: e18('100'), future: e18('500') } as const
const priceOf = ({ spec }: Exchange): bigint => PRICES[spec.kind as Kind]

/** A market with one long at 2x and one short at 1x. */
async function traded(kind: Kind): Promise<Exchange> {
  const exchange = await { perpetual: perpetualExchange, future: futureExchange }[kind]()
  await trade(exchange, alice, bob, { steps: 1000, price: 1000, leverage: 2, sellerLeverage: 1 })
  await depositFor(exchange, exchange.spec.trader, 1n)
  return exchange
}

async function restricted(kind: Kind, mode: number): Promise<Exchange> {
  const exchange = await traded(kind)
  await exchange.trader.connect(exchange.admin).restrictMode(mode)
  await pass(exchange, 10)
  return exchange
}

/** A perpetual closes by a scheduled mode, a future at its expiry. */
async function closed(kind: Kind): Promise<Exchange> {
  const exchange = await traded(kind)
  if (kind === 'perpetual') await settleMode(exchange)
  else await exchange.connection.networkHelpers.time.increaseTo(exchange.spec.expiresAt / 1000)
  return exchange
}

async function reported(kind: Kind): Promise<Exchange> {
  const exchange = await closed(kind)
  await reportFinal(exchange, { price: priceOf(exchange) })
  return exchange
}

async function finalizable(kind: Kind): Promise<Exchange> {
  const exchange = await reported(kind)
  await passDisputeWindow(exchange)
  return exchange
}

async function unreported(kind: Kind): Promise<Exchange> {
  const exchange = await closed(kind)
  await pass(exchange, WEEK + 1)
  return exchange
}

async function ended(kind: Kind): Promise<Exchange> {
  const exchange = await finalizable(kind)
  await finalize(exchange)
  return exchange
}

const statesOf = (kind: Kind): Readonly<Record<State, () => Promise<Exchange>>> => ({
  open: () => traded(kind),
  cancelOnly: () => restricted(kind, CANCEL_ONLY),
  halted: () => restricted(kind, HALTED),
  closed: () => closed(kind),
  reported: () => reported(kind),
  finalizable: () => finalizable(kind),
  unreported: () => unreported(kind),
  ended: () => ended(kind),
})

// ---------------------------------------------------------------------- calls

const later = async (exchange: Exchange): Promise<number> => ((await nextSecond(exchange)) + 2 * DAY) * 1000
const asAdmin = ({ trader, admin }: Exchange): Exchange['trader'] => trader.connect(admin)

async function poke(exchange: Exchange): Promise<unknown> {
  const { report } = await actionOf(exchange, { price: priceOf(exchange) })
  await tick(exchange)
  return asAdmin(exchange).poke(report)
}

async function scheduleParameters(exchange: Exchange): Promise<unknown> {
  const parameters = fieldsOf(await exchange.trader.parameters())
  return asAdmin(exchange).scheduleParameters(parameters, await later(exchange))
}

const CALLS: Readonly<Record<string, (exchange: Exchange) => Promise<unknown>>> = {
  settleBatch: (exchange) => trade(exchange, alice, bob, { steps: 1, price: 1000, leverage: 1 }),
  updateFunding: (exchange) => setFunding(exchange, { price: priceOf(exchange), rate: 0n }),
  inheritPosition: (exchange) => inherit(exchange, alice, { price: priceOf(exchange) }),
  deleverage: (exchange) =>
    deleverage(exchange, alice, [{ of: bob, steps: 1 }], { price: priceOf(exchange) }),
  addMargin: (exchange) => adjustMargin(exchange, { by: alice, amount: 1n, price: priceOf(exchange) }),
  removeMargin: (exchange) =>
    adjustMargin(exchange, { by: alice, amount: -1n, price: (priceOf(exchange) * 105n) / 100n }),
  adjustLeverage: (exchange) =>
    adjustLeverage(exchange, { by: alice, leverage: 1, price: priceOf(exchange) }),
  heartbeat: (exchange) => exchange.trader.heartbeat(),
  requestFreeze: (exchange) => asAdmin(exchange).requestFreeze(),
  freeze: (exchange) => asAdmin(exchange).freeze(),
  poke,
  submitFinalReport: (exchange) => reportFinal(exchange, { price: priceOf(exchange) }),
  finalizeMarket: (exchange) => finalize(exchange),
  extendExpiry: (exchange) => asAdmin(exchange).extendExpiry(exchange.spec.expiresAt + 1),
  extendDisputeWindow: (exchange) => asAdmin(exchange).extendDisputeWindow(2 * DAY * 1000),
  scheduleMode: async (exchange) => asAdmin(exchange).scheduleMode(OPEN, await later(exchange)),
  scheduleParameters,
  restrictMode: (exchange) => asAdmin(exchange).restrictMode(HALTED),
  reportInsolvent: (exchange) => asAdmin(exchange).reportInsolvent([addressOf(alice)]),
  coverDeficit: (exchange) => asAdmin(exchange).coverDeficit(1),
  claim: (exchange) => asAdmin(exchange).claim(addressOf(alice)),
}

type Outcomes = Readonly<Record<State, string | null>>

const row = (
  trading: readonly [string | null, string | null, string | null],
  closing: readonly [string | null, string | null, string | null, string | null],
  ended: string | null,
): Outcomes => {
  const [open, cancelOnly, halted] = trading
  const [closed, reported, finalizable, unreported] = closing
  return { open, cancelOnly, halted, closed, reported, finalizable, unreported, ended }
}

const NOT_OPEN = 'MarketNotOpen'
const FOUR = (outcome: string | null) => [outcome, outcome, outcome, outcome] as const
const THREE = (outcome: string | null) => [outcome, outcome, outcome] as const

/** The error of each call in each state; null if the call succeeds. */
const COMMON: Readonly<Record<string, Outcomes>> = {
  settleBatch: row([null, NOT_OPEN, NOT_OPEN], FOUR(NOT_OPEN), NOT_OPEN),
  // The account is healthy, so the call gets past the mode.
  inheritPosition: row(['NotLiquidatable', 'NotLiquidatable', NOT_OPEN], FOUR(NOT_OPEN), NOT_OPEN),
  deleverage: row(['NotLiquidatable', 'NotLiquidatable', NOT_OPEN], FOUR(NOT_OPEN), NOT_OPEN),
  addMargin: row(THREE(null), FOUR(null), NOT_OPEN),
  removeMargin: row([null, null, NOT_OPEN], FOUR(NOT_OPEN), NOT_OPEN),
  adjustLeverage: row([null, null, NOT_OPEN], FOUR(NOT_OPEN), NOT_OPEN),
  heartbeat: row(THREE(null), FOUR(null), 'MarketEnded'),
  requestFreeze: row(THREE(null), FOUR('MarketClosed'), 'MarketEnded'),
  freeze: row(
    THREE('FreezeNotRequested'),
    ['FreezeEarly', 'FinalReportPresent', 'FinalReportPresent', null],
    'MarketEnded',
  ),
  poke: row(THREE(null), FOUR('MarketClosed'), 'MarketEnded'),
  finalizeMarket: row(
    THREE(NOT_OPEN),
    ['FinalReportMissing', 'FinalizeEarly', null, 'FinalReportMissing'],
    NOT_OPEN,
  ),
  extendDisputeWindow: row(THREE(null), [null, null, 'ExtensionTooLate', null], 'MarketEnded'),
  scheduleMode: row(THREE(null), FOUR('ModeFinal'), 'ModeFinal'),
  // The stored mode is the one before the restriction or the close, until an action applies it.
  scheduleParameters: row(
    [null, 'ModeChangesApart', 'ModeChangesApart'],
    FOUR('ModeChangesApart'),
    'ModeFinal',
  ),
  restrictMode: row([null, null, 'ModeNotStricter'], FOUR('ModeNotStricter'), 'ModeNotStricter'),
  reportInsolvent: row(THREE('MarketNotEnded'), FOUR('MarketNotEnded'), null),
  coverDeficit: row(THREE('MarketNotEnded'), FOUR('MarketNotEnded'), null),
  claim: row(THREE('MarketNotEnded'), FOUR('MarketNotEnded'), 'ClaimEarly'),
}

const LATE = 'FinalReportLate'
const EXPECTED: Readonly<Record<Kind, Readonly<Record<string, Outcomes>>>> = {
  perpetual: {
    ...COMMON,
    updateFunding: row([null, null, NOT_OPEN], FOUR(NOT_OPEN), NOT_OPEN),
    // A later report does not replace one that is nearer to the close.
    submitFinalReport: row(
      THREE('MarketNotClosed'),
      [null, 'FinalReportSuperseded', LATE, LATE],
      'MarketEnded',
    ),
    extendExpiry: row(THREE('ExpiryFixed'), FOUR('ExpiryFixed'), 'ExpiryFixed'),
  },
  future: {
    ...COMMON,
    updateFunding: row(THREE('NotPerpetual'), FOUR('NotPerpetual'), 'NotPerpetual'),
    submitFinalReport: row(THREE('MarketNotClosed'), [null, null, LATE, LATE], 'MarketEnded'),
    extendExpiry: row(THREE(null), FOUR('ModeFinal'), 'ModeFinal'),
  },
}

// ---------------------------------------------------------------------- tests

describe('the states of a market', function () {
  this.timeout(120_000)
  beforeEach(restart)
  after(restart)

  for (const kind of ['perpetual', 'future'] as const) {
    for (const [state, fixture] of Object.entries(statesOf(kind)) as [State, () => Promise<Exchange>][]) {
      it(`when a ${kind} is ${state}, each call succeeds or reverts with its error`, async () => {
        const outcomes = new Map<string, string | null>()
        for (const [name, call] of Object.entries(CALLS)) {
          const exchange = await fresh(fixture)
          outcomes.set(name, await errorOf(call(exchange)))
        }
        const expected = Object.entries(EXPECTED[kind]).map(([name, row]) => [name, row[state]])
        expect(Object.fromEntries(outcomes)).to.deep.equal(Object.fromEntries(expected))
      })
    }
  }
})
