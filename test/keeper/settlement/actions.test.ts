/** Actions of every kind in one queue: mined in order, followed, rolled back, dropped. On a real chain with the real contracts. */
import { expect } from 'chai'
import { dataLength, dataSlice, Transaction } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Fence } from '../../../db/fence.ts'
import type { HourlyFunding } from '../../../domain/units.ts'
import { IIsolatedTrader__factory } from '../../../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'
import { perpetual } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { loadInputs } from '../../support/rows/batches.ts'
import { ActionFixture, RATE } from '../support/action-fixture.ts'
import { type ChainFixture, useChain } from '../support/chain-fixture.ts'
import type { Auction } from '../support/engine-turns.ts'
import { expectConsistent } from '../support/invariants.ts'
import type { Trader } from '../support/market-fixture.ts'
import { restoreChain, saveChain } from '../support/saved-chain.ts'
import { openTrading } from '../support/trading.ts'

describe('the queue of actions', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let actions: ActionFixture
  let auction: Auction
  let settling: Fence
  let alice: Trader
  let bob: Trader
  let carol: Trader
  let dave: Trader

  beforeEach(async () => {
    ;({ fixture, auction, settling, alice, bob, carol, dave } = await openTrading(chain()))
    actions = new ActionFixture(fixture)
  })

  afterEach(async () => {
    await expectConsistent(fixture)
    await fixture.close()
  })

  /** One batch in which `long` buys from `short`. */
  async function match(
    long: Trader,
    short: Trader,
    steps = 20,
    limit = 1000,
    leverage = 20,
  ): Promise<number> {
    await fixture.place({ by: long, side: 'LONG', steps, limit, leverage })
    await fixture.place({ by: short, side: 'SHORT', steps, limit, leverage: 5 })
    const batch = await auction.run()
    if (batch === null) throw new Error('nothing matched')
    return batch
  }

  const settleAll = () => fixture.settle(settling)

  const statuses = async () => (await fixture.actions()).map(({ kind, status }) => `${kind} ${status}`)
  const mode = () => fixture.mode()
  const minedFunding = () =>
    fixture.db.selectFrom('funding_states').selectAll().orderBy('action_id', 'desc').execute()

  /** Positions, actions and funding of the database are those of the contracts. */
  async function expectAsOnChain(traders: readonly Trader[]): Promise<void> {
    const { actionId } = await fixture.trading().clock()
    const { fundingIndex } = await fixture.trading().lastReference()
    const mined = (await fixture.actions()).filter(({ status }) => status === 'MINED')
    expect(mined.map(({ action_id }) => action_id)).to.deep.equal(mined.map((_, at) => at + 1))
    expect(BigInt(mined.length)).to.equal(actionId)
    expect((await minedFunding())[0]?.funding_index ?? 0n).to.equal(fundingIndex)
    expect((await actions.funding()).index).to.equal(fundingIndex)
    for (const { wallet, account } of traders) {
      const { size } = await fixture.trading().position(wallet.address)
      const stored = await withMirror(fixture.db)
        .selectFrom('positions')
        .select(['size', 'matched_size'])
        .where('user_id', '=', account)
        .executeTakeFirst()
      expect(stored ?? { size: 0, matched_size: 0 }).to.deep.equal({
        size: Number(size),
        matched_size: Number(size),
      })
    }
  }

  it('when kinds are queued between batches, they are mined in order, rolled back by a fork and mined again', async () => {
    await actions.withBackstop()
    const eve = await fixture.depositor('eve')
    await match(alice, bob)
    await match(carol, bob)
    await settleAll()
    const saved = await saveChain(chain())

    await actions.updateFunding(1000)
    const second = await match(dave, bob, 30, 1000, 5)
    await actions.inherit(alice, 970)
    await actions.deleverage(carol, bob, 20, 949)
    await actions.report(950)
    const third = await match(dave, eve, 10, 950, 5)
    const kinds = [
      'settle_part',
      'settle_part',
      'update_funding',
      'settle_part',
      'inherit_position',
      'deleverage',
    ]
    await settleAll()
    expect(await statuses()).to.deep.equal([...kinds, 'settle_part'].map((kind) => `${kind} MINED`))
    await expectAsOnChain([alice, bob, carol, dave])
    expect([
      await fixture.position(alice),
      await fixture.position(bob),
      await fixture.position(carol),
    ]).to.deep.equal([0n, -50n, 0n])
    const marketId = fixture.spec.marketId
    const [before, after] = [
      await loadInputs(fixture.db, marketId, second),
      await loadInputs(fixture.db, marketId, third),
    ]
    expect(before?.fundingIndex).to.not.equal(undefined)
    expect((after?.fundingIndex ?? 0n) > (before?.fundingIndex ?? 0n)).to.equal(true)
    expect((await minedFunding())[0]?.funding_index).to.equal(after?.fundingIndex)
    expect(await fixture.rows('funding_updated')).to.have.length(1)
    const sent = (await fixture.transactions()).map(({ tx_hash }) => tx_hash)

    await restoreChain(chain(), saved)
    await chain().provider.send('evm_mine', [])
    await fixture.follow()
    expect(await minedFunding()).to.deep.equal([])
    expect((await statuses()).slice(2)).to.deep.equal(
      [...kinds.slice(2), 'settle_part'].map((kind) => `${kind} SUBMITTED`),
    )
    const undone = (await fixture.rows('funding_updated', 'positions_moved')).map(
      ({ kind, rollback }) => `${kind} ${rollback}`,
    )
    expect(undone).to.have.members([
      ...['funding_updated false', 'positions_moved false', 'positions_moved false'],
      ...['funding_updated true', 'positions_moved true', 'positions_moved true'],
    ])

    await settleAll()
    expect(await statuses()).to.deep.equal([...kinds, 'settle_part'].map((kind) => `${kind} MINED`))
    await expectAsOnChain([alice, bob, carol, dave])
    expect((await fixture.transactions()).map(({ tx_hash }) => tx_hash)).to.deep.equal(sent)
    expect(await mode()).to.equal('open')
  })

  /** Bytes of the oracle's proof in each transaction, in the order of nonces. */
  async function proofSizes(): Promise<number[]> {
    const contract = IIsolatedTrader__factory.createInterface()
    return (await fixture.transactions()).map(({ raw }) => {
      const { name, args } = contract.parseTransaction({ data: Transaction.from(raw).data })!
      return name === 'settleBatch' ? Number(dataSlice(args.part, 22, 24)) : dataLength(args.report.proof)
    })
  }

  it('when actions in a row use one report, only the first one sends its proof', async () => {
    await match(alice, bob)
    await match(carol, bob)
    await actions.updateFunding(1000)
    await match(carol, dave)
    await match(alice, bob)
    await settleAll()
    expect(await statuses()).to.deep.equal([
      ...['settle_part MINED', 'settle_part MINED', 'update_funding MINED', 'settle_part MINED'],
      'settle_part MINED',
    ])
    expect(await proofSizes()).to.deep.equal([65, 0, 65, 0, 0])
    await match(carol, dave)
    await settleAll()
    expect((await proofSizes()).at(-1)).to.equal(0)
    await expectAsOnChain([alice, bob, carol, dave])
  })

  it('when the action that proves a report is dropped, the next one is signed again with the proof', async () => {
    await match(alice, bob)
    await actions.updateFunding(1000, (RATE * 1000n) as HourlyFunding)
    await match(carol, dave)
    await settleAll()
    expect(await statuses()).to.deep.equal([
      ...['settle_part MINED', 'update_funding REVERTED', 'settle_part MINED'],
    ])
    expect(await proofSizes()).to.deep.equal([65, 65, 0, 65])
    await expectAsOnChain([alice, bob, carol, dave])
  })

  it('when a funding rate is out of range, it is dropped, and the batches behind it settle', async () => {
    await match(alice, bob)
    const wrong = await actions.updateFunding(1000, (RATE * 1000n) as HourlyFunding)
    await match(carol, dave)
    await actions.updateFunding(1000)
    await match(carol, dave)
    await settleAll()
    expect(await statuses()).to.deep.equal([
      ...['settle_part MINED', 'update_funding REVERTED', 'settle_part MINED', 'update_funding MINED'],
      'settle_part MINED',
    ])
    const dropped = (await fixture.actions()).find(({ queue_no }) => queue_no === wrong)
    expect(dropped?.failure).to.match(/^FundingRateOutOfRange\(/)
    const [row, ...others] = await fixture.rows('action_dropped')
    expect(others).to.deep.equal([])
    expect(row).to.include({ action: 'update_funding', queue_no: wrong, reason: dropped?.failure })
    expect(await fixture.rows('batch_voided')).to.deep.equal([])
    expect((await fixture.orders()).every(({ status }) => status === 'FILLED')).to.equal(true)
    await expectAsOnChain([alice, bob, carol, dave])
    expect(await mode()).to.equal('open')
  })

  it('when the backstop cannot inherit, the action is mined without effect and the market stays open', async () => {
    await match(alice, bob)
    const queueNo = await actions.inherit(alice, 970)
    await settleAll()
    const action = (await fixture.actions()).find(({ queue_no }) => queue_no === queueNo)
    expect([action?.status, action?.failure]).to.deep.equal(['MINED', 'NO_BACKSTOP: 0 needed, 0 available'])
    expect(await fixture.rows('inheritance_failed')).to.have.length(1)
    expect(await fixture.db.selectFrom('settlement_mismatches').selectAll().execute()).to.deep.equal([])
    expect(await mode()).to.equal('open')
    await expectAsOnChain([alice, bob])
  })

  it('when an account is healthy, its inheritance is dropped; until then no batch fills its orders', async () => {
    await actions.withBackstop()
    await match(alice, bob)
    await settleAll()
    await actions.inherit(alice, 1000)
    await fixture.place({ by: alice, side: 'SHORT', steps: 20, limit: 1000 })
    await fixture.place({ by: carol, side: 'LONG', steps: 20, limit: 1000 })
    expect(await auction.run()).to.equal(null)
    await settleAll()
    expect((await statuses()).at(-1)).to.equal('inherit_position REVERTED')
    expect(await auction.run()).to.equal(2)
    await settleAll()
    await expectAsOnChain([alice, bob, carol])
  })

  it('when a batch is voided, the single actions behind it are dropped with it', async () => {
    await fixture.place({ by: alice, side: 'LONG', steps: 20, limit: 1000, signer: carol.wallet })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 1000 })
    await auction.run()
    const behind = await actions.updateFunding(1000)
    await settleAll()
    expect(await statuses()).to.deep.equal(['settle_part REVERTED', 'update_funding VOIDED'])
    expect(await fixture.rows('action_dropped')).to.have.length(1)
    expect((await fixture.rows('action_dropped'))[0]).to.include({
      queue_no: behind,
      reason: 'behind a voided batch',
    })
    await actions.updateFunding(1000)
    await settleAll()
    await expectAsOnChain([alice, bob])
  })

  it('when the report of an action is older than that of the queue, the action is not queued', async () => {
    const old = await actions.report(1000)
    await actions.report(1001)
    await match(alice, bob)
    const verdict = await actions.enqueue(({ asOf }) => ({
      ...{ kind: 'update_funding', asOf, rate: RATE, validUntil: asOf, report: old, session: null },
    }))
    expect(verdict.ok ? null : verdict.refusal.code).to.equal('REPORT_OLDER')
    await settleAll()
  })
})
