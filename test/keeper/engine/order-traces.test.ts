import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { OrderTraces } from '../../../keeper/engine/order-traces.ts'

let seq = 0
/** Rows have many more fields, which no trace needs. */
const entryOf = (row: object, shard = 'm1'): Entry => ({ shard, seq: ++seq, row }) as unknown as Entry
const placed = (id: string, shard?: string): Entry => entryOf({ kind: 'order_placed', order_id: id }, shard)
const cleared = (batch: number, ...fills: readonly (readonly [order: string, part: number])[]): Entry =>
  entryOf({
    kind: 'batch_cleared',
    batch_id: batch,
    fills: fills.map(([order_id, part]) => ({ order_id, part })),
  })
const submitted = (batch: number, part: number, hash: string): Entry =>
  entryOf({ kind: 'part_submitted', batch_id: batch, part, tx_hash: hash })

describe('traces of orders in debug lines of the engine', () => {
  it('when an order is placed, matched, sent and mined, each line has its id and the trace id of its request', () => {
    const traces = new OrderTraces()
    expect(traces.factsOf([placed('1-1')], 'first')).to.deep.equal({
      trace_ids: ['first'],
      order_ids: ['1-1'],
    })
    traces.factsOf([placed('1-2')], 'second')
    traces.factsOf([placed('1-3')], undefined)
    expect(traces.factsOf([cleared(7, ['1-1', 1], ['1-2', 2], ['1-3', 2])], undefined)).to.deep.equal({
      trace_ids: ['first', 'second'],
      order_ids: ['1-1', '1-2', '1-3'],
      batches: ['1/7/1', '1/7/2'],
    })
    expect(traces.factsOf([submitted(7, 2, '0xaa')], undefined)).to.deep.equal({
      trace_ids: ['second'],
      order_ids: ['1-2', '1-3'],
      batches: ['1/7/2'],
      tx_hashes: ['0xaa'],
    })
    const settled = { batch_id: 7, part: 1, tx_hash: '0xbb', fills: [{ order_id: '1-1' }] }
    expect(traces.factsOf([entryOf({ kind: 'part_settled', ...settled })], undefined)).to.deep.equal({
      trace_ids: ['first'],
      order_ids: ['1-1'],
      batches: ['1/7/1'],
      tx_hashes: ['0xbb'],
    })
    expect(
      traces.factsOf([entryOf({ kind: 'part_confirmed', batch_id: 7, part: 1 })], undefined),
    ).to.deep.equal({ trace_ids: ['first'], order_ids: ['1-1'], batches: ['1/7/1'] })
  })

  it('when a later request ends an order, the line has both trace ids', () => {
    const traces = new OrderTraces()
    traces.factsOf([placed('1-1')], 'placement')
    const ended = entryOf({ kind: 'order_ended', order_id: '1-1' })
    expect(traces.factsOf([ended], 'cancel').trace_ids).to.deep.equal(['cancel', 'placement'])
    // The order still belongs to its placement.
    expect(traces.factsOf([ended], undefined).trace_ids).to.deep.equal(['placement'])
  })

  it('when rows concern no order, no list is added, and a batch of another market is another batch', () => {
    const traces = new OrderTraces()
    expect(traces.factsOf([entryOf({ kind: 'prices_updated' })], undefined)).to.deep.equal({})
    traces.factsOf([cleared(7, ['1-1', 1])], undefined)
    const other = entryOf({ kind: 'part_submitted', batch_id: 7, part: 1, tx_hash: '0xcc' }, 'm2')
    expect(traces.factsOf([other], undefined)).to.deep.equal({ batches: ['2/7/1'], tx_hashes: ['0xcc'] })
  })

  it('when more orders and parts come than are kept, the oldest ones are forgotten', () => {
    const traces = new OrderTraces(2, 1)
    for (const id of ['1-1', '1-2', '1-3']) traces.factsOf([placed(id)], `of ${id}`)
    const ended = (id: string) => traces.factsOf([entryOf({ kind: 'order_ended', order_id: id })], undefined)
    expect(['1-1', '1-2', '1-3'].map((id) => ended(id).trace_ids)).to.deep.equal([
      undefined,
      ['of 1-2'],
      ['of 1-3'],
    ])
    traces.factsOf([cleared(7, ['1-2', 1]), cleared(8, ['1-3', 1])], undefined)
    expect(traces.factsOf([submitted(7, 1, '0x')], undefined).order_ids).to.equal(undefined)
    expect(traces.factsOf([submitted(8, 1, '0x')], undefined).order_ids).to.deep.equal(['1-3'])
  })
})
