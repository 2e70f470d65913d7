/**
 * A cascade on the complete exchange: leveraged accounts, a price that falls in steps, closes by the book, the backstop and deleveraging, with
 * processes killed between the steps and a fork. After each scene chain, journal, write side, read model and REST agree to the last wei.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { LiquidationChanged } from '../../domain/journal/liquidation-row.ts'
import type { MoveCause } from '../../domain/journal/move-cause.ts'
import { ACTION_AHEAD, ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
import { type FeedOverride, overrideFeed } from '../../stack/feed-override.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { replaceBlocks } from '../support/chain-faults.ts'
import { waitFor } from '../support/patience.ts'
import { MinedRows } from './support/fork-under.ts'
import { isDone, useStack } from './support/stack.ts'

const MARKET = 1
const TICK = 10n ** 17n
/** In ticks. */
const START = 630_000n
/** Below what a fill of one step changes. */
const NONE = 0.0005

describe('a cascade of liquidations on a running exchange', function () {
  this.timeout(180_000)
  let feed: FeedOverride | undefined
  // Registered before the hook that stops the stack: hooks run in the order of registration.
  after(() => feed?.release())
  const exchange = useStack({ backstop: true })

  before(async () => {
    // It would close what it inherits against the orders of the test.
    await exchange.stack.backstop?.process.stop()
    feed = overrideFeed(exchange.stack, MARKET)
  })

  // Each test begins at the start price, without orders and liquidations that an earlier one has left.
  beforeEach(async () => {
    await move(0)
    await untilLiquidationsEnd()
    for (const account of exchange.stack.file.accounts.keys())
      await exchange.trader(account).orders.cancelAll({ marketId: MARKET })
  })

  const userId = (account: number): number => exchange.stack.file.accounts[account]?.user_id as number
  const mined = (account: number, cause: 'part' | MoveCause) =>
    new MinedRows(exchange.stack, MARKET, (row) =>
      row.kind === 'part_settled'
        ? cause === 'part' && row.positions.some(({ user_id }) => user_id === userId(account))
        : row.cause === cause && row.account === userId(account),
    )
  /** The backstop, whose process is stopped, may be below the threshold itself. */
  const untilLiquidationsEnd = () =>
    waitFor(
      () =>
        exchange.stack.db
          .selectFrom('liquidations')
          .select('user_id')
          .where(
            'user_id',
            'in',
            exchange.stack.file.accounts.map((_, account) => userId(account)),
          )
          .execute(),
      (running) => running.length === 0,
      { budgetMs: 60_000 },
    )

  const priceAt = (thousandths: number): bigint => (START * BigInt(1_000 + thousandths)) / 1_000n
  const textOf = (ticks: bigint): string => `${Number(ticks) / 10}`

  /** Publishes the start price moved by thousandths, and waits until the exchange shows it. */
  async function move(thousandths: number): Promise<void> {
    const price = priceAt(thousandths) * TICK
    feed?.setPrice(price as never)
    const { marketData } = exchange.trader(11)
    await waitFor(
      () => marketData.market(MARKET),
      ({ oracle_price_e18_raw }) => BigInt(oracle_price_e18_raw ?? 0) === price,
      { budgetMs: 30_000 },
    )
  }

  /** The first account buys from the second one, at the oracle price moved by thousandths. */
  async function open(
    long: number,
    short: number,
    quantity: string,
    at: number,
    leverage = 20,
  ): Promise<void> {
    const [buyer, seller] = [exchange.trader(long), exchange.trader(short)]
    const terms = { marketId: MARKET, price: textOf(priceAt(at)), quantity } as const
    const buy = await buyer.orders.place({ ...terms, side: 'LONG', leverage })
    const sell = await seller.orders.place({ ...terms, side: 'SHORT', leverage: 2 })
    const ended = await Promise.all([
      buyer.orders.waitFor(buy, isDone, 60_000),
      seller.orders.waitFor(sell, isDone, 60_000),
    ])
    expect(ended.map(({ status }) => status)).to.deep.equal(['FILLED', 'FILLED'])
  }

  /** Opens what the account lacks of the long position. */
  async function hold(long: number, short: number, quantity: number): Promise<void> {
    const missing = quantity - (await sizeOf(long))
    if (missing > NONE) await open(long, short, missing.toFixed(3), 0)
  }

  async function steps(account: number): Promise<LiquidationChanged[]> {
    const rows = await exchange.stack.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', marketShard(MARKET))
      .orderBy('seq')
      .execute()
    return rows.flatMap(({ row }) =>
      row.kind === 'liquidation_changed' && row.user_id === userId(account) ? [row] : [],
    )
  }
  /** Without the account's steps before. */
  const stepsAfter = async (account: number, before: number) => (await steps(account)).slice(before)
  const reached = (account: number, step: string, before: number) =>
    waitFor(
      () => stepsAfter(account, before),
      (found) => found.some((row) => row.step === step),
      { budgetMs: 120_000 },
    )
  /**
   * One action of the account is in the queue at a time. A further one follows only when the lifetime of the one before is over without effect:
   * a killed keeper can be away for longer.
   */
  function expectOneAtATime(found: readonly LiquidationChanged[], step: string): void {
    const queued = found.filter((row) => row.step === step)
    expect(queued).to.not.be.empty
    for (const [at, { at: queuedAt }] of queued.entries()) {
      const before = queued[at - 1]?.evidence
      if (before === undefined || before === null) continue
      expect(queuedAt - before.as_of, 'age of the action before').to.be.greaterThan(
        ACTION_LIFETIME - ACTION_AHEAD,
      )
    }
  }
  /** How often a chain of these rows has moved the position. */
  const timesMoved = (rows: readonly { readonly rollback: boolean }[]): number =>
    rows.reduce((sum, { rollback }) => sum + (rollback ? -1 : 1), 0)
  const sizeOf = async (account: number): Promise<number> => {
    const [position] = await exchange.trader(account).account.positions({ marketId: MARKET })
    return (position?.size ?? 0) + (position?.pending_size ?? 0)
  }
  /** Readers see what the journal has a moment later. */
  const closed = (account: number) =>
    waitFor(
      () => sizeOf(account),
      (size) => size === 0,
      { budgetMs: 30_000 },
    )
  const agreed = async () => expect(await exchange.differences()).to.deep.equal([])

  /** The process ends at the point, and is ready again. */
  async function killAt(process: Managed, point: string, work: () => Promise<unknown>): Promise<void> {
    await process.restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
    const died = process.nextEnd()
    await process.ready()
    await work()
    expect(await died).to.equal('SIGKILL')
    await process.ready()
  }

  it('when a long falls below the threshold, a forced order fills as far as the book goes, and ends when the position is healthy', async () => {
    const before = (await steps(0)).length
    await open(0, 1, '0.1', 0)
    const trader = exchange.trader(0)
    const own = await trader.orders.place({
      ...{ marketId: MARKET, side: 'LONG', price: textOf(priceAt(-45)), quantity: '0.01', leverage: 20 },
    })
    const bid = { marketId: MARKET, side: 'LONG', price: textOf(priceAt(-30)), quantity: '0.04' } as const
    await exchange.trader(2).orders.place({ ...bid, leverage: 2 })
    await move(-26)
    await reached(0, 'forced', before)
    expect((await trader.orders.waitFor(own, isDone, 30_000)).status_reason).to.equal('LIQUIDATION')
    await waitFor(
      () => sizeOf(0),
      (size) => Math.abs(size - 0.06) < 1e-9,
      { budgetMs: 30_000 },
    )
    const [forced] = (await trader.orders.list({ limit: 100 })).filter((order) => order.forced)
    if (forced === undefined) throw new Error('the account has no forced order')
    expect(forced).to.include({
      side: 'SHORT',
      order_type: 'MARKET',
      reduce_only: true,
      signer: null,
      quantity: 0.1,
    })
    const refusal = await trader.orders.cancel(forced.order_hash).catch((error: unknown) => error)
    expect(JSON.stringify(refusal)).to.include('ORDER_FORCED')
    await trader.orders.cancelAll({ marketId: MARKET })
    await move(0)
    await reached(0, 'ended', before)
    await agreed()
    expect(await sizeOf(0)).to.be.closeTo(0.06, 1e-9)
  })

  for (const [name, point] of [
    ['engine', 'after-append-liquidation_changed'],
    ['engine', 'after-append-action_queued'],
    ['indexer', 'after-block-commit'],
  ] as const) {
    it(`when ${name} is killed at ${point} while the backstop inherits, the position moves once`, async () => {
      const before = (await steps(0)).length
      const moves = mined(0, 'inherited')
      const moved = timesMoved(await moves.all())
      await hold(0, 1, 0.06)
      await killAt(exchange.stack[name], point, async () => {
        await move(-41)
      })
      expectOneAtATime(await reached(0, 'ended', before), 'inherit_queued')
      await closed(0)
      await agreed()
      expect(timesMoved(await moves.all()) - moved).to.equal(1)
    })
  }

  it('when a long loses all of its equity, it is deleveraged, also across a fork', async () => {
    const before = (await steps(3)).length
    await hold(3, 4, 0.05)
    await move(-60)
    expectOneAtATime(await reached(3, 'ended', before), 'deleverage_queued')
    await closed(3)
    await agreed()
    await replaceBlocks(exchange.stack.provider, 3)
    await agreed()
    await closed(3)
    expect(timesMoved(await mined(3, 'deleveraged').all())).to.equal(1)
  })

  // ---------------------------------------------------------------------- forks

  it('when a fork removes an ingested forced fill, the same part is mined again, and the order fills no more than once', async () => {
    const before = (await steps(5)).length
    await open(5, 6, '0.1', 0)
    const bid = { marketId: MARKET, side: 'LONG', price: textOf(priceAt(-30)), quantity: '0.04' } as const
    await exchange.trader(7).orders.place({ ...bid, leverage: 2 })
    const parts = mined(5, 'part')
    const opened = (await parts.all()).length
    await move(-26)
    await waitFor(
      () => parts.all(),
      ({ length }) => length > opened,
      { budgetMs: 30_000 },
    )
    const removed = await parts.fork()
    expect((await parts.mined()).tx_hash).to.equal(removed.tx_hash)
    await move(0)
    const found = await reached(5, 'ended', before)
    await agreed()
    expect(found.filter(({ step }) => step === 'forced')).to.have.length(1)
    expect(await sizeOf(5)).to.be.closeTo(0.06, 1e-9)
    expect(await sizeOf(7)).to.be.closeTo(0.04, 1e-9)
  })

  for (const [what, cause, account, thousandths, step] of [
    ['inheritance', 'inherited', 5, -41, 'inherit_queued'],
    ['deleveraging', 'deleveraged', 8, -60, 'deleverage_queued'],
  ] as const) {
    it(`when a fork removes an ingested ${what}, its transaction is mined again while the chain accepts it, and the position moves once`, async () => {
      const before = (await steps(account)).length
      const moves = mined(account, cause)
      const moved = timesMoved(await moves.all())
      await hold(account, account === 5 ? 6 : 9, 0.05)
      await move(thousandths)
      await reached(account, step, before)
      const removed = await moves.fork()
      const again = await moves.mined()
      await agreed()
      await closed(account)
      const found = await stepsAfter(account, before)
      expectOneAtATime(found, step)
      if (found.filter((row) => row.step === step).length === 1)
        expect(again.tx_hash).to.equal(removed.tx_hash)
      expect(timesMoved(await moves.all()) - moved).to.equal(1)
    })
  }

  it('when a fork removes an inheritance after its lifetime and the price has recovered, the position stays with its owner', async () => {
    const before = (await steps(10)).length
    await open(10, 6, '0.05', 0)
    await move(-41)
    const moves = mined(10, 'inherited')
    const { at } = await moves.mined()
    await move(0)
    await sleep(Math.max(0, at + ACTION_LIFETIME + 2_000 - Date.now()))
    await moves.fork()
    await waitFor(
      () => sizeOf(10),
      (size) => size !== 0,
      { budgetMs: 30_000 },
    )
    await agreed()
    expect(await sizeOf(10)).to.be.closeTo(0.05, 1e-9)
    expectOneAtATime(await stepsAfter(10, before), 'inherit_queued')
    expect((await moves.all()).map(({ rollback }) => rollback)).to.deep.equal([false, true])
  })
})
