import { expect } from 'chai'
import { describe, it } from 'mocha'
import { advanceFunding, fundingIndexAt } from '../../../domain/prices/funding-state.ts'
import type { FundingIndex, HourlyFunding, Millis, Price, Quote } from '../../../domain/units.ts'
import { minedFunding } from '../../../indexer/ingest/single-actions.ts'
import { perpetual } from '../../support/markets.ts'

const at = (millis: number): Millis => millis as Millis

describe('minedFunding', () => {
  for (const how of ['frozen', 'finalized'] as const) {
    it(`when a market is ${how} while a rate is valid, funding stops, as in the contract`, () => {
      const rate = { rate: 3_600_000n as HourlyFunding, validFrom: at(1_000), validUntil: at(9_000) }
      const running = { index: 7n as FundingIndex, asOf: at(1_000), running: rate }
      const event = {
        ...{ how, actionId: 3, asOf: at(2_000), price: 1n as Price, observedAt: at(1_900) },
        ...{ fundingIndex: 1_007n as FundingIndex, pool: 0n as Quote },
      }
      const mined = minedFunding({ kind: 'market_ended', spec: perpetual, event })
      expect(mined).to.include({ actionId: 3, asOf: 2_000, index: 1_007n })
      const ended = advanceFunding(running, at(2_000), mined?.sets ?? null)
      expect(fundingIndexAt(ended, at(5_000))).to.equal(1_007n)
    })
  }
})
