/** The client's copy of a market's public fills. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { LocalTrades } from '../../../client/live/local-trades.ts'
import type { TopicMessage, TradesData } from '../../../client/live/messages.ts'
import type { PublicPart } from '../../../client/responses.ts'

const part = (batch: number, status: PublicPart['status'], fills?: readonly number[]): PublicPart => ({
  ...{ batch_id: batch, part: 1, status, price: 5, price_e18_raw: '5000000000000000000' },
  ...{ tx_hash: null, block_number: null, created_at: `2026-01-01T00:00:0${batch}Z`, updated_at: '' },
  ...(fills && {
    fills: fills.map((place) => ({
      ...{ fill_id: `7-${batch}-1-${place}`, side: 'LONG' as const, forced: false },
      ...{ quantity: 1, quantity_e18_raw: '1000000000000000000' },
      ...{ taker_quantity: 0, taker_quantity_e18_raw: '0' },
    })),
  }),
})

const message = (
  type: 'snapshot' | 'update',
  parts: readonly PublicPart[],
  removed: TradesData['removed'] = [],
): TopicMessage<TradesData> => ({
  ...{ type, topic: 'market.7.trades', seq: 2, prev_seq: 1, ts: '' },
  data: { market_id: 7, symbol: 'M', removed, parts },
})

const shown = ({ fills }: LocalTrades) => fills.map(({ fill_id, status }) => `${fill_id} ${status}`)

describe('the local copy of public fills', () => {
  it('when a part comes without fills, it changes all of them, and each is whole', () => {
    const trades = new LocalTrades(7)
    trades.apply(message('snapshot', [part(2, 'MATCHED', [0]), part(1, 'MINED', [0, 1])]))
    trades.apply(message('update', [part(2, 'SUBMITTED'), part(3, 'MATCHED', [0])]))
    expect(shown(trades)).to.deep.equal([
      ...['7-1-1-0 MINED', '7-1-1-1 MINED', '7-2-1-0 SUBMITTED', '7-3-1-0 MATCHED'],
    ])
    expect(trades.fills[2]).to.include({ market_id: 7, symbol: 'M', side: 'LONG', quantity: 1, price: 5 })
  })

  it('when fills of a part have two states, each changes by its own item', () => {
    const trades = new LocalTrades(7)
    trades.apply(message('snapshot', [part(1, 'SUBMITTED', [0, 1, 2])]))
    trades.apply(message('update', [part(1, 'MINED', [0, 2]), part(1, 'FAILED', [1])]))
    expect(shown(trades)).to.deep.equal(['7-1-1-0 MINED', '7-1-1-1 FAILED', '7-1-1-2 MINED'])
  })

  it("when a part is removed, its fills are removed before the message's fills are added", () => {
    const trades = new LocalTrades(7)
    trades.apply(message('snapshot', [part(1, 'MINED', [0, 1])]))
    trades.apply(message('update', [part(1, 'RETRYING', [0])], [{ batch_id: 1, part: 1 }]))
    expect(shown(trades)).to.deep.equal(['7-1-1-0 RETRYING'])
  })

  it('when a part changes that is older than the snapshot, it is left out', () => {
    const trades = new LocalTrades(7)
    trades.apply(message('snapshot', [part(2, 'MINED', [0])]))
    trades.apply(message('update', [part(1, 'CONFIRMED')]))
    expect(shown(trades)).to.deep.equal(['7-2-1-0 MINED'])
  })

  it('when a snapshot is full, it names the time of its oldest fills, because other fills of that time may be missing', () => {
    const trades = new LocalTrades(7)
    const places = Array.from({ length: 99 }, (_, place) => place)
    trades.apply(message('snapshot', [part(2, 'MATCHED', places)]))
    expect(trades.from).to.equal('')
    trades.apply(message('snapshot', [part(2, 'MATCHED', places), part(1, 'MINED', [3])]))
    expect(trades.from).to.equal('2026-01-01T00:00:01Z')
  })

  it('when there are more than 10,000 fills, the oldest parts go', () => {
    const trades = new LocalTrades(7)
    const places = Array.from({ length: 4_000 }, (_, place) => place)
    trades.apply(message('snapshot', []))
    for (const batch of [1, 2, 3]) trades.apply(message('update', [part(batch, 'MATCHED', places)]))
    expect(trades.fills.length).to.equal(8_000)
    expect(trades.fills[0]?.batch_id).to.equal(2)
    expect(trades.from).to.equal('2026-01-01T00:00:01Z')
    trades.apply(message('update', [part(4, 'MATCHED', [0])], [{ batch_id: 2, part: 1 }]))
    expect(trades.fills.length).to.equal(4_001)
  })

  it('when a snapshot arrives, it replaces all stored fills', () => {
    const trades = new LocalTrades(7)
    trades.apply(message('snapshot', [part(1, 'MINED', [0])]))
    trades.apply(message('snapshot', [part(2, 'MATCHED', [0])]))
    expect(shown(trades)).to.deep.equal(['7-2-1-0 MATCHED'])
  })
})
