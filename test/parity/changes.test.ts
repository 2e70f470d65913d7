/** Parameters and mode in force, in domain/ and on the chain: random announcements, restrictions, actions and times. */
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
import { listedParameters, MARKET_MODES } from '../../domain/market/parameters.ts'
import type { Closing } from '../../domain/risk/ending.ts'
import type { Address, Millis } from '../../domain/units.ts'
import { decodeTraderLog } from '../../indexer/ingest/decode/isolated-trader.ts'
import { parametersOf, REPORT_LIMITS } from '../../stack/deploy.ts'
import { SettlementLens__factory } from '../../typechain-types/factories/SettlementLens__factory.ts'
import { actionOf } from '../contracts/support/risk.ts'
import { type Exchange, nextSecond, perpetualExchange } from '../support/exchange.ts'
import { e18 } from '../support/markets.ts'
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

describe('parity: announced changes of a market', function () {
  this.timeout(300_000)

  for (const seed of [1, 2, 3, 4]) {
    it(`when changes are announced, dropped and due at random times, seed ${seed}, both have the same terms in force`, async () => {
      const exchange = await perpetualExchange()
      const { spec, connection } = exchange
      const trader = exchange.trader.connect(exchange.admin)
      const lens = await new SettlementLens__factory(exchange.admin).deploy()
      const random = randomOf(seed)
      const fold = new TermsFold(exchange)
      const change = () => ({
        ...parametersOf(spec),
        ...[{ maxLeverage: 1 + random(20) }, { imr: 50_000 }, { takerFee: random(1000) + 100 }][random(3)],
        mtbLong: 1 + random(100_000),
        reportMaxAge: 1_000 + random(9_000),
      })
      const changeNow = async () => {
        const { mode } = await lens.termsAt(exchange.trader, (await nextSecond(exchange)) * 1000)
        return { ...change(), mode }
      }
      const operations: (() => Promise<readonly [ContractTransactionResponse, number | null]>)[] = [
        async () => [
          await trader.scheduleParameters(
            await changeNow(),
            (await nextSecond(exchange)) * 1000 + DAY_MS + random(5_000),
          ),
          null,
        ],
        async () => [await trader.cancelScheduledParameters(), null],
        async () => [
          await trader.scheduleMode(
            random(3),
            (await nextSecond(exchange)) * 1000 + GRACE_MS + random(20_000),
          ),
          null,
        ],
        async () => [await trader.restrictMode(1 + random(2)), null],
        async () => {
          const asOf = (await nextSecond(exchange)) * 1000 + random(2_000)
          const { actionId, report } = await actionOf(exchange, { price: e18('500'), asOf, observedAt: asOf })
          const sent = await exchange.trader.updateFunding(actionId, asOf, 0n, asOf, report, NO_SESSION)
          return [sent, asOf]
        },
      ]
      for (let step = 0; step < STEPS; step++) {
        const { time } = connection.networkHelpers
        const edges = [fold.terms.pending.parameters, fold.terms.pending.mode, fold.terms.pending.restriction]
          .filter((pending) => pending !== null)
          .map(({ activeFrom }) => activeFrom as number)
        const next = await nextSecond(exchange)
        const wanted = [
          next,
          next + random(8),
          next + random(20_000),
          Math.ceil((edges[0] ?? 0) / 1000) - random(3),
        ]
        await time.setNextBlockTimestamp(Math.max(next, wanted[random(4)] as number))
        const operation = operations[random(operations.length)] as (typeof operations)[number]
        const done = await operation().catch(() => null)
        if (done === null) await connection.networkHelpers.mine()
        else await fold.apply(...done)

        const { asOf: lastAsOf } = await exchange.trader.clock()
        const now = (await nextSecond(exchange)) * 1000
        for (const at of [now, now + 2_000, ...edges.flatMap((edge) => [edge - 1, edge])]) {
          if (BigInt(at) < lastAsOf) continue
          const found = await lens.termsAt(exchange.trader, at)
          const { chain, ...own } = { chain: fold.terms, mode: 'open' as const, closing: fold.closing }
          const inForce = specAt(spec, chain, at as Millis)
          expect(modeInForce({ chain, ...own }, at as Millis), `mode at ${at}, step ${step}`).to.equal(
            MARKET_MODES[Number(found.mode)],
          )
          expect([
            BigInt(inForce.maxLeverage),
            inForce.imr / MILLIONTH,
            inForce.takerFee / MILLIONTH,
            inForce.mtbLong / MILLIONTH,
            BigInt(applyDue(chain, at as Millis).parameters.reports?.maxAge ?? 0),
          ]).to.deep.equal([
            found.parameters.maxLeverage,
            found.parameters.imr,
            found.parameters.takerFee,
            found.parameters.mtbLong,
            found.parameters.reportMaxAge,
          ])
        }
      }
      for (const kind of ['parameters_scheduled', 'mode_scheduled', 'mode_restricted', 'changes_applied'])
        expect(fold.counts.get(kind) ?? 0, kind).to.be.greaterThan(0)
    })
  }
})
