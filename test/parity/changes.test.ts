/**
 * Parameters and mode in force, in domain/ and on the chain: random announcements, cancellations, restrictions, actions and times. The
 * rules of domain/ also predict which calls revert, and no announcement changes the terms in force.
 */
import { expect } from 'chai'
import type { ContractTransactionResponse, Log } from 'ethers'
import {
  afterEvent,
  applyDue,
  type ChainTerms,
  listedTerms,
  modeInForce,
  specAt,
  type TermsEvent,
} from '../../domain/market/changes.ts'
import type { MarketMode } from '../../domain/market/market.ts'
import { isStricter, listedParameters, MARKET_MODES, stricterOf } from '../../domain/market/parameters.ts'
import type { Closing } from '../../domain/risk/ending.ts'
import type { Address, Millis } from '../../domain/units.ts'
import { decodeTraderLog } from '../../indexer/ingest/decode/isolated-trader.ts'
import { parametersOf, REPORT_LIMITS } from '../../stack/deploy.ts'
import { SettlementLens__factory } from '../../typechain-types/factories/SettlementLens__factory.ts'
import { actionOf } from '../contracts/support/risk.ts'
import { type Exchange, nextSecond, perpetualExchange } from '../support/exchange.ts'
import { e18 } from '../support/markets.ts'
import { errorOf } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const STEPS = 120
const DAY_MS = 86_400_000
const GRACE_MS = 5_001
const MILLIONTH = 10n ** 12n
const NO_SESSION = { price: 0n, observedAt: 0, proof: '0x' }

/** The terms by the rules of domain/, folded from the events of the contract. */
class TermsFold {
  terms: ChainTerms
  closing: Closing = { expiresAt: 0 as Millis, settlingAt: 0 as Millis }
  readonly #exchange: Exchange
  readonly counts = new Map<string, number>()

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    const { maxAge, moveBase, moveSlope, moveWindow } = REPORT_LIMITS
    const reports = {
      ...{ maxAge: maxAge as Millis, moveWindow: moveWindow as Millis },
      ...{ moveBase: moveBase / MILLIONTH, moveSlope: moveSlope / MILLIONTH },
    }
    this.terms = listedTerms(listedParameters(exchange.spec, reports))
  }

  /** `asOf`: of the action that was sent; null for an announcement. */
  async apply(sent: ContractTransactionResponse, asOf: number | null): Promise<void> {
    const receipt = await sent.wait()
    const block = await receipt?.getBlock()
    for (const log of receipt?.logs ?? [])
      this.#applyLog(log, (asOf ?? (block?.timestamp ?? 0) * 1000) as Millis)
  }

  #applyLog(log: Log, asOf: Millis): void {
    if ((log.address.toLowerCase() as Address) !== this.#exchange.spec.trader) return
    const fact = decodeTraderLog({ topics: [...log.topics], data: log.data }, this.#exchange.spec)
    if (fact.kind !== 'terms_changed' || fact.event.kind === 'backstop_changed') return
    const event: TermsEvent = fact.event.kind === 'changes_applied' ? { ...fact.event, asOf } : fact.event
    const before = this.terms
    this.terms = afterEvent(this.terms, event)
    if (event.kind === 'changes_applied') {
      // The rule alone leads to what the contract has stored.
      expect(this.terms).to.deep.equal(applyDue(before, asOf))
    }
    if (fact.times?.settling_at !== undefined)
      this.closing = { ...this.closing, settlingAt: fact.times.settling_at as Millis }
    this.counts.set(event.kind, (this.counts.get(event.kind) ?? 0) + 1)
  }
}

type Sent = Promise<ContractTransactionResponse>

interface Operation {
  /** `asOf` of an action; null for an announcement. */
  readonly asOf: number | null
  readonly send: () => Sent
  /** Name of the error with which the call must revert; null: it must succeed. */
  readonly error: string | null
}

/** The error of a restriction to `mode` at `now`, by the terms before it. */
function restrictionError({ terms, closing }: TermsFold, mode: MarketMode, now: Millis): string | null {
  const chain = applyDue(terms, now)
  const inForce = modeInForce({ mode: 'open', chain, closing }, now)
  const current = stricterOf(inForce, chain.pending.restriction?.mode ?? 'open')
  const withdraws = chain.pending.mode !== null && isStricter(mode, chain.pending.mode.mode)
  return isStricter(mode, current) || withdraws ? null : 'ModeNotStricter'
}

/** Draws one call, to be mined at `now`. */
async function draw(
  exchange: Exchange,
  fold: TermsFold,
  now: Millis,
  random: (end: number) => number,
): Promise<Operation> {
  const trader = exchange.trader.connect(exchange.admin)
  const isScheduled = applyDue(fold.terms, now).pending.parameters !== null
  const modeAt = (at: Millis) => modeInForce({ mode: 'open', chain: fold.terms, closing: fold.closing }, at)
  const kind = random(6)
  if (kind === 0) {
    const next = {
      ...parametersOf(exchange.spec),
      ...[{ maxLeverage: 1 + random(20) }, { imr: 50_000 }, { takerFee: random(1000) + 100 }][random(3)],
      mtbLong: 1 + random(100_000),
      reportMaxAge: 1_000 + random(9_000),
      mode: MARKET_MODES.indexOf(modeAt(now)),
    }
    const activeFrom = now + DAY_MS - 1 + random(5_000)
    const early = activeFrom < now + DAY_MS ? 'ChangeTooEarly' : null
    const send = () => trader.scheduleParameters(next, activeFrom)
    return { asOf: null, send, error: early ?? (isScheduled ? 'ParametersAlreadyScheduled' : null) }
  }
  if (kind === 1 || kind === 2) {
    const send = () => trader.cancelScheduledParameters()
    return { asOf: null, send, error: isScheduled ? null : 'NoParametersScheduled' }
  }
  if (kind === 3) {
    const [mode, activeFrom] = [random(3), now + GRACE_MS + random(20_000)]
    return { asOf: null, send: () => trader.scheduleMode(mode, activeFrom), error: null }
  }
  if (kind === 4) {
    const mode = 1 + random(2)
    const error = restrictionError(fold, MARKET_MODES[mode] as MarketMode, now)
    return { asOf: null, send: () => trader.restrictMode(mode), error }
  }
  const asOf = (now + random(2_000)) as Millis
  const { actionId, report } = await actionOf(exchange, { price: e18('500'), asOf, observedAt: asOf })
  return {
    asOf,
    send: () => exchange.trader.updateFunding(actionId, asOf, 0n, asOf + 1_000, report, NO_SESSION),
    error: isStricter(modeAt(asOf), 'cancel_only') ? 'MarketNotOpen' : null,
  }
}

describe('parity: announced changes of a market', function () {
  this.timeout(300_000)

  for (const seed of [1, 2, 3, 4]) {
    it(`when changes are announced, dropped and due at random times, seed ${seed}, both have the same terms in force`, async () => {
      const exchange = await perpetualExchange()
      const { spec, connection } = exchange
      const { time } = connection.networkHelpers
      const lens = await new SettlementLens__factory(exchange.admin).deploy()
      const random = randomOf(seed)
      const fold = new TermsFold(exchange)
      const seen = new Map<string, number>()
      for (let step = 0; step < STEPS; step++) {
        const { pending } = fold.terms
        const edges = [pending.parameters, pending.mode, pending.restriction]
          .filter((change) => change !== null)
          .map(({ activeFrom }) => activeFrom as number)
        const next = await nextSecond(exchange)
        const wanted = [
          next,
          next + random(8),
          next + random(20_000),
          Math.ceil((edges[0] ?? 0) / 1000) + 1 - random(3),
        ]
        const second = Math.max(next, wanted[random(4)] as number)
        const now = (second * 1000) as Millis
        await time.setNextBlockTimestamp(second)
        const before = applyDue(fold.terms, now)
        const { asOf, send, error } = await draw(exchange, fold, now, random)
        const sent: ContractTransactionResponse[] = []
        const found = await errorOf(send().then((each) => sent.push(each)))
        expect(found, `step ${step}`).to.equal(error)
        const outcome = found ?? (asOf === null ? 'announced' : 'acted')
        seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
        // A rejected transaction mines no block.
        if (found !== null) await time.increaseTo(second)
        for (const each of sent) await fold.apply(each, asOf)
        if (asOf === null) {
          const { parameters, mode } = applyDue(fold.terms, now)
          expect({ parameters, mode }, `in force, step ${step}`).to.deep.equal({
            parameters: before.parameters,
            mode: before.mode,
          })
        }

        const { asOf: lastAsOf } = await exchange.trader.clock()
        for (const at of [now, now + 2_000, ...edges.flatMap((edge) => [edge - 1, edge])]) {
          if (BigInt(at) < lastAsOf || at < now) continue
          const inForce = await lens.termsAt(exchange.trader, at)
          const chain = fold.terms
          const own = specAt(spec, chain, at as Millis)
          expect(
            modeInForce({ mode: 'open', chain, closing: fold.closing }, at as Millis),
            `mode at ${at}, step ${step}`,
          ).to.equal(MARKET_MODES[Number(inForce.mode)])
          expect([
            BigInt(own.maxLeverage),
            own.imr / MILLIONTH,
            own.takerFee / MILLIONTH,
            own.mtbLong / MILLIONTH,
            BigInt(applyDue(chain, at as Millis).parameters.reports?.maxAge ?? 0),
          ]).to.deep.equal([
            inForce.parameters.maxLeverage,
            inForce.parameters.imr,
            inForce.parameters.takerFee,
            inForce.parameters.mtbLong,
            inForce.parameters.reportMaxAge,
          ])
        }
      }
      for (const kind of ['parameters_scheduled', 'mode_scheduled', 'mode_restricted', 'changes_applied'])
        expect(fold.counts.get(kind) ?? 0, kind).to.be.greaterThan(0)
      for (const outcome of [
        ...['announced', 'acted', 'MarketNotOpen', 'ModeNotStricter'],
        ...['NoParametersScheduled', 'ParametersAlreadyScheduled'],
      ])
        expect(seen.get(outcome) ?? 0, outcome).to.be.greaterThan(0)
    })
  }
})
