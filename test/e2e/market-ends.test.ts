/** Both futures of the local stack expire and a perpetual is delisted: from the last order to the last payout. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { ShadowRun } from '../../stack/shadow/shadow-run.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import { captureOps } from '../ops/support/captured-ops.ts'
import { replaceFrom } from '../support/chain-faults.ts'
import { waitFor } from '../support/patience.ts'
import { ShiftedTime } from './support/shifted-time.ts'
import { differencesOf, nearOracle, trade, traderOn } from './support/stack.ts'

const [PERPETUAL, NUMERIC, BINARY] = [1, 3, 4]
const ENDING = [PERPETUAL, NUMERIC, BINARY] as const
const CLOSE = Date.UTC(2035, 0, 1)
const DAY_MS = 86_400_000
const WAIT = { budgetMs: 90_000 }
/** More than rounding leaves in a pool that has paid every account out. */
const DUST = 1_000n

describe('the end of markets', function () {
  this.timeout(300_000)
  const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-ends-'))
  let stack: Stack
  let time: ShiftedTime
  before(async () => {
    stack = await startStack({ port: 0, dataDir, fresh: false, bots: false, backstop: false }, () => {})
    time = await ShiftedTime.install(stack)
  })
  after(async () => {
    const differences = await new ShadowRun(stack.db).compare()
    await stack.stop()
    rmSync(dataDir, { recursive: true, force: true })
    expect(differences, 'the tables equal the fold of the journal').to.deep.equal([])
  })

  /** As an operator does, on this stack. Returns what the command prints. */
  async function ops(command: string, symbol: string, ...flags: readonly string[]): Promise<string> {
    const on = ['--market', symbol, '--stack', join(dataDir, 'stack.json')]
    const { code, stdout, stderr } = await captureOps(['market', command, ...on, ...flags], {})
    expect(code, stdout + stderr).to.equal(0)
    return stdout + stderr
  }

  const market = (marketId: number) => traderOn(stack, 0).marketData.market(marketId)
  const untilMarket = (marketId: number, isSo: (found: Awaited<ReturnType<typeof market>>) => boolean) =>
    waitFor(() => market(marketId), isSo, WAIT)
  const untilAllSettled = async () => {
    for (const marketId of ENDING) await untilMarket(marketId, ({ mode }) => mode === 'settled')
  }
  /** Market ends, or claims, that are mined, with their blocks; and those that a fork has taken back. */
  async function rowsOf(kind: 'market_ended' | 'claimed') {
    const rows = await stack.db.selectFrom('journal').select('row').where('shard', '<>', 'accounts').execute()
    const own = rows.flatMap(({ row }) =>
      row.kind === 'market_ended' || row.kind === 'positions_moved' ? [row] : [],
    )
    const found = own.filter((row) => (row.kind === 'market_ended' ? row.kind : row.cause) === kind)
    return {
      mined: found.filter(({ rollback }) => !rollback).map(({ block }) => block),
      undone: found.filter(({ rollback }) => rollback).length,
    }
  }

  /** Replaces the blocks since the first of these events, and waits until the indexer has followed that. */
  async function forkUnder(kind: 'market_ended' | 'claimed'): Promise<void> {
    const { mined, undone } = await rowsOf(kind)
    await replaceFrom(stack.provider, Math.min(...mined), time.aheadMs)
    const replaced = await stack.provider.getBlockNumber()
    const progress = stack.db.selectFrom('chain_progress').select('next_block')
    await waitFor(
      async () => ({ ...(await rowsOf(kind)), ...(await progress.executeTakeFirstOrThrow()) }),
      (now) => now.undone > undone && now.next_block > replaced,
      WAIT,
    )
  }

  const open = () =>
    stack.db
      .selectFrom('read.positions')
      .select(['market_id', 'user_id'])
      .where('market_id', 'in', [...ENDING])
      .where('size', '<>', 0)
      .execute()

  const state = (price: string, symbol: string) =>
    ops('final-price', symbol, '--price', price, '--by', 'ann', '--reason', 'the outcome', '--send')

  it('when the markets are traded and the perpetual is delisted with notice, the close is announced', async () => {
    const [long, short] = [traderOn(stack, 0), traderOn(stack, 1)]
    for (const marketId of ENDING) {
      const price = await nearOracle(long, marketId)
      const { buy } = await trade(long, short, {
        marketId,
        price,
        quantity: marketId === BINARY ? '50' : '0.1',
      })
      expect(buy.status, `market ${marketId}`).to.equal('FILLED')
    }
    await ops('delist', 'BTC-PERP', '--from', new Date(CLOSE).toISOString(), '--send')
    const { closes_at, upcoming_change } = await untilMarket(PERPETUAL, (found) => found.closes_at !== null)
    expect(closes_at).to.equal(new Date(CLOSE).toISOString())
    expect(upcoming_change).to.deep.include({ kind: 'wind_down', active_from: closes_at })
    await state('1', 'RATE-CUT-YES')
  })

  it('when they close, open orders end, final prices are reported, and a disputed one is replaced', async () => {
    const trader = traderOn(stack, 2)
    const placed = await trader.orders.place({ marketId: NUMERIC, side: 'LONG', price: '800', quantity: '1' })
    await time.pass(CLOSE - time.now() + 5_000)
    const ended = await trader.orders.waitFor(placed, ({ status }) => status !== 'OPEN', WAIT.budgetMs)
    expect(ended).to.include({ status: 'CANCELLED', status_reason: 'MARKET_CLOSED' })
    // The api reads the clock of the database once a second, later than the keeper perhaps.
    const outcome = await untilMarket(
      BINARY,
      ({ final_price, mode }) => final_price !== null && mode === 'settling',
    )
    expect(outcome).to.include({ final_price: 1, ended_at: null })
    expect(Date.parse(outcome.dispute_until ?? '')).to.be.within(CLOSE + DAY_MS, CLOSE + DAY_MS + 120_000)
    await untilMarket(PERPETUAL, ({ final_price }) => final_price !== null)
    expect((await market(NUMERIC)).final_price, 'nothing is stated').to.equal(null)

    await state('900', 'ACME-VALUATION')
    await untilMarket(NUMERIC, ({ final_price }) => final_price === 900)
    await stack.keeper.restart('SIGKILL')
    await state('950', 'ACME-VALUATION')
    await time.pass(60_000)
    await untilMarket(NUMERIC, ({ final_price }) => final_price === 950)
  })

  it('when the dispute windows are over, all are finalized, also if keeper and indexer are killed and the chain forks', async () => {
    await stack.indexer.restart('SIGKILL')
    await stack.keeper.restart('SIGKILL')
    await time.pass(DAY_MS + 60_000)
    await untilAllSettled()
    await forkUnder('market_ended')
    await stack.keeper.restart('SIGKILL')
    await untilAllSettled()
    expect(await market(NUMERIC)).to.include({ final_price: 950, ended_by: 'finalized', payout_ratio: null })
    expect(await ops('show', 'ACME-VALUATION')).to.include('chain and database agree')
  })

  it('when the window for deficits is over, every account is paid once, and balances are equal everywhere', async () => {
    // The short side of the binary market is insolvent: it had a margin of half its possible loss.
    await waitFor(open, ({ length }) => length < 2 * ENDING.length, WAIT)
    await time.pass(3 * DAY_MS + 120_000)
    await waitFor(open, ({ length }) => length < 2 * ENDING.length - 1, WAIT)
    await forkUnder('claimed')
    await stack.keeper.restart('SIGKILL')
    await stack.indexer.restart('SIGKILL')
    await waitFor(open, ({ length }) => length === 0, WAIT)
    const { mined, undone } = await rowsOf('claimed')
    expect(mined.length - undone).to.equal(2 * ENDING.length - 1)
    const bank = MarginBank__factory.connect(stack.file.contracts.margin_bank, stack.provider)
    for (const { marketId, trader, symbol } of stack.specs) {
      const { pool } = await bank.market(trader)
      if (marketId !== 2) expect(pool < DUST, `left in the pool of ${symbol}: ${pool}`).to.equal(true)
    }
    const differences = await waitFor(
      // Years have passed: once a minute the keeper deletes the inputs of old proofs.
      () => differencesOf(stack, { areProofsKept: false }),
      (found) => found.length === 0,
      WAIT,
    )
    expect(differences).to.deep.equal([])
    const paid = await traderOn(stack, 0).account.transactions({ type: 'market_delisting_payout' })
    expect(paid.map(({ market_id }) => market_id).sort()).to.deep.equal([...ENDING])
    for (const marketId of [PERPETUAL, NUMERIC]) expect((await market(marketId)).payout_ratio).to.equal(1)
    expect((await market(BINARY)).payout_ratio).to.be.within(0.5, 0.99)
  })
})
