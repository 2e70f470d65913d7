/**
 * A crash day on the complete exchange: prices that fall by 30 % close leveraged positions in part by the book, to the backstop and
 * against counterparties, while processes and the database are killed and the chain forks. Then both futures expire, and every account is
 * paid out. Balances and positions are equal in chain, journal, write side, read model and REST to the last wei.
 */
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { LiquidationStep } from '../../domain/journal/liquidation-row.ts'
import { captureOps } from '../ops/support/captured-ops.ts'
import { waitFor } from '../support/patience.ts'
import { CRASH_DAY, CrashRun } from './support/crash-run.ts'
import { ShiftedTime } from './support/shifted-time.ts'
import { isDone, useStack } from './support/stack.ts'

const [PERPETUAL, NUMERIC, BINARY] = [1, 3, 4] as const
const CLOSE = Date.UTC(2035, 0, 1)
const DAY_MS = 86_400_000
const WAIT = { budgetMs: 180_000 }

describe('a crash day', function () {
  this.timeout(900_000)
  let run: CrashRun | undefined
  // Registered before the hook that stops the stack: hooks run in the order of registration.
  after(async () => {
    await run?.release()
    run?.close()
  })
  const exchange = useStack({ backstop: true })
  before(async () => {
    run = await CrashRun.open(exchange.stack)
  })
  const crash = (): CrashRun => run as CrashRun

  const stepsOf = async (account: number, marketId: typeof PERPETUAL | typeof NUMERIC = PERPETUAL) => {
    const id = crash().userId(account)
    return (await crash().steps(marketId)).filter(({ user_id }) => user_id === id).map(({ step }) => step)
  }

  it('when prices fall by 30 % under kills and forks, positions close by the book, to the backstop and against counterparties, and all reads agree', async () => {
    const { engine, indexer } = exchange.stack
    const opening = { marketId: PERPETUAL, against: 8 }
    // In the order in which the fall reaches them; the last one survives it.
    await crash().open({ ...opening, account: 2, quantity: '0.5', leverage: 20 })
    await crash().open({ ...opening, account: 1, quantity: '0.3', leverage: 14 })
    await crash().open({ ...opening, account: 0, quantity: '2', leverage: 10 })
    await crash().open({ ...opening, account: 6, quantity: '0.3', leverage: 7 })
    await crash().open({ ...opening, account: 4, quantity: '0.4', leverage: 3 })
    await crash().open({ marketId: NUMERIC, account: 3, against: 7, quantity: '10', leverage: 5 })
    await crash().open({ marketId: NUMERIC, account: 4, against: 7, quantity: '4', leverage: 1 })
    await openBinary()
    await crash().bid(5, 970, '0.2')
    await crash().bid(5, 920, '0.6')

    // Each price stays until the exchange has done what it must lead to, however long that takes.
    const done = (account: number, step: LiquidationStep) => async () =>
      (await stepsOf(account)).includes(step)
    const outcomes = new Map([
      [1, [async () => (await crash().kinds(PERPETUAL)).has('forced_fill')]],
      [2, [done(2, 'ended'), done(1, 'ended')]],
      [5, [done(0, 'forced')]],
      [6, [done(0, 'ended')]],
      // From 890, where its margin suffices, to 852, where it has no equity.
      [7, [done(6, 'ended')]],
    ])
    for (const [at, thousandths] of CRASH_DAY.entries()) {
      const move = () => crash().price(thousandths, outcomes.get(at))
      if (at === 2) await crash().killAt(engine, 'after-append-action_queued', move)
      else if (at === 6) await crash().killAt(indexer, 'after-block-commit', move)
      // Between these the price falls and rises without a new low: every second one is enough.
      else if (at < 9 || at > 30 || at % 3 === 0) await move()
      if (at === 2 || at === 3) await forkAt(thousandths)
      if (at === 7) await crash().restartDatabase()
    }

    const taken = JSON.stringify(await crash().steps(PERPETUAL))
    expect(await crash().kinds(PERPETUAL), taken).to.deep.equal(
      new Set(['forced_fill', 'inherited', 'deleveraged']),
    )
    // What closes the rest of a forced order depends on how many batches have left it unfilled.
    expect(await stepsOf(2)).to.include.members(['forced', 'ended'])
    expect(await stepsOf(1)).to.include.members(['inherit_queued', 'ended'])
    expect(await stepsOf(0)).to.include.members(['forced', 'ended'])
    expect(await stepsOf(6))
      .to.include.members(['deleverage_queued', 'ended'])
      .and.not.include('forced')
    expect(await stepsOf(4)).to.deep.equal([])
    const [survivor] = await crash().trader(4).account.positions({ marketId: PERPETUAL })
    expect(survivor?.size).to.equal(0.4)
    expect(await crash().problems()).to.deep.equal([])
  })

  it('when both futures expire afterwards, every account is paid out, and all reads agree', async () => {
    const { stack } = exchange
    await crash().release()
    const time = await ShiftedTime.install(stack)
    const market = (marketId: number) => crash().trader(11).marketData.market(marketId)
    const until = (marketId: number, isSo: (found: Awaited<ReturnType<typeof market>>) => boolean) =>
      waitFor(() => market(marketId), isSo, WAIT)
    await time.pass(CLOSE - time.now() + 5_000)
    await state('ACME-VALUATION', '595')
    await state('RATE-CUT-YES', '1')
    for (const marketId of [NUMERIC, BINARY]) await until(marketId, (found) => found.final_price !== null)
    await time.pass(DAY_MS + 60_000)
    for (const marketId of [NUMERIC, BINARY]) await until(marketId, (found) => found.mode === 'settled')
    const open = () =>
      stack.db
        .selectFrom('read.positions')
        .select(['market_id', 'user_id'])
        .where('market_id', 'in', [NUMERIC, BINARY])
        .where('size', '<>', 0)
        .execute()
    // The short side of the binary market had a margin of half its possible loss: its deficit is reported within the window.
    const insolvent = crash().userId(10)
    await waitFor(open, (rows) => rows.every(({ user_id }) => user_id !== insolvent), WAIT)
    await time.pass(3 * DAY_MS + 120_000)
    await waitFor(open, (rows) => rows.length === 0, WAIT)
    const running = await stack.db
      .selectFrom('liquidations')
      .selectAll()
      .where('market_id', '=', NUMERIC)
      .execute()
    expect(running).to.deep.equal([])
    const paid = await waitFor(
      () => crash().trader(4).account.transactions({ type: 'market_delisting_payout' }),
      ({ length }) => length > 0,
      WAIT,
    )
    expect(paid.map(({ market_id }) => market_id)).to.deep.equal([NUMERIC])
    expect(await crash().problems()).to.deep.equal([])
  })

  /**
   * Where the fork removes an inheritance, it may be too late when it is mined again. The position must go to the backstop at this price then:
   * at a lower one it has no equity.
   */
  async function forkAt(thousandths: number): Promise<void> {
    await crash().fork(3)
    await crash().hasReadChain()
    const isInherited = async () =>
      (await crash().kinds(PERPETUAL)).has('inherited') && (await crash().running()) === 0
    await crash().price(thousandths, [isInherited])
  }

  async function openBinary(): Promise<void> {
    const [buyer, seller] = [crash().trader(9), crash().trader(10)]
    const terms = { marketId: BINARY, quantity: '50', leverage: 2 } as const
    const sell = await seller.orders.place({ ...terms, side: 'SHORT', price: '0.5' })
    const buy = await buyer.orders.place({ ...terms, side: 'LONG', price: '0.6' })
    for (const [client, order] of [
      [seller, sell],
      [buyer, buy],
    ] as const)
      expect((await client.orders.waitFor(order, isDone, WAIT.budgetMs)).status).to.equal('FILLED')
  }

  async function state(symbol: string, price: string): Promise<void> {
    const file = join(dirname(exchange.stack.pricesFile), 'stack.json')
    const flags = ['--price', price, '--by', 'ann', '--reason', 'the outcome', '--send']
    const result = await captureOps(
      ['market', 'final-price', '--market', symbol, '--stack', file, ...flags],
      {},
    )
    expect(result.code, JSON.stringify(result)).to.equal(0)
  }
})
