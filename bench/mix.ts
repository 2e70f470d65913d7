/**
 * Measures recorded proportions of real trading (`mix/flow.ts`) on a complete stack: latency per stage, processor time,
 * waits, statements and errors.
 */
// npm run bench:mix -- [--rate 200] [--seconds 30] [--cores 0] [--api 1] [--hogs 2] [--top 10]
// npm run bench:mix -- --rate 100 --requote 200 [--requote-by place]

// npm run bench:mix -- --recorded flow.csv.gz [--symbol AAPL-PERP] [--speed 5]
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  argumentsOf,
  oneOf,
  positiveNumber,
  text,
  wholeNumber,
  withDefault,
} from '../service/command-line.ts'
import { overrideFeed } from '../stack/feed-override.ts'
import type { Stack } from '../stack/stack.ts'
import { startComplete } from './intake/complete-target.ts'
import { measureSignatures } from './intake/signatures.ts'
import type { Target } from './intake/target.ts'
import { STATEMENT_SETTINGS, watchDatabase } from './mix/database-watch.ts'
import type { FlowMessage, FlowTask, Sample, StartAt } from './mix/generator.ts'
import { startHogs } from './mix/hogs.ts'
import { startMoreApis } from './mix/more-apis.ts'
import { type Measurement, print } from './mix/print.ts'
import { descendants, processorTimes, timesBetween } from './mix/processor-time.ts'
import type { PricePoint } from './mix/recorded.ts'
import { REQUOTE_WAYS, type RequoteTask } from './mix/requote-plan.ts'
import type { BatchSample, RequoteMessage } from './mix/requoter.ts'
import { stagesOf } from './mix/stages.ts'

const options = argumentsOf({
  command: 'npm run bench:mix --',
  flags: {
    rate: withDefault(positiveNumber('orders per second; the cancels are additional'), 200),
    seconds: withDefault(positiveNumber('duration of the measurement'), 30),
    warmup: withDefault(positiveNumber('seconds of the same load before it'), 5),
    idle: withDefault(positiveNumber('seconds without load, measured first'), 5),
    accounts: withDefault(wholeNumber('accounts that trade, half of them buyers', { least: 2 }), 64),
    markets: withDefault(wholeNumber('markets that they trade in', { least: 1, most: 4 }), 4),
    api: withDefault(wholeNumber('number of api processes', { least: 1, most: 8 }), 1),
    hogs: withDefault(wholeNumber('endless loops that run beside the exchange', { most: 64 }), 0),
    requote: withDefault(
      wholeNumber('quotes of a market maker, all renewed every 200 ms over the feed', { most: 1_000 }),
      0,
    ),
    'requote-by': withDefault(oneOf(REQUOTE_WAYS, 'replace the quotes, or cancel and place them'), 'replace'),
    cores: text('<list>', 'processors of the generator, such as 0 or 0,1; the exchange runs on the others'),
    seed: withDefault(wholeNumber('of the flow: equal seeds send equal orders'), 1),
    recorded: text('<file>', 'send recorded order flow in place of the mix; see npm run cb -- replay'),
    symbol: withDefault(text('<symbol>', 'market of the recorded flow'), 'AAPL-PERP'),
    speed: withDefault(positiveNumber('speed relative to the recording'), 1),
    top: withDefault(wholeNumber('number of statements to list'), 0),
  },
})

/** The generator connects and its timers start; the requests are signed before. */
const LEAD_MS = 500
/** Bound of the time in which the last orders are cleared and projected. */
const SETTLE_MS = 2_000

/** Moves the threads of the processes to these processors. */
const pin = (cores: string, pids: readonly number[]): void => {
  for (const pid of pids) execFileSync('taskset', ['-acp', cores, `${pid}`], { stdio: 'ignore' })
}

function pinApart(cores: string, generator: number): void {
  const own = new Set(cores.split(',').map(Number))
  const others = Array.from({ length: availableParallelism() }, (_, core) => core).filter(
    (core) => !own.has(core),
  )
  if (others.length === 0) throw new Error(`--cores ${cores} leaves no processor to the exchange`)
  pin(
    others.join(),
    [...descendants().keys()].filter((pid) => pid !== generator),
  )
  pin(cores, [generator])
}

/** The flow, and the markets that its indexes name. */
function flowOf({ markets }: Target, terms: { readonly seconds: number; readonly accounts: number }) {
  const { recorded: file, symbol, speed, rate, seed } = options
  if (file === undefined)
    return { markets: markets.slice(0, options.markets), flow: { ...terms, rate, seed } }
  const market = markets.find(({ spec }) => spec.symbol === symbol)
  if (market === undefined)
    throw new Error(`--symbol must be one of ${markets.map(({ spec }) => spec.symbol)}`)
  return { markets: [market], flow: { ...terms, file, speed } }
}

/** The market's oracle price follows the points. Returns what returns the feed to the keeper. */
function publishPrices(stack: Stack, marketId: number, prices: readonly PricePoint[], startAt: number) {
  if (prices.length === 0) return async () => {}
  const feed = overrideFeed(stack, marketId)
  const timers = prices.map(({ at, price }) =>
    setTimeout(() => feed.setPrice(price), startAt + at - Date.now()),
  )
  return async () => {
    for (const timer of timers) clearTimeout(timer)
    await feed.release()
  }
}

interface Requoter {
  readonly pids: readonly number[]
  /** From its start: the batches, each with the time of its answer. */
  run(start: StartAt): Promise<readonly BatchSample[]>
  stop(): void
}

const NO_REQUOTER: Requoter = { pids: [], run: async () => [], stop() {} }

/** The market maker is the account behind those of the mix. Resolves when its first quotes rest. */
async function startRequoter({ port, keys, markets }: Target, seconds: number): Promise<Requoter> {
  const { requote: quotes } = options
  if (quotes === 0) return NO_REQUOTER
  const child = fork(new URL('./mix/requoter.ts', import.meta.url), { serialization: 'advanced' })
  const next = async (): Promise<RequoteMessage> =>
    (await Promise.race([
      once(child, 'message').then(([message]) => message as RequoteMessage),
      once(child, 'exit').then(() => {
        throw new Error('the requoter has ended')
      }),
    ])) as RequoteMessage
  const [market] = markets
  const account = keys.length - 1
  if (market === undefined) throw new Error('the exchange has no market')
  child.send({
    port,
    apiKey: keys[account] as string,
    account,
    market,
    quotes,
    seconds,
    by: options['requote-by'],
  } satisfies RequoteTask)
  await next()
  return {
    pids: [child.pid ?? 0],
    async run(start) {
      child.send(start)
      const message = await next()
      return message === 'ready' ? [] : message.batches
    },
    stop: () => void child.kill(),
  }
}

async function measure(): Promise<Measurement> {
  const recovery = measureSignatures().bare
  const accounts = 2 * Math.ceil(options.accounts / 2)
  const makers = options.requote > 0 ? 1 : 0
  const target = await startComplete({ accounts: accounts + makers, databaseSettings: STATEMENT_SETTINGS })
  const more = await startMoreApis(target.stack, options.api - 1)
  const watch = await watchDatabase(target.databaseUrl)
  const hogs = startHogs(options.hogs)
  const requoter = await startRequoter(target, options.warmup + options.seconds)
  const generator = fork(new URL('./mix/generator.ts', import.meta.url), { serialization: 'advanced' })
  try {
    const { seconds, warmup, idle } = options
    const rate = options.recorded === undefined ? options.rate : null
    const known = new Map([
      ...Object.entries(target.processes).map(([name, pid]) => [pid, name] as const),
      ...more.pids().map((pid) => [pid, 'api'] as const),
      ...hogs.pids().map((pid) => [pid, 'hogs'] as const),
      ...requoter.pids.map((pid) => [pid, 'generator'] as const),
      [generator.pid ?? 0, 'generator'],
      [process.pid, 'bench'],
    ])
    const times = () => processorTimes(target.db, known)

    const idleFrom = await times()
    await sleep(idle * 1000)
    const idleTimes = timesBetween(idleFrom, await times())

    const flow = flowOf(target, { seconds: warmup + seconds, accounts })
    const keys = target.keys.slice(0, accounts)
    generator.send({ ports: [target.port, ...more.ports], keys, ...flow } satisfies FlowTask)
    const [{ prices }] = (await once(generator, 'message')) as [{ prices: readonly PricePoint[] }]
    if (options.cores !== undefined) pinApart(options.cores, generator.pid ?? 0)
    const startAt = Date.now() + LEAD_MS
    generator.send({ startAt } satisfies StartAt)
    const requoted = requoter.run({ startAt })
    const answered = once(generator, 'message') as Promise<[FlowMessage]>
    const stopPrices = publishPrices(target.stack, flow.markets[0]?.spec.marketId ?? 0, prices, startAt)

    const from = startAt + warmup * 1000
    const until = from + seconds * 1000
    await sleep(from - Date.now())
    await watch.reset()
    const before = await times()
    await sleep(until - Date.now())
    const used = timesBetween(before, await times())
    const statements = await watch.statements(options.top)
    const waits = watch.waits()
    const load = loadavg()[0] as number

    const [result] = await answered
    if (!('samples' in result)) throw new Error('the generator has sent no samples')
    await sleep(SETTLE_MS)
    await stopPrices()
    const measured = ({ at }: Pick<Sample, 'at'>): boolean => at >= warmup * 1000
    return {
      ...{ rate, seconds, idle, idleTimes, used, statements, waits, load, apis: options.api },
      recovery: [recovery, measureSignatures().bare],
      stages: await stagesOf(target.db, watch.progress, { from, until }),
      samples: result.samples.filter(measured),
      requotes: (await requoted).filter(measured),
      requotedBy: options['requote-by'],
      latestMs: result.latestMs,
    }
  } finally {
    generator.kill()
    requoter.stop()
    hogs.stop()
    await watch.stop()
    await more.stop()
    await target.stop()
  }
}

print(await measure())
