import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { Auction } from '../../../keeper/auction/auction.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { perpetual } from '../../support/markets.ts'
import { ChainWorld, goBack, useChain } from '../support/chain-world.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/world.ts'

describe('settlement', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let world: ChainWorld
  let auction: Auction
  let auctioning: Fence
  let settling: Fence
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    world = await ChainWorld.openOn(chain())
    await world.report(1000)
    alice = await world.depositor('alice')
    bob = await world.depositor('bob')
    auction = world.auction()
    auctioning = await world.lease('auction:m1')
    settling = await world.lease('settle:m1')
  })

  afterEach(async () => {
    await expectConsistent(world)
    await world.close()
  })

  /** One batch of `steps` between the two. */
  async function match(steps = 20, limit = 1000): Promise<number> {
    await world.place({ by: alice, side: 'LONG', steps, limit })
    await world.place({ by: bob, side: 'SHORT', steps, limit })
    return (await auction.run(auctioning)) as number
  }

  async function expectGapless(): Promise<void> {
    const nonces = [...new Set((await world.transactions()).map(({ nonce }) => nonce))]
    expect(nonces).to.deep.equal(nonces.map((_, at) => at))
    expect(await chain().provider.getTransactionCount(world.lane.relayer)).to.equal(nonces.length)
  }

  it('brings a batch onto the chain and the orders to their end', async () => {
    await match(20)
    const settlement = world.settlement()
    await settlement.start()
    await settlement.settleAll(settling)
    expect(await world.position(alice)).to.equal(20n)
    expect((await world.orders()).map(({ status }) => status)).to.deep.equal(['FILLED', 'FILLED'])
    const [action] = await world.actions()
    expect(action).to.include({ status: 'MINED', action_id: 1, nonce: 0 })
    expect(await world.rows('part_submitted')).to.have.length(1)
    expect((await world.transactions()).map(({ status, purpose }) => [status, purpose])).to.deep.equal([
      ['MINED', 'settle_part'],
    ])
  })

  it('keeps several parts in flight, in order', async () => {
    for (let batch = 0; batch < 5; batch++) await match(10)
    const settlement = world.settlement()
    await settlement.start()
    await settlement.look(settling)
    expect((await world.transactions()).map(({ status }) => status)).to.deep.equal(Array(5).fill('MINED'))
    await settlement.settleAll(settling)
    expect((await world.actions()).map(({ action_id }) => action_id)).to.deep.equal([1, 2, 3, 4, 5])
    expect(await world.position(bob)).to.equal(-50n)
  })

  it('settles a batch of more than 200 orders in several parts', async () => {
    for (let count = 0; count < 110; count++) {
      await world.place({ by: alice, side: 'LONG', steps: 10, limit: 1000 })
      await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
    }
    await auction.run(auctioning)
    const settlement = world.settlement()
    await settlement.start()
    await settlement.settleAll(settling)
    expect((await world.actions()).map(({ part, status }) => [part, status])).to.deep.equal([
      [1, 'MINED'],
      [2, 'MINED'],
    ])
    expect(await world.position(alice)).to.equal(1100n)
    expect((await world.orders()).every(({ status }) => status === 'FILLED')).to.equal(true)
  })

  it('settles an order over several batches through its partial slot', async () => {
    const buy = await world.place({ by: alice, side: 'LONG', steps: 100, limit: 1000 })
    const settlement = world.settlement()
    await settlement.start()
    for (let count = 0; count < 3; count++) {
      await world.place({ by: bob, side: 'SHORT', steps: 30, limit: 1000 })
      await auction.run(auctioning)
    }
    await settlement.settleAll(settling)
    expect(await world.orderOf(buy)).to.include({ filled: 90, partialSlot: 0, status: 'OPEN' })
    await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
    await auction.run(auctioning)
    await settlement.settleAll(settling)
    expect(await world.orderOf(buy)).to.include({ filled: 100, status: 'FILLED' })
    const next = await world.place({ by: alice, side: 'LONG', steps: 100, limit: 1000 })
    await world.place({ by: bob, side: 'SHORT', steps: 10, limit: 1000 })
    await auction.run(auctioning)
    await settlement.settleAll(settling)
    expect(await world.orderOf(next)).to.include({ filled: 10, partialSlot: 0 })
  })

  describe('after a crash', () => {
    it('between the batch and its settlement, the part is found and settled', async () => {
      await match()
      const settlement = world.settlement()
      await settlement.start()
      await settlement.settleAll(settling)
      expect(await world.position(alice)).to.equal(20n)
    })

    it('after signing, the same bytes are sent', async () => {
      await match()
      const dying = world.settlement({ killPoint: failAt('after-signing') })
      await dying.start()
      await dying.look(settling).catch(() => {})
      const [signed] = await world.transactions()
      expect(signed?.status).to.equal('SIGNED')
      expect(await chain().provider.getTransactionCount(world.lane.relayer)).to.equal(0)

      const settlement = world.settlement()
      await settlement.start()
      await settlement.settleAll(settling)
      expect((await world.transactions()).map(({ tx_hash }) => tx_hash)).to.deep.equal([signed?.tx_hash])
      expect(await world.rows('part_submitted')).to.have.length(1)
      expect(await world.position(alice)).to.equal(20n)
      await expectGapless()
    })

    it('after the broadcast, nothing is filled twice', async () => {
      await match()
      await match(30)
      const dying = world.settlement({ killPoint: failAt('after-broadcast') })
      await dying.start()
      await dying.look(settling).catch(() => {})
      expect(await world.position(alice)).to.equal(50n)
      expect((await world.transactions()).every(({ status }) => status === 'SIGNED')).to.equal(true)

      const settlement = world.settlement()
      await settlement.start()
      await settlement.settleAll(settling)
      expect(await world.position(alice)).to.equal(50n)
      expect(await world.transactions()).to.have.length(2)
      await expectGapless()
    })
  })

  describe('with a node that fails', () => {
    it('given no answer for a while, it sends again and settles once', async () => {
      await match()
      let isAway = true
      const away = (chain: Chain): Chain => ({
        ...chain,
        send: (raw) =>
          isAway ? Promise.resolve({ kind: 'unknown', error: 'timeout' } as const) : chain.send(raw),
      })
      const settlement = world.settlement({ chain: away })
      await settlement.start()
      await settlement.look(settling)
      expect(await world.position(alice)).to.equal(0n)
      await new Promise((resolve) => setTimeout(resolve, 300))
      isAway = false
      await settlement.settleAll(settling)
      expect(await world.transactions()).to.have.length(1)
      await expectGapless()
    })

    it('given an answer that is lost, it finds the receipt', async () => {
      await match()
      const deaf = (chain: Chain): Chain => ({
        ...chain,
        async send(raw) {
          await chain.send(raw)
          return { kind: 'unknown', error: 'connection reset' }
        },
      })
      const settlement = world.settlement({ chain: deaf })
      await settlement.start()
      await settlement.settleAll(settling)
      expect(await world.transactions()).to.have.length(1)
      expect(await world.position(alice)).to.equal(20n)
    })

    it('given a node that only takes and tells nothing, it polls', async () => {
      await match()
      const plain = (through: Chain): Chain => ({
        ...through,
        async send(raw) {
          await chain().provider.send('eth_sendRawTransaction', [raw])
          return { kind: 'sent' }
        },
      })
      const settlement = world.settlement({ chain: plain })
      await settlement.start()
      await settlement.settleAll(settling)
      expect(await world.position(alice)).to.equal(20n)
    })

    it('given a transaction that stays in the pool, it is replaced at a higher fee, and both hashes are kept', async () => {
      await match()
      let swallowed = ''
      const swallowing = (chain: Chain): Chain => ({
        ...chain,
        send(raw) {
          swallowed ||= raw
          return raw === swallowed ? Promise.resolve({ kind: 'sent' }) : chain.send(raw)
        },
      })
      const settlement = world.settlement({ chain: swallowing })
      await settlement.start()
      await settlement.settleAll(settling)
      const [first, second] = await world.transactions()
      expect([first?.nonce, second?.nonce]).to.deep.equal([0, 0])
      expect([first?.status, second?.status]).to.deep.equal(['REPLACED', 'MINED'])
      expect(await world.position(alice)).to.equal(20n)
      await expectGapless()
    })

    it('given a chain that has forgotten its last blocks, the same bytes are sent again in order', async () => {
      const snapshot = await chain().provider.send('evm_snapshot', [])
      await match(10)
      await match(15)
      const settlement = world.settlement()
      await settlement.start()
      await settlement.settleAll(settling)
      const before = (await world.transactions()).map(({ tx_hash }) => tx_hash)
      await goBack(chain(), snapshot)
      expect(await world.position(alice)).to.equal(0n)

      const restarted = world.settlement()
      await restarted.start()
      await restarted.delivery.settled()
      await restarted.settleAll(settling)
      expect((await world.transactions()).map(({ tx_hash }) => tx_hash)).to.deep.equal(before)
      expect(await world.position(alice)).to.equal(25n)
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
