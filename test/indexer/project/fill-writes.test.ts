/** How a chunk writes the fills that it changes. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { fillWrites, type ReadFill } from '../../../indexer/project/tables/fills.ts'

const matched = (place: number): ReadFill => ({
  fill_id: `1-3-1-${place}`,
  market_id: 1,
  batch_id: 3,
  part: 1,
  place,
  order_id: `1-${place}`,
  user_id: place,
  side: 'LONG',
  price: 5,
  steps: 1,
  taker_steps: 0,
  protection_price: null,
  fee: null,
  realized_pnl: null,
  available_margin_delta: null,
  forced: false,
  builder: null,
  status: 'MATCHED',
  tx_hash: null,
  block: null,
  action_id: null,
  matched_at: 1,
  submitted_at: null,
  mined_at: null,
  confirmed_at: null,
  failed_at: null,
  failure: null,
  updated_at: 1,
})
const submitted = (place: number): ReadFill => ({
  ...matched(place),
  status: 'SUBMITTED',
  tx_hash: '0x1',
  action_id: 7,
  submitted_at: 2,
  updated_at: 2,
})
const mined = (place: number): ReadFill => ({
  ...submitted(place),
  status: 'MINED',
  fee: 1n,
  realized_pnl: 0n,
  available_margin_delta: -1n,
  block: 9,
  mined_at: 3,
})
const failed = (place: number): ReadFill => ({
  ...matched(place),
  status: 'FAILED',
  failed_at: 2,
  failure: 'x',
})

const writes = (before: readonly ReadFill[], after: readonly ReadFill[]) => {
  const { added, changed, parts } = fillWrites([after], () => before)
  const idsOf = (fills: readonly ReadFill[]) => fills.map(({ place }) => place)
  return { added: idsOf(added), changed: idsOf(changed), parts: idsOf(parts) }
}

describe('the writes of fills', () => {
  it('when a part is matched, its fills are added', () => {
    expect(writes([], [matched(0), matched(1)])).to.deep.equal({ added: [0, 1], changed: [], parts: [] })
  })

  it('when a part is submitted, one row changes all of its fills', () => {
    expect(writes([matched(0), matched(1)], [submitted(0), submitted(1)])).to.deep.equal({
      added: [],
      changed: [],
      parts: [0],
    })
  })

  it('when a part is mined, each fill gets its own amounts', () => {
    expect(writes([submitted(0), submitted(1)], [mined(0), mined(1)])).to.deep.equal({
      added: [],
      changed: [0, 1],
      parts: [],
    })
  })

  it('when a mined part has a fill more, the fill is added', () => {
    expect(writes([submitted(0)], [mined(0), mined(1)])).to.deep.equal({
      added: [1],
      changed: [0],
      parts: [],
    })
  })

  it('when some fills of a part fail, each fill is changed alone', () => {
    expect(writes([matched(0), matched(1)], [failed(0), matched(1)])).to.deep.equal({
      added: [],
      changed: [0, 1],
      parts: [],
    })
  })
})
