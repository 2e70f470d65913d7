/** The chain has what a journal, restored from a backup, has lost. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { actionKey, batchKey } from '../../../domain/exchange/tables/markets.ts'
import { perpetual } from '../../support/markets.ts'
import { catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { matchPart } from '../support/matched-part.ts'

const { marketId } = perpetual

describe('a chain that is ahead of a restored journal', () => {
  const fixture = useFollowerFixture()
  const actions = () => {
    const { actions: rows } = fixture.context.test.engine.state
    return [...rows.rows()].map(({ status, action_id, nonce }) => ({ status, action_id, nonce }))
  }

  it('when a queued part was mined, its action is mined and never signed again, also across a reorg', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fundAndFollow()
    const part = await exchange.part(fixture.pair(500))
    await exchange.send(part)
    await matchPart(test, part, null)
    expect(actions()).to.deep.equal([{ status: 'QUEUED', action_id: null, nonce: null }])
    await catchUp(follower)
    await fixture.audit()
    const adopted = { action_id: part.actionId, nonce: null }
    expect(actions()).to.deep.equal([{ status: 'MINED', ...adopted }])
    const { state } = test.engine
    expect(state.queues.pending(marketId)).to.deep.equal([])
    expect(state.progress.need(marketId).lastActionId).to.equal(part.actionId)
    expect(state.batches.need(batchKey(marketId, part.batchId)).status).to.equal('SETTLED')
    expect(await fixture.mismatches()).to.deep.equal([])

    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(actions()).to.deep.equal([{ status: 'SUBMITTED', ...adopted }])
    await exchange.send(part)
    await catchUp(follower)
    await fixture.audit()
    expect(actions()).to.deep.equal([{ status: 'MINED', ...adopted }])
    expect(state.actions.get(actionKey(marketId, 1))?.status).to.equal('MINED')
  })

  it('when the chain has an unknown batch, the next own batch follows it, and the market is cancel-only', async () => {
    const { exchange, test, follower } = fixture.context
    await fixture.fundAndFollow()
    const part = await exchange.part(fixture.pair(500))
    await exchange.send(part)
    await catchUp(follower)
    await fixture.audit()
    const { state } = test.engine
    expect(state.progress.need(marketId).lastBatchId).to.equal(part.batchId)
    expect(state.markets.need(String(marketId)).mode).to.equal('cancel_only')
    expect(await fixture.mismatches()).to.deep.equal(['invalid_batch_trade_participant_coverage'])
  })
})
