/** Withdrawals and revocations lock the markets in which the account has orders, and no others; no order of the account survives them. */
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { beforeEach, describe, it } from 'mocha'
import type { Tx } from '../../../db/client.ts'
import { lockShard } from '../../../db/journal.ts'
import { listMarket } from '../../../db/markets.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketId } from '../../../domain/units.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { addressOf, catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { acceptOrder, acceptOrderIn, orderOf } from '../support/resting-order.ts'

const IDLE_MARKETS = [2, 3, 4]

describe('the locks of cancels by the chain', () => {
  const fixture = useFollowerFixture()
  const key = Wallet.createRandom()
  const signer = addressOf(key)

  const manager = () => {
    const { exchange, alice } = fixture.context
    return AccountManager__factory.connect(exchange.shared.accountManager, alice)
  }
  const revoke = async () => (await manager().revokeSessionKey(key.address)).wait()
  async function withdrawAll(): Promise<void> {
    const { exchange, alice } = fixture.context
    const { free } = await exchange.bank.account(alice.address)
    await (await exchange.bank.connect(alice).requestWithdrawal(free)).wait()
  }

  beforeEach(async () => {
    const { exchange, test, follower } = fixture.context
    for (const marketId of IDLE_MARKETS) {
      const trader = addressOf(Wallet.createRandom())
      await listMarket(test.db, {
        ...exchange.spec,
        marketId: marketId as MarketId,
        symbol: `M${marketId}`,
        trader,
      })
    }
    await fixture.fund()
    await (await manager().registerSessionKey(key.address, 3)).wait()
    await catchUp(follower)
  })

  const place = (marketId: number) =>
    acceptOrder(fixture.context.test.db, marketId, addressOf(fixture.context.alice), { signer })
  const inTransaction = (work: (tx: Tx) => Promise<void>) =>
    fixture.context.test.db.transaction().execute(work)
  const statusOf = async (id: string) => (await orderOf(fixture.context.test.db, id)).status

  for (const [name, act] of [
    ['withdraws everything', withdrawAll],
    ['revokes its key', revoke],
  ] as const) {
    it(`when an account ${name}, markets without its orders are not locked, not even where its orders have ended`, async () => {
      const { test, follower } = fixture.context
      const order = await place(1)
      const ended = await place(2)
      await test.db
        .updateTable('orders')
        .set({ status: 'CANCELLED', ended_at: 1, openable: 0, reserved: 0n })
        .where('order_id', '=', ended)
        .execute()
      await test.db.updateTable('accounts').set({ reserved: 70n }).where('reserved', '=', 140n).execute()
      await act()
      await inTransaction(async (tx) => {
        for (const marketId of IDLE_MARKETS) await lockShard(tx, marketShard(marketId))
        await catchUp(follower)
      })
      expect(await statusOf(order)).to.equal('CANCELLED')
    })

    it(`when an account ${name} while it places an order in a new market, that order ends too`, async () => {
      const { alice, follower } = fixture.context
      const orders = [await place(1)]
      await act()
      let following: Promise<void> | undefined
      await inTransaction(async (tx) => {
        orders.push(await acceptOrderIn(tx, 2, addressOf(alice), { signer }))
        following = catchUp(follower)
        // The follower has read the markets with orders by then, and waits for the account.
        await new Promise((resolve) => setTimeout(resolve, 300))
      })
      await following
      for (const order of orders) expect(await statusOf(order)).to.equal('CANCELLED')
    })
  }
})
