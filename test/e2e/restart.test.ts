import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import type { CalendarName } from '../../domain/market/trading-calendar.ts'
import { isRunning } from '../../stack/lock.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import { differencesOf, nearOracle, trade, traderOn } from './support/stack.ts'

describe('a stack that is stopped and started again', function () {
  this.timeout(120_000)
  const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-restart-'))
  const starts: Stack[] = []
  after(async () => {
    for (const stack of starts) await stack.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const start = async (calendar: CalendarName = 'ALWAYS_OPEN'): Promise<Stack> => {
    const stack = await startStack(
      { port: 0, dataDir, fresh: false, bots: false, backstop: false, calendar },
      () => {},
    )
    starts.push(stack)
    return stack
  }

  it('when it is ready, it writes stack.json with addresses, markets and accounts', async () => {
    const { file } = await start()
    expect(JSON.parse(readFileSync(join(dataDir, 'stack.json'), 'utf8'))).to.deep.equal(file)
    const names = [
      'base_url',
      'ws_url',
      'issuer_url',
      'rpc_url',
      'chain_id',
      'contracts',
      'markets',
      'accounts',
    ]
    expect(Object.keys(file)).to.deep.equal(names)
    expect(file.accounts.length).to.be.at.least(10)
    expect(new Set(file.markets.map(({ type }) => type)).size).to.equal(3)
  })

  it('when it is ready, both perpetuals have a funding rate within a minute', async () => {
    const { file } = starts[0] as Stack
    const ratesOf = async (marketId: number): Promise<readonly Record<string, unknown>[]> => {
      const response = await fetch(`${file.base_url}/v0/markets/${marketId}/funding-rates`)
      return ((await response.json()) as { funding_rates: Record<string, unknown>[] }).funding_rates
    }
    for (const deadline = Date.now() + 60_000; ; await sleep(500)) {
      const rates = [...(await ratesOf(1)), ...(await ratesOf(2))]
      if (rates.length === 2) {
        expect(rates.map(({ symbol }) => symbol)).to.deep.equal(['BTC-PERP', 'AAPL-PERP'])
        return
      }
      expect(Date.now(), JSON.stringify(rates)).to.be.lessThan(deadline)
    }
  })

  it('when a second stack starts on the same folder, it fails and names --data-dir', async () => {
    const second = await start().then(
      () => 'it started',
      (error: Error) => error.message,
    )
    expect(second).to.include('a stack is running on').and.to.include('--data-dir')
  })

  it('when it is restarted three times, it resumes with the same orders and positions', async () => {
    let stack = starts[0] as Stack
    const price = await nearOracle(traderOn(stack, 0), 1, -20_000)
    const resting = await traderOn(stack, 0).orders.place({
      marketId: 1,
      side: 'LONG',
      price,
      quantity: '0.02',
    })
    const readAfter = { readAfter: resting.read_after }
    for (let round = 1; round <= 3; round++) {
      const [alice, bob] = [traderOn(stack, 0), traderOn(stack, 1)]
      expect((await alice.orders.get(resting.order.order_id, readAfter)).status).to.equal('OPEN')
      const { buy } = await trade(alice, bob, {
        marketId: 1,
        price: await nearOracle(alice, 1),
        quantity: '0.01',
      })
      expect(buy.status).to.equal('FILLED')
      expect((await alice.account.positions({ marketId: 1 }))[0]?.size).to.be.closeTo(0.01 * round, 1e-9)
      expect(await differencesOf(stack)).to.deep.equal([])
      const pids = [stack.api.pid(), stack.keeper.pid(), stack.indexer.pid()]
      await stack.stop()
      expect(pids.map((pid) => isRunning(pid ?? 0))).to.deep.equal([false, false, false])
      stack = await start()
    }
  })

  it('when it is restarted with the New York calendar, the stock market that was always open shows its next change', async () => {
    const sessionsOn = async ({ file }: Stack) => {
      const markets = await (await fetch(`${file.base_url}/v0/markets`)).json()
      return (markets as Record<string, unknown>[]).map((market) => [
        market.session,
        market.next_session_change,
      ])
    }
    const before = starts.at(-1) as Stack
    const continuous = ['continuous', null]
    expect(await sessionsOn(before)).to.deep.equal([continuous, ['regular', null], continuous, continuous])
    await before.stop()
    const [, stock] = await sessionsOn(await start('NYSE'))
    expect(stock?.[0]).to.be.oneOf(['regular', 'closed'])
    expect(Date.parse(stock?.[1] as string)).to.be.greaterThan(Date.now())
  })
})
