/** Adjustments of margin and leverage as the chain has them: write side, read model and the account's transactions, and their rollback. */
import { expect } from 'chai'
import { type BigNumberish, getBytes, keccak256, type Wallet } from 'ethers'
import { describe, it } from 'mocha'
import {
  type Digest,
  hashLeverageAdjustment,
  hashMarginAdjustment,
} from '../../../domain/positions/adjustment-hash.ts'
import { ONE, type Quote, type Seconds } from '../../../domain/units.ts'
import { rebuild } from '../../../indexer/project/rebuild.ts'
import { e18 } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { addressOf, catchUp, projectAll } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { acceptOrder, orderOf } from '../support/resting-order.ts'

const keccak = (message: Uint8Array) => getBytes(keccak256(message))
const DEADLINE = 4_000_000_000 as Seconds

describe('adjustments of positions', () => {
  const fixture = useFollowerFixture()
  let nonce = 0n

  /** The market with its operator, and a report one second after the latest block. */
  async function action() {
    const { exchange } = fixture.context
    const second = (await exchange.latestSecond()) + 1
    await exchange.rpc('evm_setNextBlockTimestamp', second)
    const asOf = second * 1000
    const report = { price: e18('100'), observedAt: asOf, proof: await exchange.report(asOf) }
    return { market: exchange.trader.connect(await exchange.provider.getSigner(1)), asOf, report }
  }

  const authorization = (by: Wallet) => ({ account: addressOf(by), nonce: ++nonce, deadline: DEADLINE })
  const signed = (by: Wallet, digest: Digest) => by.signingKey.sign(digest).serialized

  async function adjustMargin(by: Wallet, amount: bigint, removeMode: 'exact' | 'up_to' = 'exact') {
    const { market, asOf, report } = await action()
    const common = { ...authorization(by), amount: amount as Quote, minAmount: 0n as Quote }
    const digest = hashMarginAdjustment({ ...common, removeMode }, fixture.context.exchange.spec, keccak)
    const struct = { ...common, removeMode: removeMode === 'exact' ? 0 : 1 }
    await (await market.adjustMargin(asOf, struct, report, signed(by, digest))).wait()
  }

  async function adjustLeverage(by: Wallet, leverage: number) {
    const { market, asOf, report } = await action()
    const limits = { maxMarginIn: e18('100000') as Quote, minMarginOut: 0n as Quote }
    const adjustment = { ...authorization(by), leverage, ...limits }
    const digest = hashLeverageAdjustment(adjustment, fixture.context.exchange.spec, keccak)
    const struct = { ...adjustment, leverage: (BigInt(leverage) * ONE) as BigNumberish }
    await (await market.adjustLeverage(asOf, struct, report, signed(by, digest))).wait()
  }

  async function adjustments() {
    await projectAll(fixture.context.test)
    const rows = await fixture.context.test.db
      .selectFrom('read.account_transactions')
      .select(['type', 'amount', 'available_margin_delta', 'funding_payment_delta', 'market_id'])
      .where('type', 'in', ['add_margin', 'remove_margin', 'adjust_leverage'])
      .orderBy('at')
      .orderBy('id')
      .execute()
    return rows.map((row) => {
      expect([row.funding_payment_delta, row.market_id]).to.deep.equal([null, 1])
      return [row.type, row.amount, row.available_margin_delta]
    })
  }

  const transactionsOf = () =>
    fixture.context.test.db.selectFrom('read.account_transactions').selectAll().orderBy('id').execute()

  it('when an owner adds and removes margin and changes leverage, every balance equals the chain, and a fork takes it back', async () => {
    const { exchange, follower, alice, bob, test } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    await adjustMargin(alice, e18('10'))
    await adjustMargin(alice, -e18('4'))
    await adjustLeverage(alice, 10)
    await adjustLeverage(bob, 2)
    await catchUp(follower)
    await fixture.audit()
    expect(await fixture.mismatches()).to.deep.equal([])
    const found = await adjustments()
    expect(found.slice(0, 2)).to.deep.equal([
      ['add_margin', e18('10'), -e18('10')],
      ['remove_margin', e18('4'), e18('4')],
    ])
    const [freed, spent] = found.slice(2) as [[string, bigint, bigint], [string, bigint, bigint]]
    expect([freed[0], spent[0]]).to.deep.equal(['adjust_leverage', 'adjust_leverage'])
    expect([freed[1] === freed[2], spent[1] === -spent[2]]).to.deep.equal([true, true])
    const leverages = await test.db
      .selectFrom('read.positions')
      .select('leverage')
      .orderBy('user_id')
      .execute()
    expect(leverages.map(({ leverage }) => leverage)).to.deep.equal([10, 2])
    const before = await transactionsOf()
    await rebuild(test.db, { limit: 3, killPoint() {} })
    expect(await transactionsOf(), 'rebuilt').to.deep.equal(before)

    await exchange.rpc('anvil_reorg', 3, [])
    await catchUp(follower)
    await fixture.audit()
    expect(await adjustments()).to.deep.equal([['add_margin', e18('10'), -e18('10')]])
    await fixture.expectSameAsFresh()
  })

  it('when an account without a position sets its leverage, a transaction of 0 records it', async () => {
    const { follower, alice, test } = fixture.context
    await fixture.fundAndFollow()
    await adjustLeverage(alice, 7)
    await catchUp(follower)
    await fixture.audit()
    expect(await adjustments()).to.deep.equal([['adjust_leverage', 0n, 0n]])
    const { row } = await test.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', 'm1')
      .orderBy('seq', 'desc')
      .executeTakeFirstOrThrow()
    expect(row).to.deep.include({ kind: 'positions_moved', cause: 'leverage_adjusted', balances: [] })
    const position = await withMirror(test.db).selectFrom('positions').selectAll().executeTakeFirstOrThrow()
    expect([position.size, position.leverage]).to.deep.equal([0, 7])
  })

  it('when an account has an open reduce-only order and a position, an adjustment ends neither', async () => {
    const { follower, alice, test } = fixture.context
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(follower)
    const order = await acceptOrder(test.engine, 1, addressOf(alice), {
      ...{ side: 'SHORT', reduce_only: true, price: 1_100 },
    })
    await adjustMargin(alice, e18('10'))
    await catchUp(follower)
    expect((await orderOf(test.db, order)).status).to.equal('OPEN')
    await fixture.audit()
  })
})
