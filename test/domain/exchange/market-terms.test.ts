/** Terms of a market that follow from the rows of its journal. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { apply } from '../../../domain/exchange/apply.ts'
import { minedFunding } from '../../../domain/exchange/market-terms.ts'
import { createState } from '../../../domain/exchange/state.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import { fundingIndexAt } from '../../../domain/prices/funding-state.ts'
import type { Millis } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'

const MINED = { rollback: false, block: 1, tx_hash: '0x1', log_index: 0 } as const

const RUNNING: JournalRow = {
  ...MINED,
  kind: 'funding_updated',
  action_id: 2,
  as_of: 1_000,
  at: 1_000,
  rate: '3600000',
  valid_until: 9_000,
  funding_index: '7',
  oracle_price: '1',
  oracle_at: 900,
}

describe('the mined funding of a market', () => {
  for (const how of ['frozen', 'finalized'] as const) {
    it(`when a market is ${how} while a rate is valid, funding stops, as in the contract`, () => {
      const state = createState()
      const shard = `m${perpetual.marketId}`
      const ended: JournalRow = {
        ...MINED,
        kind: 'market_ended',
        action_id: 3,
        as_of: 2_000,
        at: 2_000,
        how,
        price: '1',
        price_at: 1_900,
        funding_index: '1007',
        mode_before: 'open',
      }
      apply(state, { shard, seq: 1, row: { kind: 'market_listed', spec: toStoredSpec(perpetual) } })
      apply(state, { shard, seq: 2, row: RUNNING })
      const indexAt = (at: number) => fundingIndexAt(minedFunding(state, perpetual.marketId), at as Millis)
      expect(indexAt(5_000) > 1_007n, 'the rate is valid').to.equal(true)
      apply(state, { shard, seq: 3, row: ended })
      expect(indexAt(5_000)).to.equal(1_007n)
    })
  }
})
