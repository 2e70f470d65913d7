/** Spans of the engine by the rows that it decides and stores. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { EngineSpans } from '../../../keeper/engine/spans.ts'
import { batchSpan, withSpan } from '../../../service/spans.ts'
import { RecordedSpans } from '../../support/recorded-spans.ts'

const CALL = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
const TRACED = withSpan('request-1', CALL)
const AS_OF = 5_000

let seq = 0
/** Rows have many more fields, which no span needs. */
const entryOf = (row: object, shard = 'm1'): Entry => ({ shard, seq: ++seq, row }) as unknown as Entry
const placed = (id: string): Entry => entryOf({ kind: 'order_placed', order_id: id })
const cleared = (batch: number, ...orders: readonly string[]): Entry =>
  entryOf({
    kind: 'batch_cleared',
    batch_id: batch,
    as_of: AS_OF,
    parts: 1,
    fills: orders.map((order_id) => ({ order_id, part: 1 })),
  })

describe('spans of the engine', () => {
  let recorded: RecordedSpans
  let engine: EngineSpans
  beforeEach(() => {
    recorded = new RecordedSpans()
    engine = new EngineSpans(recorded)
  })

  it('when a sampled command is decided and stored, both spans are in its trace with their durations', () => {
    const rows = [placed('1-1'), placed('1-2')]
    engine.decided('orders', 2, rows, TRACED)
    recorded.time = 1_010
    engine.stored(3, rows, 8)
    const [decision, append] = recorded.spans
    expect(decision).to.deep.include({ name: 'decide orders', parent: CALL, startedAt: 998, endedAt: 1_000 })
    expect(decision?.attributes).to.deep.equal({ 'clearbatch.order_ids': ['1-1', '1-2'] })
    expect(append).to.deep.include({
      name: 'append group',
      parent: decision?.ref,
      startedAt: 1_002,
      endedAt: 1_010,
      attributes: { 'clearbatch.group_commands': 3, 'clearbatch.group_rows': 2 },
    })
  })

  it('when a command has a trace id without a span, or no trace id, it has no spans', () => {
    const rows = [placed('1-1')]
    engine.decided('orders', 1, rows, 'request-1')
    engine.decided('orders', 1, rows, undefined)
    engine.stored(2, rows, 1)
    expect(recorded.spans).to.deep.equal([])
  })

  it('when a group is taken back and its commands are decided again, only the stored rows have an append', () => {
    const [first, again] = [[placed('1-1')], [placed('1-1')]]
    engine.decided('orders', 1, first, TRACED)
    engine.decided('orders', 1, again, TRACED)
    engine.stored(1, again, 1)
    engine.stored(1, first, 1)
    expect(recorded.names).to.deep.equal(['decide orders', 'decide orders', 'append group'])
    expect(recorded.spans[2]?.parent).to.deep.equal(recorded.spans[1]?.ref)
  })

  it('when commands of two groups wait, each append is that of its own group', () => {
    const [first, second] = [[placed('1-1')], [placed('1-2')]]
    engine.decided('orders', 1, first, TRACED)
    engine.decided('orders', 1, second, TRACED)
    engine.stored(1, first, 1)
    expect(recorded.named('append group').map(({ parent }) => parent)).to.deep.equal([recorded.spans[0]?.ref])
    engine.stored(1, second, 1)
    expect(recorded.named('append group').at(-1)?.parent).to.deep.equal(recorded.spans[1]?.ref)
  })

  it('when a batch fills sampled and other orders, batch and sampled placements link to each other', () => {
    engine.decided('orders', 1, [placed('1-1')], TRACED)
    engine.decided('orders', 1, [placed('1-2')], 'not-sampled')
    const turn = [cleared(7, '1-1', '1-2', '1-1')]
    engine.decided('turn', 3, turn, undefined)
    engine.stored(1, turn, 1)
    const batch = batchSpan(1, 7, AS_OF)
    const [decision] = recorded.spans
    const [own] = recorded.named('clear batch')
    expect(own).to.deep.include({ ref: batch, parent: null, links: [decision?.ref] })
    expect(own?.attributes).to.include({ 'clearbatch.batch': '1/7', 'clearbatch.orders': 2 })
    expect(recorded.named('fill order')).to.have.length(1)
    expect(recorded.named('fill order')[0]).to.deep.include({ parent: decision?.ref, links: [batch] })
    expect(recorded.named('append group')[0]?.parent).to.deep.equal(batch)
  })

  it('when a part is mined or leaves the chain, the span is under its batch with the transaction', () => {
    const settled = { kind: 'part_settled', batch_id: 7, as_of: AS_OF, part: 2, tx_hash: '0xaa', block: 9 }
    engine.decided('apply_block', 1, [entryOf({ ...settled, rollback: false })], undefined)
    engine.decided('roll_back', 1, [entryOf({ ...settled, rollback: true })], undefined)
    expect(recorded.names).to.deep.equal(['apply part', 'roll back part'])
    expect(recorded.spans[0]).to.deep.include({
      parent: batchSpan(1, 7, AS_OF),
      attributes: {
        'clearbatch.batch': '1/7',
        'clearbatch.part': 2,
        'clearbatch.tx_hash': '0xaa',
        'clearbatch.block': 9,
      },
    })
  })
})
