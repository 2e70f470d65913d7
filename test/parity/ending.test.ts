/** The close of a market in domain/ and on the chain: random reports at the edges of every time. */
import { expect } from 'chai'
import {
  type Ending,
  isFinalizable,
  isUnreported,
  listedEnding,
  modeAt,
  reportableUntil,
  submitFinalReport,
} from '../../domain/risk/ending.ts'
import type { Millis, Price } from '../../domain/units.ts'
import { SettlementLens__factory } from '../../typechain-types/factories/SettlementLens__factory.ts'
import { actionOf, DAY, finalFeedOf, settleMode } from '../contracts/support/risk.ts'
import { type Exchange, futureExchange, nextSecond, perpetualExchange, restart } from '../support/exchange.ts'
import { e18 } from '../support/markets.ts'
import { errorOf } from '../support/parity.ts'
import { randomOf } from '../support/random.ts'

const STEPS = 40
const MODES = ['open', 'cancel_only', 'halted', 'settling', 'settled'] as const
const REFUSALS: Readonly<Record<string, string>> = {
  MarketNotClosed: 'MARKET_NOT_CLOSED',
  FinalReportLate: 'LATE',
  FinalReportEarly: 'EARLY',
  ReportAhead: 'AHEAD',
  FinalReportSuperseded: 'SUPERSEDED',
}

async function onChain({ trader }: Exchange): Promise<Ending> {
  const { expiresAt, settlingAt, disputeWindow, reportedAt, observedAt, price } = await trader.ending()
  const ms = (at: bigint): Millis => Number(at) as Millis
  const report = { price: price as Price, observedAt: ms(observedAt), reportedAt: ms(reportedAt) }
  return {
    ...{ expiresAt: ms(expiresAt), settlingAt: ms(settlingAt), disputeWindow: ms(disputeWindow) },
    report: reportedAt === 0n ? null : report,
  }
}

describe('parity: the end of a market', function () {
  this.timeout(120_000)
  beforeEach(restart)
  after(restart)

  for (const [fixture, seeds] of [
    [perpetualExchange, [1, 2]],
    [futureExchange, [3, 4]],
  ] as const) {
    for (const seed of seeds) {
      it(`when reports reach ${fixture.name} at random times, seed ${seed}, both accept the same ones`, async () => {
        const exchange = await fixture()
        const { trader, spec, connection } = exchange
        const { time } = connection.networkHelpers
        const lens = await new SettlementLens__factory(exchange.admin).deploy()
        const random = randomOf(seed)
        expect(await onChain(exchange)).to.deep.equal(listedEnding(spec))
        const closesAt = await settleMode(exchange)
        let ending: Ending = { ...listedEnding(spec), settlingAt: closesAt as Millis }
        let replacements = 0
        for (let step = 0; step < STEPS; step++) {
          expect(await onChain(exchange)).to.deep.equal(ending)
          // Most steps are seconds apart, others hours, and some reach the last second of a period.
          const until = Math.floor((reportableUntil(ending) as number) / 1000)
          const next = await nextSecond(exchange)
          const soon = [next, next + random(90), closesAt / 1000 - 1 + random(90)]
          const far = [next + random(DAY / 8), until + random(2)]
          const at = (random(10) > 0 ? soon[random(3)] : far[random(2)]) as number
          const blockTime = Math.max(at, next) * 1000
          const around = [closesAt, ending.report?.observedAt ?? closesAt, blockTime + 2000]
          const drawn = (around[random(3)] as number) - 1 + random(3)
          const observedAt = (random(3) === 0 ? (ending.report?.observedAt ?? drawn) : drawn) as Millis
          // Reports of one moment with the same price, and with another one.
          const price = e18(['500', '500.1'][random(2)] as string) as Price
          const { report } = await actionOf(exchange, { price, observedAt, feedId: finalFeedOf(exchange) })
          await time.setNextBlockTimestamp(blockTime / 1000)
          const error = await errorOf(trader.submitFinalReport(report))
          // A rejected transaction mines no block.
          if (error !== null) await time.increaseTo(blockTime / 1000)
          const verdict = submitFinalReport(spec, ending, { price, observedAt }, blockTime as Millis)
          expect(error === null ? null : REFUSALS[error], `step ${step}: ${error}`).to.equal(
            verdict.ok ? null : verdict.refusal,
          )
          const isSameMoment = verdict.ok && ending.report?.observedAt === observedAt
          if (isSameMoment) replacements += 1
          if (verdict.ok) ending = verdict.value
          const preview = await lens.previewEnding(trader, { blockTag: 'latest' })
          expect([preview.finalizable, preview.freezable]).to.deep.equal([
            isFinalizable(ending, blockTime as Millis),
            isUnreported(ending, blockTime as Millis),
          ])
        }
        // Only a perpetual's report can be replaced by another price of its moment.
        expect(replacements > 0).to.equal(spec.kind === 'perpetual')
      })
    }
  }

  it('when a market reaches its expiry or settling time, both have mode settling from the same millisecond', async () => {
    for (const fixture of [perpetualExchange, futureExchange]) {
      const exchange = await fixture()
      const lens = await new SettlementLens__factory(exchange.admin).deploy()
      const alike = async (times: readonly number[]): Promise<void> => {
        const ending = await onChain(exchange)
        for (const at of times) {
          const { mode } = await lens.termsAt(exchange.trader, Math.max(at, 0))
          expect(MODES[Number(mode)]).to.equal(modeAt('open', ending, at as Millis))
        }
      }
      const { expiresAt } = exchange.spec
      await alike([expiresAt - 1, expiresAt])
      const closesAt = (await nextSecond(exchange)) * 1000 + 2 * DAY * 1000
      await exchange.trader.connect(exchange.admin).scheduleMode(3, closesAt)
      await alike([closesAt - 1, closesAt, closesAt + 1, expiresAt - 1, expiresAt])
    }
  })
})
