/** A relayer lane whose nonces the chain sees otherwise: foreign transactions of the key, forks that take a nonce back. */
import { expect } from 'chai'
import { id, Transaction, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { Chain } from '../../../keeper/ports.ts'
import type { Clock } from '../../../service/clock.ts'
import { perpetual } from '../../support/markets.ts'
import {
  type ChainFixture,
  foreignTransaction,
  type SettlementFixture,
  useChain,
} from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import { type Placement, realClock, type Trader } from '../support/market-fixture.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'
import { openTrading } from '../support/trading.ts'

const stranger = new Wallet(id('stranger'))

describe('the nonces of a relayer lane', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let settlement: SettlementFixture
  let auction: Auction
  let settling: Fence
  let alice: Trader
  let bob: Trader
  let sent: string[]

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob } = await openTrading(chain()))
    sent = []
    await start()
  })

  afterEach(async () => {
    try {
      await expectConsistent(fixture)
      expect(await fixture.mode()).to.equal('open')
    } finally {
      await fixture.close()
    }
  })

  const recording = (chain: Chain): Chain => ({
    ...chain,
    send(raw) {
      sent.push(Transaction.from(raw).hash as string)
      return chain.send(raw)
    },
  })

  async function start(wrap: (chain: Chain) => Chain = (chain) => chain, clock: Clock = fixture.clock) {
    settlement = fixture.settlement({ chain: (chain) => recording(wrap(chain)), clock })
    await settlement.start(settling)
  }

  async function match(steps: number, more: Partial<Placement> = {}): Promise<void> {
    await fixture.place({ by: alice, side: 'LONG', steps, limit: 1000, ...more })
    await fixture.place({ by: bob, side: 'SHORT', steps, limit: 1000 })
    await auction.run()
  }

  const settleAll = () => settlement.settleAll(settling)
  /** Also the receipts that the indexer did not wait for. */
  async function recordedTransactions() {
    await settlement.step(settling)
    return (await fixture.transactions()).map(({ nonce, purpose, status }) => [nonce, purpose, status])
  }
  const statusOfActions = async () => (await fixture.actions()).map(({ status }) => status)
  const usedNonces = () => chain().provider.getTransactionCount(fixture.lane.relayer)

  it('when a foreign transaction uses the nonce of a signed part, the part is voided and settles with the next nonce', async () => {
    await foreignTransaction(chain(), 0)
    await match(20)
    await settleAll()
    expect(await statusOfActions()).to.deep.equal(['REVERTED'])
    expect((await fixture.orders()).map(({ status, settling }) => [status, settling])).to.deep.equal([
      ['OPEN', 0],
      ['OPEN', 0],
    ])
    await auction.run()
    await settleAll()
    expect(await statusOfActions()).to.deep.equal(['REVERTED', 'MINED'])
    expect(await fixture.position(alice)).to.equal(20n)
    expect(await usedNonces()).to.equal(2)
  })

  it('when the lane is idle, foreign nonces are skipped before the next part is signed', async () => {
    const clock = realClock()
    await start((chain) => chain, clock)
    await foreignTransaction(chain(), 0)
    await foreignTransaction(chain(), 1)
    clock.value += 6_000
    await settlement.step(settling)
    await match(20)
    await settleAll()
    expect((await fixture.actions()).map(({ status, nonce }) => [status, nonce])).to.deep.equal([
      ['MINED', 2],
    ])
  })

  it('when a foreign transaction uses the first of several nonces in flight, all their parts are voided once', async () => {
    let isSwallowing = true
    await start((chain) => ({
      ...chain,
      send: (raw) => (isSwallowing ? Promise.resolve({ kind: 'sent' }) : chain.send(raw)),
    }))
    await match(10)
    await match(15)
    await settlement.step(settling)
    await foreignTransaction(chain(), 0)
    isSwallowing = false
    await settleAll()
    expect(await statusOfActions()).to.deep.equal(['REVERTED', 'VOIDED'])
    await auction.run()
    await settleAll()
    expect((await statusOfActions()).at(-1)).to.equal('MINED')
    expect(await fixture.position(alice)).to.equal(25n)
  })

  it('when a fork removes a voided revert, a transaction of nothing uses its nonce and the voided part is not sent again', async () => {
    const saved = await saveChain(chain())
    await match(10, { signer: stranger })
    await settleAll()
    expect(await statusOfActions()).to.deep.equal(['REVERTED'])
    const [voided] = await fixture.transactions()
    await restoreChain(chain(), saved)
    sent.length = 0

    await match(20)
    await settleAll()
    expect(sent).not.to.include(voided?.tx_hash)
    expect(await recordedTransactions()).to.deep.equal([
      [0, 'settle_part', 'REPLACED'],
      [0, 'nothing', 'MINED'],
      [1, 'settle_part', 'MINED'],
    ])
    expect(await fixture.position(alice)).to.equal(20n)
    expect(await usedNonces()).to.equal(2)
  })

  it('when a fork removes a voided revert between two mined parts, the mined parts are sent again in order', async () => {
    const saved = await saveChain(chain())
    await match(10)
    await settleAll()
    await match(7, { signer: stranger })
    await settleAll()
    await match(15)
    await settleAll()
    expect(await statusOfActions()).to.deep.equal(['MINED', 'REVERTED', 'MINED'])
    const voided = (await fixture.transactions())[1]?.tx_hash
    await restoreChain(chain(), saved)
    sent.length = 0

    await start()
    await settlement.delivery.settled()
    await settleAll()
    expect(sent).not.to.include(voided)
    expect(await fixture.position(alice)).to.equal(25n)
    expect(await usedNonces()).to.equal(3)
  })

  it('when a fork puts a foreign transaction in the place of a mined part, the part is voided and settles later', async () => {
    const saved = await saveChain(chain())
    await match(20)
    await settleAll()
    await restoreChain(chain(), saved)
    await foreignTransaction(chain(), 0)
    await fixture.follow()
    expect(await statusOfActions()).to.deep.equal(['SUBMITTED'])
    await settleAll()
    expect(await statusOfActions()).to.deep.equal(['REVERTED'])
    await auction.run()
    await settleAll()
    expect(await statusOfActions()).to.deep.equal(['REVERTED', 'MINED'])
    expect(await fixture.position(alice)).to.equal(20n)
  })

  it('when a fork removes foreign transactions, transactions of nothing use their nonces', async () => {
    const saved = await saveChain(chain())
    await foreignTransaction(chain(), 0)
    await foreignTransaction(chain(), 1)
    await start()
    await restoreChain(chain(), saved)
    await match(20)
    await settleAll()
    expect(await recordedTransactions()).to.deep.equal([
      [0, 'nothing', 'MINED'],
      [1, 'nothing', 'MINED'],
      [2, 'settle_part', 'MINED'],
    ])
  })

  const storeActionId = (last_action_id: number) =>
    fixture.db.updateTable('markets').set({ last_action_id }).execute()
  const storedActionId = async () =>
    (await fixture.db.selectFrom('markets').select('last_action_id').executeTakeFirstOrThrow()).last_action_id

  it('when the stored action id differs from the contract at the start, the lane adopts the one of the contract', async () => {
    await storeActionId(7)
    await start()
    expect(await storedActionId()).to.equal(0)
    await match(20)
    await settleAll()
    expect((await fixture.actions()).map(({ status, action_id }) => [status, action_id])).to.deep.equal([
      ['MINED', 1],
    ])
  })

  it('when a part reverts because of its action id, the lane adopts the one of the contract after the void', async () => {
    await match(10)
    await settleAll()
    await match(5)
    await settleAll()
    await storeActionId(0)
    await match(20)
    await settleAll()
    expect((await fixture.transactions()).at(-1)?.error).to.match(/^unnamed: ActionOutOfOrder\(/)
    expect(await storedActionId()).to.equal(2)
    await auction.run()
    await settleAll()
    expect((await fixture.actions()).at(-1)).to.include({ status: 'MINED', action_id: 3 })
    expect(await fixture.position(alice)).to.equal(35n)
  })

  it('when a part is in flight at the start, the stored action id stays', async () => {
    let isSwallowing = true
    const swallowing = (chain: Chain): Chain => ({
      ...chain,
      send: (raw) => (isSwallowing ? Promise.resolve({ kind: 'sent' }) : chain.send(raw)),
    })
    await start(swallowing)
    await match(20)
    await settlement.step(settling)
    await start(swallowing)
    expect(await storedActionId()).to.equal(1)
    isSwallowing = false
    await settleAll()
    expect((await fixture.actions()).map(({ status, action_id }) => [status, action_id])).to.deep.equal([
      ['MINED', 1],
    ])
  })

  it('when the keeper crashes before it sends a transaction of nothing, its successor sends the stored one', async () => {
    const saved = await saveChain(chain())
    await foreignTransaction(chain(), 0)
    await start()
    await restoreChain(chain(), saved)
    await start((chain) => ({
      ...chain,
      send: () => Promise.reject(new Error('crashed before the broadcast')),
    }))
    await settlement.delivery.settled()
    const stored = (await fixture.transactions()).map(({ tx_hash }) => tx_hash)
    expect(stored).to.have.length(1)
    sent.length = 0
    await start()
    await match(20)
    await settleAll()
    expect(sent).to.include(stored[0])
    expect(await recordedTransactions()).to.deep.equal([
      [0, 'nothing', 'MINED'],
      [1, 'settle_part', 'MINED'],
    ])
  })
})
