/** Conditional orders, session keys and the dead-man switch on a complete exchange, with processes killed while orders wait. */

import { expect } from 'chai'
import { Wallet } from 'ethers'
import { describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import type { PlacedOrder, Placement } from '../../client/responses.ts'
import { AccountManager__factory } from '../../typechain-types/factories/AccountManager__factory.ts'
import { LiveClient } from '../support/live-client.ts'
import { waitFor } from '../support/patience.ts'
import { hasPythonPackages, runGuide, skipBecause } from './support/guide.ts'
import { isDone, nearOracle, trade, useStack } from './support/stack.ts'

const MARKET = 1
const QUANTITY = '0.01'

describe('the life of orders on a complete exchange', function () {
  this.timeout(120_000)
  const exchange = useStack()

  const stateOf = ({ status, status_reason }: PlacedOrder) =>
    status_reason === null ? status : `${status} ${status_reason}`
  const ended = async (client: Client, placed: Placement) =>
    stateOf(await client.orders.waitFor(placed, isDone, 60_000))
  /** A price at a distance from the oracle price, in per cent of it: farther than the oracle price moves in this test. */
  const away = async (client: Client, hundredths: number): Promise<string> => {
    const { oracle_price_e18_raw, tick_size_e18_raw } = await client.marketData.market(MARKET)
    const ticks = BigInt(oracle_price_e18_raw ?? 0) / BigInt(tick_size_e18_raw)
    return nearOracle(client, MARKET, Number((ticks * BigInt(hundredths)) / 100n))
  }
  /** A stop that the mark price does not trigger in this test. */
  const farStop = async (client: Client, more: { expiration?: number } = {}) => {
    const [price, trigger] = [await away(client, -4), await away(client, 4)]
    const order = { marketId: MARKET, side: 'LONG', type: 'STOP_LIMIT', quantity: QUANTITY } as const
    return client.orders.place({ ...order, price, trigger, ...more })
  }
  /** A stop that the mark price triggers at once. Its limit is far from any trade. */
  const nearStop = async (client: Client) => {
    const [price, trigger] = [await away(client, -4), await away(client, -3)]
    const order = { marketId: MARKET, side: 'LONG', type: 'STOP_LIMIT', quantity: QUANTITY } as const
    return client.orders.place({ ...order, price, trigger })
  }

  it('when the take-profit of a bracket triggers, it closes the position on chain, and the stop-loss ends with it', async () => {
    const [alice, bob] = [exchange.trader(0), exchange.trader(1)]
    const guard = { marketId: MARKET, side: 'SHORT', quantity: QUANTITY } as const
    const low = await away(alice, -4)
    const loss = await alice.orders.place({ ...guard, type: 'STOP_LOSS_MARKET', trigger: low })
    expect(stateOf(loss.order)).to.equal('PENDING_TRIGGER')
    await trade(alice, bob, {
      marketId: MARKET,
      price: await nearOracle(alice, MARKET, 2),
      quantity: QUANTITY,
    })

    // Bob buys what the take-profit sells. The mark price is above its trigger from the start.
    const bid = { marketId: MARKET, side: 'LONG', price: await away(bob, 1) } as const
    const taken = await bob.orders.place({ ...bid, quantity: QUANTITY, reduceOnly: true })
    const profit = await alice.orders.place({
      ...{ ...guard, type: 'TAKE_PROFIT_LIMIT' },
      ...{ trigger: await away(alice, -3), price: await away(alice, -1) },
    })
    const filled = await alice.orders.waitFor(profit, isDone, 60_000)
    expect([stateOf(filled), filled.trigger?.batch_id]).to.deep.equal([
      'FILLED FILLED',
      filled.trigger?.batch_id,
    ])
    expect(filled.trigger?.mark_price).to.be.a('number')
    expect(await ended(bob, taken)).to.equal('FILLED FILLED')
    expect(await ended(alice, loss)).to.equal('CANCELLED POSITION_CLOSED')
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when the keeper is killed while orders wait, they trigger and expire after its restart', async () => {
    const { keeper } = exchange.stack
    const alice = exchange.trader(2)
    await keeper.stop()
    const due = await nearStop(alice)
    const waiting = await farStop(alice)
    const expiring = await farStop(alice, { expiration: Math.ceil(Date.now() / 1000) + 1 })
    await keeper.restart('SIGKILL')
    await keeper.ready()
    const open = await alice.orders.waitFor(due, ({ status }) => status === 'OPEN', 60_000)
    expect(open.trigger).to.not.equal(null)
    expect(await ended(alice, expiring)).to.equal('EXPIRED EXPIRED')
    await keeper.restart('SIGKILL')
    await keeper.ready()
    const [still] = (await alice.orders.list({ status: 'PENDING_TRIGGER' })).map(({ order_id }) => order_id)
    expect(still).to.equal(waiting.order.order_id)
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when the engine is killed while it fires a dead-man switch, the switch cancels the orders of both markets', async () => {
    const { engine } = exchange.stack
    const alice = exchange.trader(3)
    const limit = async (marketId: number, quantity: string) =>
      alice.orders.place({
        marketId,
        side: 'LONG',
        price: await nearOracle(alice, marketId, -1_000),
        quantity,
      })
    const placed = [await limit(1, QUANTITY), await limit(2, '1'), await farStop(alice)]
    await engine.restart('SIGTERM', { CLEARBATCH_KILL_AT: 'after-append-switches_fired' })
    await engine.ready()
    const died = engine.nextEnd()
    const armed = await alice.orders.cancelAllAfter(5)
    expect(await died).to.equal('SIGKILL')
    await engine.ready()
    for (const one of placed) expect(await ended(alice, one)).to.equal('CANCELLED DEAD_MAN_SWITCH')
    expect((await alice.orders.cancelSwitch()).armed).to.equal(false)
    expect(Date.parse(armed.fire_at ?? '')).to.be.lessThan(Date.now())
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when the api is killed, the keeper cancels the orders of connections that asked for it, a grace later', async () => {
    const { api, file } = exchange.stack
    const [alice, bob] = [exchange.trader(4), exchange.trader(5)]
    const connect = async (account: number, grace_seconds: number) => {
      const key = file.accounts[account]?.api_key
      const client = await LiveClient.open(file.base_url, { headers: { authorization: `Key ${key}` } })
      expect((await client.call('cancel_on_disconnect', { grace_seconds })).data.armed).to.equal(true)
      return client
    }
    const first = [await connect(4, 5), await connect(5, 60)]
    const placed = [await farStop(alice), await farStop(bob)]
    const killedAt = Date.now()
    await api.restart('SIGKILL')
    for (const client of first) expect((await client.closed).code).to.equal(1006)
    await api.ready()
    const again = await connect(5, 60)
    const [mine, other] = placed as [Placement, Placement]
    expect(await ended(alice, mine)).to.equal('CANCELLED DEAD_MAN_SWITCH')
    expect(Date.now() - killedAt).to.be.at.least(3_000)
    expect(stateOf(await bob.orders.get(other.order.order_id))).to.equal('PENDING_TRIGGER')
    await again.call('cancel_on_disconnect', { grace_seconds: 0 })
    await again.close()
    expect(await exchange.differences()).to.deep.equal([])
  })

  it('when a session key signs orders, they settle on chain, and its open orders end when it is revoked', async () => {
    const { file, provider } = exchange.stack
    const account = file.accounts[4] as (typeof file.accounts)[number]
    const owner = new Wallet(account.private_key, provider)
    const key = Wallet.createRandom()
    const manager = AccountManager__factory.connect(file.contracts.account_manager, owner)
    await (await manager.registerSessionKey(key.address, 1)).wait()
    await exchange.stack.db.selectFrom('session_keys').selectAll().execute()
    const trader = new Client({
      ...{ baseUrl: file.base_url, rpcUrl: file.rpc_url, apiKey: account.api_key },
      ...{ privateKey: account.private_key, orderSigner: key, http: { budgetMs: 30_000 } },
    })
    try {
      await waitFor(
        () => exchange.stack.db.selectFrom('session_keys').selectAll().execute(),
        (keys) => keys.length === 1,
      )
      const price = await nearOracle(trader, MARKET, 1)
      const { buy } = await trade(trader, exchange.trader(1), { marketId: MARKET, price, quantity: QUANTITY })
      expect([stateOf(buy), buy.signer]).to.deep.equal(['FILLED FILLED', key.address.toLowerCase()])

      const waiting = await farStop(trader)
      await (await manager.revokeSessionKey(key.address)).wait()
      expect(await ended(trader, waiting)).to.equal('CANCELLED SIGNER_REVOKED')
      expect(await exchange.differences()).to.deep.equal([])
    } finally {
      trader.close()
    }
  })

  for (const language of ['sh', 'python'] as const) {
    it(`when the guide's program in ${language} is run, it places an order, reads it and cancels it`, async function () {
      if (language === 'python' && !hasPythonPackages())
        return skipBecause(this, 'python3 with the packages coincurve and pycryptodome is not installed')
      const [placed = '', ...statuses] = await runGuide(language, exchange.stack.file)
      expect(placed).to.match(/^placed \d+-\d+$/)
      expect(statuses).to.deep.equal(['status OPEN', 'status CANCELLED'])
      const order = await waitFor(
        () => exchange.trader(0).orders.get(placed.replace('placed ', '')),
        ({ status }) => status !== 'OPEN',
      )
      expect(stateOf(order)).to.equal('CANCELLED USER_CANCELLED')
    })
  }
})
