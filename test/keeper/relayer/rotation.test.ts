/** A market's relayer lane whose key changes: no action is executed twice or lost, and the lane goes on, whether the old key is kept or gone. */
import { expect } from 'chai'
import { Transaction, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import { ACTION_LIFETIME } from '../../../domain/settlement/durations.ts'
import type { Chain } from '../../../keeper/ports.ts'
import { createRelayerStore } from '../../../keeper/relayer/store.ts'
import { perpetual } from '../../support/markets.ts'
import {
  adjustKey,
  type ChainFixture,
  laneKey,
  type SettlementFixture,
  useChain,
} from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'
import { openTrading } from '../support/trading.ts'

/** Both are operators of the market and have gas. */
const FIRST = laneKey
const SECOND = adjustKey
const addressOf = (key: string): string => new Wallet(key).address.toLowerCase()

describe('the rotation of a relayer key', function () {
  this.timeout(90_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let settlement: SettlementFixture
  let auction: Auction
  let settling: Fence
  let alice: Trader
  let bob: Trader
  /** While true, the node of the keeper drops what it is sent. */
  let isSwallowing: boolean

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob } = await openTrading(chain()))
    isSwallowing = false
    await start(FIRST)
  })

  afterEach(async () => {
    try {
      await expectConsistent(fixture)
      expect(await fixture.mode()).to.equal('open')
    } finally {
      await fixture.close()
    }
  })

  const dropping = (wrapped: Chain): Chain => ({
    ...wrapped,
    send: (raw) => (isSwallowing ? Promise.resolve({ kind: 'sent' }) : wrapped.send(raw)),
  })

  /** The keeper restarts with these keys, the present one first. */
  async function start(key: string, ...formerKeys: string[]): Promise<void> {
    settlement = fixture.settlement({ chain: dropping, key, formerKeys })
    await settlement.start(settling)
  }

  async function match(steps: number): Promise<void> {
    await fixture.place({ by: alice, side: 'LONG', steps, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps, limit: 1000 })
    await auction.run()
  }

  const settleAll = (limitMs?: number) => settlement.settleAll(settling, limitMs)
  const statuses = async () => (await fixture.actions()).map(({ status }) => status)
  const numbers = async () =>
    (await fixture.actions()).map(({ action_id, relayer, nonce }) => [action_id, relayer, nonce])
  const signedBy = async (key: string) =>
    (await fixture.transactions()).filter(({ relayer }) => relayer === addressOf(key))

  it('when the keys change to and fro, each settles with its own nonces, and action ids go on', async () => {
    for (const [key, former] of [
      [FIRST, SECOND],
      [SECOND, FIRST],
      [FIRST, SECOND],
    ] as const) {
      await start(key, former)
      await match(10)
      await settleAll()
    }
    expect(await numbers()).to.deep.equal([
      [1, addressOf(FIRST), 0],
      [2, addressOf(SECOND), 0],
      [3, addressOf(FIRST), 1],
    ])
    expect(await statuses()).to.deep.equal(['MINED', 'MINED', 'MINED'])
    expect(await fixture.position(alice)).to.equal(30n)
  })

  it('when the old key is gone with actions in flight, their bytes are sent to their end before the new key signs', async () => {
    isSwallowing = true
    await match(10)
    await match(5)
    await settlement.step(settling)
    await start(SECOND)
    await match(20)
    await settlement.step(settling)
    expect(await signedBy(SECOND)).to.deep.equal([])
    isSwallowing = false
    await settleAll()
    expect(await numbers()).to.deep.equal([
      [1, addressOf(FIRST), 0],
      [2, addressOf(FIRST), 1],
      [3, addressOf(SECOND), 0],
    ])
    expect(await statuses()).to.deep.equal(['MINED', 'MINED', 'MINED'])
    expect(await fixture.position(alice)).to.equal(35n)
  })

  it('when an action was numbered and not signed before the change, the new key signs it with the same action id', async () => {
    settlement = fixture.settlement({
      chain: dropping,
      killPoint: (point) => {
        if (point === 'after-reserving') throw new Error('killed')
      },
    })
    await match(10)
    await settlement.step(settling).catch(() => {})
    expect(await numbers()).to.deep.equal([[1, addressOf(FIRST), 0]])
    await start(SECOND)
    await settleAll()
    expect(await numbers()).to.deep.equal([[1, addressOf(SECOND), 0]])
    expect(await fixture.position(alice)).to.equal(10n)
  })

  it('when the old key is kept and a nonce that it reserved is free again, a transaction of nothing uses it', async () => {
    await match(5)
    await settleAll()
    settlement = fixture.settlement({
      chain: dropping,
      killPoint: (point) => {
        if (point === 'after-reserving') throw new Error('killed')
      },
    })
    await match(10)
    await settlement.step(settling).catch(() => {})
    await start(SECOND, FIRST)
    await settleAll()
    await settlement.delivery.recover(settling)
    await settlement.delivery.settled()
    expect(
      (await signedBy(FIRST)).map(({ nonce, purpose, status }) => [nonce, purpose, status]),
    ).to.deep.equal([
      [0, 'settle_part', 'MINED'],
      [1, 'nothing', 'MINED'],
    ])
  })

  it('when the old key can pay no gas and is gone, its action is given up at the end of its life, and its orders settle with the new key', async () => {
    const { provider } = chain()
    await provider.send('anvil_setBalance', [addressOf(FIRST), '0x0'])
    await match(10)
    await settlement.step(settling)
    const [lost] = await fixture.transactions()
    await start(SECOND)
    await settlement.step(settling)
    expect(await signedBy(SECOND)).to.deep.equal([])
    await settleAll(ACTION_LIFETIME + 20_000)
    expect(await statuses()).to.deep.equal(['REVERTED'])
    await fixture.report(1000, Date.now())
    await auction.run()
    await settleAll()
    expect(await statuses()).to.deep.equal(['REVERTED', 'MINED'])
    expect(await fixture.position(alice)).to.equal(10n)
    await provider.send('anvil_setBalance', [addressOf(FIRST), '0x56bc75e2d63100000'])
    const late = await provider.broadcastTransaction(lost?.raw as string)
    expect((await late.wait().catch(({ receipt }) => receipt))?.status).to.equal(0)
    await settleAll()
    expect(await fixture.position(alice)).to.equal(10n)
  })

  it('when the old key is kept and its transaction is stuck, it is replaced at a higher fee before the new key signs', async () => {
    isSwallowing = true
    await match(10)
    await settlement.step(settling)
    await start(SECOND, FIRST)
    await match(20)
    fixture.clock.value += 4_000
    await settlement.step(settling)
    isSwallowing = false
    await settleAll()
    const first = await signedBy(FIRST)
    expect(first.map(({ nonce, status }) => [nonce, status])).to.have.deep.members([
      [0, 'REPLACED'],
      [0, 'MINED'],
    ])
    expect(await statuses()).to.deep.equal(['MINED', 'MINED'])
    expect(await fixture.position(alice)).to.equal(30n)
  })

  for (const kept of [[], [FIRST]] as const) {
    const having = kept.length === 0 ? 'gone' : 'kept'
    it(`when a fork takes back an action of the old key, which is ${having}, and one of the new key, both settle once`, async () => {
      const saved = await saveChain(chain())
      await match(10)
      await settleAll()
      await start(SECOND, ...kept)
      await match(20)
      await settleAll()
      await restoreChain(chain(), saved)
      await fixture.follow()
      expect(await statuses()).to.deep.equal(['SUBMITTED', 'SUBMITTED'])
      await start(SECOND, ...kept)
      await settleAll(20_000)
      expect(await statuses()).to.deep.equal(['MINED', 'MINED'])
      expect(await fixture.position(alice)).to.equal(30n)
      expect(await signedBy(FIRST)).to.have.length(1)
    })
  }

  it('when a fork lets an action of the new key overtake one of the old key, it is signed again and nothing is voided', async () => {
    const saved = await saveChain(chain())
    await match(10)
    await settleAll()
    await start(SECOND)
    await match(20)
    await settleAll()
    const [second] = await signedBy(SECOND)
    await restoreChain(chain(), saved)
    await chain().provider.broadcastTransaction(second?.raw as string)
    await chain().provider.waitForTransaction(Transaction.from(second?.raw as string).hash as string)
    await fixture.follow()
    await start(SECOND)
    await settleAll(20_000)
    expect(await statuses()).to.deep.equal(['MINED', 'MINED'])
    expect((await signedBy(SECOND)).map(({ status }) => status)).to.deep.equal(['REVERTED', 'MINED'])
    expect(await fixture.position(alice)).to.equal(30n)
  })

  it('when a key of the lane is given to another lane, that lane refuses it', async () => {
    const other = fixture.settlement({ key: FIRST })
    const relayers = createRelayerStore(fixture)
    let problem = ''
    await relayers.register({ ...other.lane, name: 'm2' }, 0).catch((error: Error) => {
      problem = error.message
    })
    expect(problem).to.equal(`relayer ${addressOf(FIRST)} belongs to lane m1: give lane m2 a key of its own`)
  })
})
