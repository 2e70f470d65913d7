/** Alters real receipts of the contracts, a batch and an adjustment, so that each yields exactly one kind of mismatch. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { hashMarginAdjustment } from '../../../domain/positions/adjustment-hash.ts'
import {
  type Expectation,
  NO_EVENTS,
  type PartExpectation,
  type ReceiptEvents,
} from '../../../domain/settlement/receipt.ts'
import { reconcile } from '../../../domain/settlement/reconcile.ts'
import type { BatchSettled } from '../../../domain/settlement/settlement.ts'
import type { Quote, Seconds } from '../../../domain/units.ts'
import { decodeTraderLog } from '../../../indexer/ingest/decode/isolated-trader.ts'
import { keccak } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { addressOf } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'

const STRANGER = `0x${'05'.repeat(20)}` as const

describe('a real receipt that is altered', () => {
  const fixture = useFollowerFixture()

  const kindOf = (events: Partial<ReceiptEvents>, expected: Expectation) => {
    const verdict = reconcile({ ...NO_EVENTS, ...events }, expected)
    return verdict.ok ? null : verdict.refusal.kind
  }
  /** The market's facts in the receipt. */
  async function factsOf(hash: string) {
    const { exchange } = fixture.context
    const receipt = await exchange.provider.getTransactionReceipt(hash)
    const own = (receipt?.logs ?? []).filter(({ address }) => address.toLowerCase() === exchange.spec.trader)
    const facts = own.map(({ topics, data }) => decodeTraderLog({ topics, data }, exchange.spec))
    return { facts, logs: own }
  }

  it('when the receipt of a batch is altered, each alteration has its kind', async () => {
    await fixture.fundAndFollow()
    const { facts, logs } = await factsOf(await fixture.trade(fixture.pair(500)))
    const fact = facts.find(({ kind }) => kind === 'part_mined')
    const settled = (fact as { settled: BatchSettled }).settled
    const sent: PartExpectation = {
      ...{ kind: 'part', batchId: settled.batchId, part: 1, parts: settled.parts, price: settled.price },
      ...{ asOf: settled.asOf, actionId: settled.actionId },
      fills: settled.fills.map(({ fill: steps, taker: takerSteps, ...fill }) => ({
        ...fill,
        steps,
        takerSteps,
      })),
    }
    const [first, second] = settled.fills as [(typeof settled.fills)[0], (typeof settled.fills)[0]]
    const fills = (...of: (typeof settled.fills)[0][]) => ({ settled: { ...settled, fills: of } })
    expect(kindOf({ settled }, sent)).to.equal(null)
    expect(kindOf({}, sent)).to.equal('no_trade_execution_events')
    expect(kindOf({ settled, movesPositions: false }, sent)).to.equal('trade_events_without_position_updates')
    expect(kindOf(fills(first), sent)).to.equal('missing_expected_participants')
    expect(kindOf(fills({ ...first, fill: 499 as never }, second), sent)).to.equal(
      'missing_expected_position_updates',
    )
    const unexpected = fills(first, second, { ...second, maker: STRANGER as never })
    expect(kindOf(unexpected, sent)).to.equal('invalid_batch_trade_participant_coverage')
    const forced = fills(first, second, { ...second, isForced: true })
    expect(kindOf(forced, sent)).to.equal('invalid_forced_book_liquidation_fill_coverage')
    const [{ topics, data } = { topics: [], data: '' }] = logs
    const broken = () => decodeTraderLog({ topics, data: data.slice(0, 20) }, fixture.context.exchange.spec)
    expect(broken).to.throw()
    expect(kindOf({ settled, undecodable: 'data too short' }, sent)).to.equal('receipt_decode_exception')
    const account = addressOf(fixture.context.alice)
    const inheritance = { kind: 'inheritance', actionId: null, account, backstop: STRANGER as never } as const
    expect(kindOf({ settled }, inheritance)).to.equal('no_liquidation_settlement_events')
    const deleveraging = { kind: 'deleveraging', actionId: null, account, legs: [] } as const
    expect(kindOf({ settled }, deleveraging)).to.equal('no_adl_settlement_events')
  })

  it('when the receipt of an adjustment is altered, each alteration has its kind', async () => {
    const { exchange, alice } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    const asOf = (await exchange.latestSecond()) * 1000
    await exchange.rpc('evm_setNextBlockTimestamp', asOf / 1000 + 1)
    const amount = e18('100') as Quote
    const signed = { account: addressOf(alice), nonce: 3n, deadline: 4_000_000_000 as Seconds, amount }
    const digest = hashMarginAdjustment(
      { ...signed, removeMode: 'exact', minAmount: 0n as Quote },
      exchange.spec,
      keccak,
    )
    const struct = { ...signed, removeMode: 0, minAmount: 0n }
    const trader = exchange.trader.connect(await exchange.provider.getSigner(1))
    const none = { price: 0n, observedAt: 0, proof: '0x' }
    const transaction = await trader.adjustMargin(
      asOf,
      struct,
      none,
      alice.signingKey.sign(digest).serialized,
    )
    await transaction.wait()
    const { facts } = await factsOf(transaction.hash)
    const [event] = facts.flatMap((fact) => (fact.kind === 'position_adjusted' ? [fact.event] : []))
    if (event === undefined) throw new Error('the receipt has no adjustment')
    const bounds = { lowest: amount, highest: amount, leverage: null }
    const sent = { kind: 'adjustment', account: addressOf(alice), nonce: 3n, ...bounds } as const
    expect(kindOf({ adjusted: [event] }, sent)).to.equal(null)
    expect(kindOf({}, sent)).to.equal('no_account_adjustment_position_updates')
    const other = { ...event, account: STRANGER as never }
    expect(kindOf({ adjusted: [other] }, sent)).to.equal('missing_expected_participants')
    expect(kindOf({ adjusted: [event, other] }, sent)).to.equal(
      'invalid_position_update_participant_coverage',
    )
    const altered = [{ amount: amount + 1n }, { nonce: 4n }, { leverage: 5 }]
    for (const change of altered)
      expect(kindOf({ adjusted: [{ ...event, ...change }] }, sent)).to.equal(
        'missing_expected_position_updates',
      )
    expect(kindOf({ adjusted: [event], movesPositions: false }, sent)).to.equal(
      'missing_expected_position_updates',
    )
  })
})
