import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { perpetual } from '../../support/markets.ts'
import { type ChainFixture, useChain } from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'
import { openTrading } from '../support/trading.ts'

describe('settlement', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let auction: Auction
  let settling: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob } = await openTrading(chain()))
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await fixture.close()
  })

  /** One batch of `steps` between the two. */
  async function match(steps = 20, limit = 1000): Promise<number> {
    await fixture.place({ by: alice, side: 'LONG', steps, limit })
    await fixture.place({ by: bob, side: 'SHORT', steps, limit })
    return (await auction.run()) as number
  }

  async function expectGapless(): Promise<void> {
    const nonces = [...new Set((await fixture.transactions()).map(({ nonce }) => nonce))]
    expect(nonces).to.deep.equal(nonces.map((_, at) => at))
    expect(await chain().provider.getTransactionCount(fixture.lane.relayer)).to.equal(nonces.length)
  }

  it('when a batch is matched, it is mined and its orders reach their final status', async () => {
    await match(20)
    const settlement = fixture.settlement()
    await settlement.start(settling)
    await settlement.settleAll(settling)
    expect(await fixture.position(alice)).to.equal(20n)
    expect((await fixture.orders()).map(({ status }) => status)).to.deep.equal(['FILLED', 'FILLED'])
    const [action] = await fixture.actions()
    expect(action).to.include({ status: 'MINED', action_id: 1, nonce: 0 })
    expect(await fixture.rows('part_submitted')).to.have.length(1)
    expect((await fixture.transactions()).map(({ status, purpose }) => [status, purpose])).to.deep.equal([
      ['MINED', 'settle_part'],
    ])
  })

  it('when several batches are matched, their parts are in flight together and mined in order', async () => {
    for (let batch = 0; batch < 5; batch++) await match(10)
    const settlement = fixture.settlement()
    await settlement.start(settling)
    await settlement.step(settling)
    expect((await fixture.transactions()).map(({ status }) => status)).to.deep.equal(Array(5).fill('MINED'))
    await settlement.settleAll(settling)
    expect((await fixture.actions()).map(({ action_id }) => action_id)).to.deep.equal([1, 2, 3, 4, 5])
    expect(await fixture.position(bob)).to.equal(-50n)
  })

  it('when a batch fills more than 200 orders, it settles in several parts', async () => {
    for (let count = 0; count < 110; count++) {
      await fixture.place({ by: alice, side: 'LONG', steps: 10, limit: 1000 })
      await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
    }
    await fixture.report(1000)
    await auction.run()
    const settlement = fixture.settlement()
    await settlement.start(settling)
    await settlement.settleAll(settling)
    expect((await fixture.actions()).map(({ part, status }) => [part, status])).to.deep.equal([
      [1, 'MINED'],
      [2, 'MINED'],
    ])
    expect(await fixture.position(alice)).to.equal(1100n)
    expect((await fixture.orders()).every(({ status }) => status === 'FILLED')).to.equal(true)
  })

  it('when an order fills in several batches, it settles through its partial slot', async () => {
    const buy = await fixture.place({ by: alice, side: 'LONG', steps: 100, limit: 1000 })
    const settlement = fixture.settlement()
    await settlement.start(settling)
    for (let count = 0; count < 3; count++) {
      await fixture.place({ by: bob, side: 'SHORT', steps: 30, limit: 1000 })
      await auction.run()
    }
    await settlement.settleAll(settling)
    expect(await fixture.orderOf(buy)).to.include({ filled: 90, partialSlot: 0, status: 'OPEN' })
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
    await auction.run()
    await settlement.settleAll(settling)
    expect(await fixture.orderOf(buy)).to.include({ filled: 100, status: 'FILLED' })
    const next = await fixture.place({ by: alice, side: 'LONG', steps: 100, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
    await auction.run()
    await settlement.settleAll(settling)
    expect(await fixture.orderOf(next)).to.include({ filled: 10, partialSlot: 0 })
  })

  describe('after a crash', () => {
    it('when the crash came before the signing, it finds and settles the part', async () => {
      await match()
      const settlement = fixture.settlement()
      await settlement.start(settling)
      await settlement.settleAll(settling)
      expect(await fixture.position(alice)).to.equal(20n)
    })

    it('when the crash came after the signing, it sends the same bytes', async () => {
      await match()
      const dying = fixture.settlement({ killPoint: failAt('after-signing') })
      await dying.start(settling)
      await dying.step(settling).catch(() => {})
      const [signed] = await fixture.transactions()
      expect(signed?.status).to.equal('SIGNED')
      expect(await chain().provider.getTransactionCount(fixture.lane.relayer)).to.equal(0)

      const settlement = fixture.settlement()
      await settlement.start(settling)
      await settlement.settleAll(settling)
      expect((await fixture.transactions()).map(({ tx_hash }) => tx_hash)).to.deep.equal([signed?.tx_hash])
      expect(await fixture.rows('part_submitted')).to.have.length(1)
      expect(await fixture.position(alice)).to.equal(20n)
      await expectGapless()
    })

    it('when the crash came after the broadcast, it fills nothing twice', async () => {
      await match()
      await match(30)
      const dying = fixture.settlement({ killPoint: failAt('after-broadcast') })
      await dying.start(settling)
      await dying.step(settling).catch(() => {})
      expect(await fixture.position(alice)).to.equal(50n)
      expect((await fixture.transactions()).every(({ status }) => status === 'SIGNED')).to.equal(true)

      const settlement = fixture.settlement()
      await settlement.start(settling)
      await settlement.settleAll(settling)
      expect(await fixture.position(alice)).to.equal(50n)
      expect(await fixture.transactions()).to.have.length(2)
      await expectGapless()
    })
  })

  describe('with a failing node', () => {
    it('when the node does not respond for a while, it sends again and settles once', async () => {
      await match()
      let isAway = true
      const away = (chain: Chain): Chain => ({
        ...chain,
        send: (raw) =>
          isAway ? Promise.resolve({ kind: 'unknown', error: 'timeout' } as const) : chain.send(raw),
      })
      const settlement = fixture.settlement({ chain: away })
      await settlement.start(settling)
      await settlement.step(settling)
      expect(await fixture.position(alice)).to.equal(0n)
      await new Promise((resolve) => setTimeout(resolve, 300))
      isAway = false
      await settlement.settleAll(settling)
      expect(await fixture.transactions()).to.have.length(1)
      await expectGapless()
    })

    it('when the response is lost, it finds the receipt', async () => {
      await match()
      const deaf = (chain: Chain): Chain => ({
        ...chain,
        async send(raw) {
          await chain.send(raw)
          return { kind: 'unknown', error: 'connection reset' }
        },
      })
      const settlement = fixture.settlement({ chain: deaf })
      await settlement.start(settling)
      await settlement.settleAll(settling)
      expect(await fixture.transactions()).to.have.length(1)
      expect(await fixture.position(alice)).to.equal(20n)
    })

    it('when the node does not respond with a receipt, it polls for the receipt', async () => {
      await match()
      const plain = (through: Chain): Chain => ({
        ...through,
        async send(raw) {
          await chain().provider.send('eth_sendRawTransaction', [raw])
          return { kind: 'sent' }
        },
      })
      const settlement = fixture.settlement({ chain: plain })
      await settlement.start(settling)
      await settlement.settleAll(settling)
      expect(await fixture.position(alice)).to.equal(20n)
    })

    it('when a transaction is stuck in the pool, it replaces it at a higher fee and keeps both hashes', async () => {
      await match()
      let swallowed = ''
      const swallowing = (chain: Chain): Chain => ({
        ...chain,
        send(raw) {
          swallowed ||= raw
          return raw === swallowed ? Promise.resolve({ kind: 'sent' }) : chain.send(raw)
        },
      })
      const settlement = fixture.settlement({ chain: swallowing })
      await settlement.start(settling)
      await settlement.settleAll(settling)
      const [first, second] = await fixture.transactions()
      expect([first?.nonce, second?.nonce]).to.deep.equal([0, 0])
      expect([first?.status, second?.status]).to.deep.equal(['REPLACED', 'MINED'])
      expect(await fixture.position(alice)).to.equal(20n)
      await expectGapless()
    })

    it('when the chain loses its last blocks, it sends the same bytes again in order', async () => {
      const saved = await saveChain(chain())
      await match(10)
      await match(15)
      const settlement = fixture.settlement()
      await settlement.start(settling)
      await settlement.settleAll(settling)
      const before = (await fixture.transactions()).map(({ tx_hash }) => tx_hash)
      await restoreChain(chain(), saved)
      expect(await fixture.position(alice)).to.equal(0n)

      const restarted = fixture.settlement()
      await restarted.start(settling)
      await restarted.delivery.settled()
      await restarted.settleAll(settling)
      expect((await fixture.transactions()).map(({ tx_hash }) => tx_hash)).to.deep.equal(before)
      expect(await fixture.position(alice)).to.equal(25n)
      await expectGapless()
    })
  })
})

/** A crash without the end of the process: nothing after the point is done. */
function failAt(point: string): (reached: string) => void {
  return (reached) => {
    if (reached === point) throw new Error(`crashed ${point}`)
  }
}
