/**
 * A cascade on the complete exchange: leveraged accounts, a price that falls in steps, closes by the book, the backstop and deleveraging, with
 * processes killed between the steps and a fork. After each scene chain, journal, write side, read model and REST agree to the last wei.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { LiquidationChanged } from '../../domain/journal/liquidation-row.ts'
import type { MoveCause } from '../../domain/journal/move-cause.ts'
import { ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
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
    await move(0)
  })

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

  async function steps(): Promise<LiquidationChanged[]> {
    const rows = await exchange.stack.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', marketShard(MARKET))
      .orderBy('seq')
      .execute()
    return rows.flatMap(({ row }) => (row.kind === 'liquidation_changed' ? [row] : []))
  }
  const stepsOf = async (account: number): Promise<string[]> => {
    const id = exchange.stack.file.accounts[account]?.user_id
    return (await steps()).filter(({ user_id }) => user_id === id).map(({ step }) => step)
  }
  const reached = (account: number, step: string) =>
    waitFor(
      () => stepsOf(account),
      (found) => found.includes(step),
      { budgetMs: 60_000 },
    )
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
    await open(0, 1, '0.1', 0)
    const trader = exchange.trader(0)
    const own = await trader.orders.place({
      ...{ marketId: MARKET, side: 'LONG', price: textOf(priceAt(-45)), quantity: '0.01', leverage: 20 },
    })
    const bid = { marketId: MARKET, side: 'LONG', price: textOf(priceAt(-30)), quantity: '0.04' } as const
    await exchange.trader(2).orders.place({ ...bid, leverage: 2 })
    await move(-26)
    await reached(0, 'forced')
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
    await reached(0, 'ended')
    await agreed()
    expect(await sizeOf(0)).to.be.closeTo(0.06, 1e-9)
  })

  for (const [name, point] of [
    ['keeper', 'after-liquidation-step'],
    ['keeper', 'after-liquidation-action'],
    ['indexer', 'after-block-commit'],
  ] as const) {
    it(`when ${name} is killed at ${point} while the backstop inherits, the position moves once`, async () => {
      const before = await stepsOf(0)
      if ((await sizeOf(0)) < 0.01) await open(0, 1, '0.06', 0)
      await killAt(exchange.stack[name], point, async () => {
        await move(-41)
      })
      await waitFor(
        async () => (await stepsOf(0)).slice(before.length),
        (found) => found.includes('ended'),
        { budgetMs: 60_000 },
      )
      const found = (await stepsOf(0)).slice(before.length)
      expect(found.filter((step) => step === 'inherit_queued')).to.have.length(1)
      await closed(0)
      await move(0)
      await agreed()
    })
  }

  it('when a long loses all of its equity, it is deleveraged within two intervals of the price, also across a fork', async () => {
    await open(3, 4, '0.05', 0)
    await move(-60)
    await reached(3, 'deleverage_queued')
    const [queued] = (await steps()).filter(({ step }) => step === 'deleverage_queued')
    // The age of the report when the step was taken; other tests may share the machine.
    expect((queued?.at ?? 0) - (queued?.evidence?.oracle_at ?? 0)).to.be.lessThan(2_000)
    await reached(3, 'ended')
    await closed(3)
    await agreed()
    await replaceBlocks(exchange.stack.provider, 3)
    await agreed()
    await closed(3)
  })

  // ---------------------------------------------------------------------- forks

  const userId = (account: number): number => exchange.stack.file.accounts[account]?.user_id as number
  const mined = (account: number, cause: 'part' | MoveCause) =>
    new MinedRows(exchange.stack, MARKET, (row) =>
      row.kind === 'part_settled'
        ? cause === 'part' && row.positions.some(({ user_id }) => user_id === userId(account))
        : row.cause === cause && row.account === userId(account),
    )
  /** The backstop, whose process is stopped, may be below the threshold itself. */
  const untilLiquidationEnds = (account: number) =>
    waitFor(
      () =>
        exchange.stack.db
          .selectFrom('liquidations')
          .select('user_id')
          .where('user_id', '=', userId(account))
          .execute(),
      (running) => running.length === 0,
      { budgetMs: 30_000 },
    )

  it('when a fork removes an ingested forced fill, the same part is mined again, and the order fills no more than once', async () => {
    await move(0)
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
    await reached(5, 'ended')
    await agreed()
    expect((await stepsOf(5)).filter((step) => step === 'forced')).to.have.length(1)
    expect(await sizeOf(5)).to.be.closeTo(0.06, 1e-9)
    expect(await sizeOf(7)).to.be.closeTo(0.04, 1e-9)
  })

  for (const [what, cause, account, thousandths, step] of [
    ['inheritance', 'inherited', 5, -41, 'inherit_queued'],
    ['deleveraging', 'deleveraged', 8, -60, 'deleverage_queued'],
  ] as const) {
    it(`when a fork removes an ingested ${what}, the same transaction is mined again, and the position moves once`, async () => {
      await move(0)
      if (account === 8) await open(8, 9, '0.05', 0)
      await move(thousandths)
      await reached(account, step)
      const moves = mined(account, cause)
      const removed = await moves.fork()
      expect((await moves.mined()).tx_hash).to.equal(removed.tx_hash)
      await agreed()
      expect((await stepsOf(account)).filter((found) => found === step)).to.have.length(1)
      await closed(account)
      await untilLiquidationEnds(account)
    })
  }

  it('when a fork removes an inheritance after its lifetime and the price has recovered, the position stays with its owner', async () => {
    await move(0)
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
    expect((await stepsOf(10)).filter((step) => step === 'inherit_queued')).to.have.length(1)
    expect((await moves.all()).map(({ rollback }) => rollback)).to.deep.equal([false, true])
    await untilLiquidationEnds(10)
  })
})
