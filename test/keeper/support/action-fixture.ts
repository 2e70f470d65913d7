/** Queues single actions on a fixture with a chain, as the jobs that decide on them do. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseEther } from 'ethers'
import type { SingleAction } from '../../../domain/actions/action.ts'
import type { QueueRefusal } from '../../../domain/actions/queue.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import { type FundingState, fundingIndexAt } from '../../../domain/prices/funding-state.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { Address, HourlyFunding, Millis, Price, Steps } from '../../../domain/units.ts'
import type { Verdict } from '../../../domain/verdict.ts'
import { finalFeedIdOf } from '../../../stack/deploy.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { type BuildAction, enqueueOn, type QueueEnd } from '../../support/enqueue.ts'
import { legalDeleveraging, type Shares } from '../../support/legal-deleveraging.ts'
import { PATIENCE } from '../../support/patience.ts'
import { untouchedPositions } from '../../support/untouched-positions.ts'
import type { ChainFixture } from './chain-fixture.ts'
import { addressOf, type Trader } from './market-fixture.ts'

/** A third of the highest first rate of a market at a price of 100. */
export const RATE = (10n ** 14n) as HourlyFunding

const QUEUE_LIMIT_MS = 10_000 * PATIENCE

/** Within this time the market accepts a price that moved by a tenth. */
const REPORT_SPACING_MS = 100

export class ActionFixture {
  readonly #fixture: ChainFixture
  readonly #now: () => number
  #observedAt = 0

  /** `now`: the clock of the database and of the oracle; the fixture's by default. */
  constructor(fixture: ChainFixture, now: () => number = () => fixture.clock.value) {
    this.#fixture = fixture
    this.#now = now
  }

  async headTime(): Promise<Millis> {
    const block = await this.#fixture.chainSide.provider.getBlock('latest')
    return ((block?.timestamp ?? 0) * 1000) as Millis
  }

  async enqueue(build: BuildAction): Promise<Verdict<number | null, QueueRefusal>> {
    const { engine, spec } = this.#fixture
    const headTime = await this.headTime()
    return engine.decide((draft, inputs) => {
      const times = { now: this.#now() as Millis, headTime }
      return enqueueOn(draft, { ...inputs, ...times }, spec.marketId, build)
    })
  }

  /** Queues an action that must be accepted, as soon as one can be mined. Returns its number in the queue. */
  async queue(build: (end: QueueEnd) => SingleAction): Promise<number> {
    for (const deadline = Date.now() + QUEUE_LIMIT_MS; ; await sleep(100)) {
      const verdict = await this.enqueue(build)
      if (verdict.ok && verdict.value !== null) return verdict.value
      // After a fork the chain's time may be too far behind the last action.
      if (!verdict.ok || Date.now() > deadline) throw new Error(`not queued: ${JSON.stringify(verdict)}`)
    }
  }

  /** A new report of the market's price, which auctions use from now on, too. */
  async report(ticks: number): Promise<OracleReport> {
    const { spec, signReport } = this.#fixture
    const price = (BigInt(ticks) * spec.tick) as Price
    const observedAt = Math.max(this.#now(), this.#observedAt + REPORT_SPACING_MS) as Millis
    this.#observedAt = observedAt
    await this.#fixture.report(ticks, observedAt)
    return { price, observedAt, signatures: signReport(price, observedAt) as `0x${string}` }
  }

  async updateFunding(ticks: number, rate: HourlyFunding = RATE, lastsMs = 3_600_000): Promise<number> {
    const report = await this.report(ticks)
    return this.queue(({ asOf }) => ({
      ...{
        kind: 'update_funding',
        asOf,
        rate,
        validUntil: (asOf + lastsMs) as Millis,
        report,
        session: null,
      },
    }))
  }

  async inherit(of: Trader, ticks: number): Promise<number> {
    const report = await this.report(ticks)
    const { backstop } = this.#fixture.chainSide.shared
    const account = addressOf(of.wallet)
    return this.queue(({ asOf }) => ({ kind: 'inherit_position', asOf, account, backstop, report }))
  }

  async deleverage(of: Trader, against: Trader, steps: number, ticks: number): Promise<number> {
    const report = await this.report(ticks)
    const legs = [{ counterparty: addressOf(against.wallet), steps: steps as Steps }]
    const account = addressOf(of.wallet)
    return this.queue(({ asOf }) => ({ kind: 'deleverage', asOf, account, legs, report }))
  }

  /**
   * Queues a deleveraging of an account without equity that the contract accepts as of the end of the queue. Returns its number in the
   * queue; null if there is no such account, or if the shares leave all its counterparties out. No other job may run.
   */
  async deleverageInsolvent(ticks: number, shares: Shares): Promise<number | null> {
    const { spec } = this.#fixture
    const report = await this.report(ticks)
    let isLegal = true
    const build = ({ asOf, funding }: QueueEnd, state: ExchangeState): SingleAction | null => {
      const positions = untouchedPositions(state, spec.marketId)
      const index = fundingIndexAt(funding, asOf)
      const terms = { spec, index, oracle: report.price, backstop: 'unknown' } as const
      const parties = legalDeleveraging(terms, positions, shares)
      isLegal = parties !== null
      return parties && { kind: 'deleverage', asOf, ...parties, report }
    }
    for (const deadline = Date.now() + QUEUE_LIMIT_MS; ; await sleep(100)) {
      const verdict = await this.enqueue(build)
      if (!isLegal) return null
      if (verdict.ok && verdict.value !== null) return verdict.value
      if (!verdict.ok || Date.now() > deadline) throw new Error(`not queued: ${JSON.stringify(verdict)}`)
    }
  }

  /** Submits the final price of a closed market. */
  async reportFinal(price: Price): Promise<OracleReport> {
    const { spec, signFeed } = this.#fixture
    const observedAt = this.#now() as Millis
    const signatures = signFeed(finalFeedIdOf(spec.marketId), price, observedAt) as `0x${string}`
    const market = this.#fixture.trading().connect(this.#fixture.chainSide.admin)
    await (await market.submitFinalReport({ price, observedAt, proof: signatures })).wait()
    return { price, observedAt, signatures }
  }

  finalize(report: OracleReport): Promise<number> {
    return this.queue(({ asOf }) => ({ kind: 'finalize_market', asOf, report }))
  }

  /** The market's backstop may inherit a notional of 1,000 and has that balance. */
  async withBackstop(): Promise<Address> {
    const { spec, chainSide } = this.#fixture
    const { admin, shared } = chainSide
    const backstop = Backstop__factory.connect(shared.backstop, admin)
    await (await backstop.setBacked(spec.trader, true)).wait()
    await (
      await this.#fixture.trading().connect(admin).setBackstop(shared.backstop, parseEther('1000'))
    ).wait()
    await this.#fixture.deposit(shared.backstop, parseEther('1000'))
    await this.#fixture.follow()
    return shared.backstop
  }

  /** Funding after the last queued action. */
  async funding(): Promise<FundingState> {
    let found: FundingState | null = null
    await this.enqueue(({ funding }) => {
      found = funding
      return null
    })
    return found as unknown as FundingState
  }
}
