/**
 * Measures liquidations: from the observed price to the decision, the forced order's batch and the signed action; and
 * the transactions of one 200 ms interval with many liquidations.
 */
// npm run bench:liquidation -- [--samples 20] [--running 5000]
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { waitFor } from '../client/wait-for.ts'
import type { LiquidationChanged } from '../domain/journal/liquidation-row.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { type Stack, startStack } from '../stack/stack.ts'
import { CrashRun } from '../test/e2e/support/crash-run.ts'
import { LiquidationRun } from '../test/keeper/support/liquidation-run.ts'
import { insertLongs, insertManyOrders } from '../test/keeper/support/many-orders.ts'

const MARKET = 1
/** Thousandths of the first price at which a long with leverage 20 takes each step. */
const STEPS = [
  { name: 'forced order', step: 'forced', at: 974 },
  { name: 'inheritance', step: 'inherit_queued', at: 960 },
  { name: 'deleveraging', step: 'deleverage_queued', at: 940 },
] as const
/** The price at which a long of the bench, with a margin of a fifth, gets a forced order, in ticks of 1,000. */
const LOW_PRICE = 820
const WAIT = { budgetMs: 60_000 }

const { samples, running } = argumentsOf({
  command: 'npm run bench:liquidation --',
  flags: {
    samples: withDefault(wholeNumber('positions for each step; 0 measures no stack'), 20),
    running: withDefault(wholeNumber('liquidations that run at once', { least: 1 }), 5_000),
  },
})

const figures = (times: readonly number[]) => ({
  samples: times.length,
  'p50 ms': Math.round(percentile(times, 0.5)),
  'p99 ms': Math.round(percentile(times, 0.99)),
  'max ms': Math.round(percentile(times, 1)),
})

// ---------------------------------------------------------------------- a running stack

/** Opens a position, moves the price, and waits until the step is taken and the position is closed. Returns the row of the step. */
async function sample(run: CrashRun, { step, at }: (typeof STEPS)[number]): Promise<LiquidationChanged> {
  const before = (await run.steps(MARKET)).length
  await run.open({ marketId: MARKET, account: 0, against: 8, quantity: '0.02', leverage: 20 })
  if (step === 'forced') await run.bid(5, 970, '0.02')
  await run.price(at)
  const rows = await waitFor(
    async () => (await run.steps(MARKET)).slice(before),
    (found) => found.some((row) => row.step === 'ended'),
    WAIT,
  )
  await run.price(1_000)
  const taken = rows.find((row) => row.step === step)
  if (taken === undefined) throw new Error(`steps ${rows.map((row) => row.step)} lack ${step}`)
  return taken
}

/** Time of the batch with the first fill of the forced order, or at which the transaction of the action was signed. */
async function actedAt({ db }: Stack, { order_id, queue_no }: LiquidationChanged): Promise<number> {
  if (queue_no === null) {
    const { created_at } = await db
      .selectFrom('read.fills as fills')
      .innerJoin('batches', (join) =>
        join
          .onRef('batches.market_id', '=', 'fills.market_id')
          .onRef('batches.batch_id', '=', 'fills.batch_id'),
      )
      .select('batches.created_at')
      .where('fills.order_id', '=', order_id as string)
      .orderBy('batches.batch_id')
      .executeTakeFirstOrThrow()
    return created_at
  }
  const { signed_at } = await db
    .selectFrom('actions')
    .innerJoin('relayer_transactions as t', (join) =>
      join.onRef('t.relayer', '=', 'actions.relayer').onRef('t.nonce', '=', 'actions.nonce'),
    )
    .select('t.signed_at')
    .where('actions.market_id', '=', MARKET)
    .where('actions.queue_no', '=', queue_no)
    .orderBy('t.signed_at')
    .executeTakeFirstOrThrow()
  return signed_at
}

async function onStack() {
  const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-liquidation-'))
  const stack = await startStack(
    { port: 0, dataDir, fresh: false, bots: false, backstop: true, savesChain: false },
    () => {},
  )
  const table: Record<string, ReturnType<typeof figures>> = {}
  try {
    const run = await CrashRun.open(stack)
    for (const kind of STEPS) {
      const [decided, acted]: [number[], number[]] = [[], []]
      for (let at = 0; at < samples; at++) {
        const row = await sample(run, kind)
        const observedAt = row.evidence?.oracle_at as number
        decided.push(row.at - observedAt)
        acted.push((await actedAt(stack, row)) - observedAt)
      }
      table[`price observed → ${kind.name} decided`] = figures(decided)
      const end = kind.step === 'forced' ? 'in a batch' : 'signed'
      table[`price observed → ${kind.name} ${end}`] = figures(acted)
    }
    await run.release()
    run.close()
  } finally {
    await stack.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  return table
}

// ---------------------------------------------------------------------- many at once

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** First all of them start, then all of them have a forced order that nothing fills. */
async function manyAtOnce() {
  const run = await LiquidationRun.open()
  const ids = await insertManyOrders(run.fixture, { count: running, perAccount: 1 })
  await insertLongs(run.fixture, ids, 10)
  run.restart()
  await run.turn()
  await run.report(LOW_PRICE)
  const times = { start: [] as number[], go: [] as number[], auction: [] as number[] }
  const started = async (): Promise<number> =>
    (await run.fixture.db.selectFrom('liquidations').select('user_id').execute()).length
  while ((await started()) < running) {
    times.start.push(await timed(() => run.liquidate()))
    times.auction.push(await timed(() => run.auction()))
    await run.report(LOW_PRICE)
  }
  for (let turn = 0; turn < 30; turn++) {
    times.go.push(await timed(() => run.liquidate()))
    times.auction.push(await timed(() => run.auction()))
    await run.report(LOW_PRICE)
  }
  await run.fixture.close()
  return {
    'a step that starts liquidations': figures(times.start),
    'a step on running liquidations': figures(times.go),
    'the auction behind it': figures(times.auction),
  }
}

const latencies = samples === 0 ? {} : await onStack()
console.table(latencies)
const many = await manyAtOnce()
console.log(`${running} liquidations run at once`)
console.table(many)
console.log(JSON.stringify({ bench: 'liquidation', samples, running, latencies, many }))
