/** Spans of the transactions that settle parts. */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { TransactionSpans } from '../../../keeper/relayer/transaction-spans.ts'
import { batchSpan } from '../../../service/spans.ts'
import { RecordedSpans } from '../../support/recorded-spans.ts'

const PART = { marketId: 1, batchId: 7, part: 2, asOf: 5_000 }
const SENT = { relayer: '0xaa', nonce: 4, hash: '0x01' }
const receiptOf = (hash: string, succeeded: boolean) => ({ hash, block: 9, succeeded }) as never

describe('spans of settling transactions', () => {
  let recorded: RecordedSpans
  let spans: TransactionSpans
  beforeEach(() => {
    recorded = new RecordedSpans()
    spans = new TransactionSpans(recorded)
  })

  it('when a part is signed, sent twice, replaced and mined, all spans are under its batch', () => {
    spans.signed(PART, SENT, 990)
    recorded.time = 1_020
    spans.sent(SENT, 1_001, 'unknown')
    spans.sent({ ...SENT, hash: '0x02' }, 1_002, 'sent')
    recorded.time = 1_500
    spans.mined(SENT, receiptOf('0x02', true))
    expect(recorded.names).to.deep.equal([
      'sign part',
      'send transaction',
      'send transaction',
      'mine transaction',
    ])
    for (const { parent } of recorded.spans) expect(parent).to.deep.equal(batchSpan(1, 7, 5_000))
    expect(recorded.spans[3]).to.include({ startedAt: 1_000, endedAt: 1_500 })
    expect(recorded.spans[3]?.attributes).to.deep.equal({
      'clearbatch.batch': '1/7',
      'clearbatch.part': 2,
      'clearbatch.nonce': 4,
      'clearbatch.tx_hash': '0x02',
      'clearbatch.block': 9,
    })
  })

  it('when a transaction reverts, its span is a fault, and a second receipt of the nonce has no span', () => {
    spans.signed(PART, SENT, 990)
    spans.mined(SENT, receiptOf('0x01', false))
    spans.mined(SENT, receiptOf('0x01', false))
    expect(recorded.spans[1]?.error).to.deep.equal({ code: 'reverted', isFault: true })
    expect(recorded.spans).to.have.length(2)
  })

  it('when a transaction settles no part, or was signed before a restart, it has no spans', () => {
    spans.sent(SENT, 1, 'sent')
    spans.mined(SENT, receiptOf('0x01', true))
    expect(recorded.spans).to.deep.equal([])
  })

  it('when more parts are in flight than are followed, the oldest have no further spans', () => {
    for (let nonce = 0; nonce <= 1_000; nonce++) spans.signed(PART, { ...SENT, nonce }, 1)
    recorded.spans.splice(0)
    spans.mined({ ...SENT, nonce: 0 }, receiptOf('0x01', true))
    spans.mined({ ...SENT, nonce: 1 }, receiptOf('0x01', true))
    expect(recorded.spans).to.have.length(1)
  })
})
