/** Settlement over a node that responds to a send with a receipt without a block: preconfirmed, and possibly rolled back. */
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { perpetual } from '../../support/markets.ts'
import { preconfirmed, type RpcProxy, startRpcProxy } from '../../support/rpc-proxy.ts'
import { type ChainFixture, type SettlementFixture, useChain } from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Placement, Trader } from '../support/market-fixture.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'
import { openTrading } from '../support/trading.ts'

const stranger = new Wallet(id('stranger'))

describe('settlement over preconfirmed receipts', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let node: RpcProxy
  let fixture: ChainFixture
  let settlement: SettlementFixture
  let auction: Auction
  let settling: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob } = await openTrading(chain()))
    node = await startRpcProxy(chain().anvil.url, preconfirmed)
    settlement = fixture.settlement({ url: node.url })
    await settlement.start(settling)
  })

  afterEach(async () => {
    await node.close()
    try {
      await expectConsistent(fixture)
    } finally {
      await fixture.close()
    }
  })

  const order = (by: Trader, side: Placement['side'], more: Partial<Placement> = {}) =>
    fixture.place({ by, side, steps: 10, limit: 1000, ...more })
  const settleAll = () => settlement.settleAll(settling)

  it('when a part reverts, its receipt is stored once it has a block, and the order that it names ends', async () => {
    const bad = await order(alice, 'LONG', { signer: stranger })
    const good = await order(bob, 'SHORT')
    await auction.run()
    await settlement.step(settling)
    expect((await fixture.transactions())[0]).to.include({ status: 'REVERTED', block: null })
    await settleAll()
    const [reverted] = await fixture.transactions()
    const receipt = await chain().provider.getTransactionReceipt(reverted?.tx_hash as string)
    expect(reverted).to.include({ status: 'REVERTED', block: receipt?.blockNumber })
    expect(reverted?.error).to.match(/^SignerUnauthorized\(/)
    expect(await fixture.orderOf(bad)).to.include({
      status: 'CANCELLED',
      statusReason: 'SETTLEMENT_REVERTED',
    })
    expect(await fixture.orderOf(good)).to.include({ status: 'OPEN', settling: 0 })
    expect(await fixture.mode()).to.equal('open')
  })

  it('when two parts in a row revert without a culprit, the market becomes cancel-only', async () => {
    fixture.signReport = () => `0x${'00'.repeat(65)}`
    await fixture.report(1000)
    await order(alice, 'LONG')
    await order(bob, 'SHORT')
    await auction.run()
    await settleAll()
    expect(await fixture.mode()).to.equal('open')
    await auction.run()
    await settleAll()
    expect(await fixture.mode()).to.equal('cancel_only')
  })

  it('when a preconfirmed revert is rolled back, the same bytes are sent again', async () => {
    const saved = await saveChain(chain())
    await order(alice, 'LONG', { signer: stranger })
    await order(bob, 'SHORT')
    await auction.run()
    await settlement.step(settling)
    const [reverted] = await fixture.transactions()
    expect(reverted).to.include({ status: 'REVERTED', block: null })
    await restoreChain(chain(), saved)
    expect(await chain().provider.getTransactionReceipt(reverted?.tx_hash as string)).to.equal(null)

    await settleAll()
    const after = await fixture.transactions()
    expect(after.map(({ tx_hash }) => tx_hash)).to.deep.equal([reverted?.tx_hash])
    expect(after[0]?.error).to.match(/^SignerUnauthorized\(/)
  })
})
