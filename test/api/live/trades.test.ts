/** The topic `market.<id>.trades`: what fills of a part have in common is sent once, and known fills are not sent again. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { tradesChannel } from '../../../api/live/channels/trades.ts'
import type { FeedRow } from '../../../api/live/feed-row.ts'
import type { FeedFill } from '../../../db/feed-changes.ts'
import { perpetual } from '../../support/markets.ts'

const { marketId } = perpetual

const fill = (place: number, changes: Partial<FeedFill>): FeedFill => ({
  ...{ fill_id: `${marketId}-9-${place}`, market_id: marketId, batch_id: 3, part: 1, place, order_id: 'o' },
  ...{ user_id: 1, side: 'LONG', price: 10, steps: 2, taker_steps: 1, protection_price: null, forced: false },
  ...{ fee: null, realized_pnl: null, available_margin_delta: null, status: 'MATCHED' },
  ...{ tx_hash: null, block: null, action_id: null, matched_at: 1_000, submitted_at: null, mined_at: null },
  confirmed_at: null,
  failed_at: null,
  failure: null,
  updated_at: 1_000,
  builder: null,
  ...changes,
})

const sent = (fills: readonly FeedFill[]) => {
  const { update } = tradesChannel(perpetual)
  const data = update?.([{ changes: { fills } } as unknown as FeedRow])
  const { parts } = data as { parts: { status: string; part: number; fills?: { fill_id: string }[] }[] }
  return parts.map(({ part, status, fills }) => [part, status, fills?.map(({ fill_id }) => fill_id) ?? null])
}
const mined = { status: 'MINED', tx_hash: '0x1', block: 5, updated_at: 2_000 } as const

describe('the fills of the live feed', () => {
  it('when fills are new, each part has its fills', () => {
    const fills = [fill(0, {}), fill(1, {}), fill(0, { part: 2 })]
    expect(sent(fills)).to.deep.equal([
      [1, 'MATCHED', [`${marketId}-3-1-0`, `${marketId}-3-1-1`]],
      [2, 'MATCHED', [`${marketId}-3-2-0`]],
    ])
  })

  it('when all known fills of a part change alike, they are not sent again', () => {
    const known = { ...mined, is_known: true }
    expect(sent([fill(0, known), fill(1, known)])).to.deep.equal([[1, 'MINED', null]])
  })

  it('when a new part has left the first state in the same chunk, its fills are sent', () => {
    expect(sent([fill(0, { ...mined, is_known: false })])).to.deep.equal([
      [1, 'MINED', [`${marketId}-3-1-0`]],
    ])
  })

  it('when a fill joins a known part, or known fills differ, all are sent by their state', () => {
    const known = { ...mined, is_known: true }
    const both = [`${marketId}-3-1-0`, `${marketId}-3-1-1`]
    expect(sent([fill(0, known), fill(1, mined)])).to.deep.equal([[1, 'MINED', both]])
    expect(sent([fill(0, known), fill(1, { is_known: true, status: 'FAILED' })])).to.deep.equal([
      [1, 'MINED', [both[0]]],
      [1, 'FAILED', [both[1]]],
    ])
  })
})
