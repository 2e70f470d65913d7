/**
 * `npm test`: runs all tests in three processes at a time, in up to five while processors are idle, and ends with one line of counts. Arguments choose suites:
 * `npm test -- contracts`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import {
  argumentsOf,
  type CommandLine,
  type Flags,
  orExit,
  rejectArguments,
} from '../service/command-line.ts'
import { inOrder, isEarly, type Job, SUITES } from './jobs.ts'
import { addCounts, type Counts, closingLine, countsOf, NONE } from './support/counts.ts'
import { failuresIn } from './support/failures.ts'
import { processorsAreIdle } from './support/idle-processors.ts'
import { dropDatabases, startTestPostgres } from './support/postgres.ts'
import { groupProcessorTime } from './support/processor-time.ts'
import { type FinishedJob, slowestJobs } from './support/slowest-jobs.ts'

/** Most tests wait more than they compute: two processes would use half of two cores. */
const PROCESSES = 3

/** More processes, each of which takes its next job only while processors are idle. The connections of the shared Postgres bound their number. */
const EXTRA_PROCESSES = 2

/** Far more than the longest job takes on two busy cores. A job that never ends would hide what it printed, and the counts. */
const JOB_LIMIT_MS = 45 * 60_000

const OUTPUT_GRACE_MS = 5_000

const REPORTS_TIME = './test/support/report-processor-time.ts'
const ENDS_WITH_RUNNER = './stack/parent-watch.ts'

/** Compiled modules, for the processes that tests start: it halves the time until they run. */
const COMPILE_CACHE = resolve('node_modules/.cache/compiled')

/** Artifacts of the contracts, which let the tests of services read a custom error. */
const BUILD: Job = { name: 'build', words: ['hardhat', 'build', '--quiet'] }

/**
 * A job that fails beside others runs once more, alone, after all of them: a machine that halts for seconds fails tests that hold. The end of the output
 * lists what failed only the first time, so that it is found and mended. A change that breaks more jobs than this is a failure at once.
 */
const MOST_SECOND_RUNS = 3

/** `failures`: what was printed about failed tests, repeated at the end: it would be far above the closing line. */
interface Result {
  readonly job: Job
  readonly counts: Counts
  readonly failures: readonly string[]
  /** Seconds of the job's processes; null if it was killed before it reported. */
  readonly processorS: number | null
}

/** Jobs that have ended, with their durations. */
const finished: FinishedJob[] = []

const secondsSince = (start: number): number => (Date.now() - start) / 1000

/** A process that the job left behind may hold its pipes open for ever. */
function closeOutput({ stdio }: ChildProcess): void {
  for (const stream of stdio) stream?.destroy()
}

let numbered = 0
/** Databases of ended jobs are dropped one after the other, while other jobs run. */
let dropped: Promise<void> = Promise.resolve()

async function runJob(job: Job, print: (line: string) => void): Promise<Result> {
  const {
    name,
    words: [program, ...args],
  } = job
  const started = Date.now()
  const prefix = `test_${++numbered}_`
  const preloaded = ['--import', REPORTS_TIME, '--import', ENDS_WITH_RUNNER]
  const child = spawn(process.execPath, [...preloaded, `node_modules/.bin/${program}`, ...args], {
    env: {
      ...process.env,
      TEST_POSTGRES_URL: postgres.url,
      TEST_DATABASES: prefix,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'ipc'],
    timeout: JOB_LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  const reported = text(child.stdio[3] as Readable).catch(() => '')
  let counts = NONE
  const printed: string[] = []
  const record = (line: string): void => {
    print(line)
    printed.push(stripVTControlCharacters(line))
  }
  createInterface(child.stderr as Readable).on('line', record)
  createInterface(child.stdout as Readable).on('line', (line) => {
    record(line)
    counts = addCounts(counts, countsOf(stripVTControlCharacters(line)))
  })
  child.once('exit', () => setTimeout(() => closeOutput(child), OUTPUT_GRACE_MS).unref())
  const [code, signal] = await once(child, 'close')
  const seconds = await reported
  const processorS = seconds === '' ? null : Number(seconds)
  finished.push({ name, wallS: secondsSince(started), processorS })
  dropped = dropped
    .then(() => dropDatabases(postgres.url, prefix))
    .catch((error) => console.log(`the databases of ${name} are left: ${error}`))
  if (code === 0) return { job, counts, failures: [], processorS }

  if (counts.failed === 0) {
    record(`${name} ended early (${signal ?? `exit code ${code}`}), counted as one failure`)
    counts = addCounts(counts, { ...NONE, failed: 1 })
  }
  return { job, counts, failures: [`-- ${name}`, ...failuresIn(printed)], processorS }
}

/**
 * The output of a single job is printed as it comes, that of one among several when it ends. Jobs that are not early wait until the artifacts
 * are built; without artifacts they do not run.
 */
async function runJobs(jobs: readonly Job[], built: Promise<boolean>): Promise<readonly Result[]> {
  const results: Result[] = []
  const waiting = [...jobs]
  const next = async (job: Job): Promise<void> => {
    if (!isEarly(job) && !(await built)) return
    const started = Date.now()
    const lines: string[] = []
    const result = await runJob(job, jobs.length === 1 ? console.log : (line) => lines.push(line))
    results.push(result)
    const duration = `${secondsSince(started).toFixed(0)} s, ${result.processorS?.toFixed(0) ?? '?'} s of processor time`
    console.log([...lines, `-- ${job.name}: ${closingLine(result.counts)}, ${duration}`].join('\n'))
  }
  const work = async (): Promise<void> => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) await next(job)
  }
  const isOver = (): boolean => waiting.length === 0
  /** One process at a time samples the processors: the job that it starts counts in the sample of the next one. */
  let sampled: Promise<boolean> = Promise.resolve(true)
  const workWhenIdle = async (): Promise<void> => {
    for (;;) {
      sampled = sampled.then(() => processorsAreIdle(isOver))
      const job = (await sampled) ? waiting.shift() : undefined
      if (job === undefined) return
      await next(job)
    }
  }
  // The build takes the place of one process. Extra ones begin after it, with jobs that need the artifacts.
  await Promise.all([
    ...Array.from({ length: PROCESSES - 1 }, work),
    built.then(() => Promise.all([work(), ...Array.from({ length: EXTRA_PROCESSES }, workWhenIdle)])),
  ])
  return results
}

const isFailed = ({ failures }: Result): boolean => failures.length > 0

/** Runs the failed jobs again, one after the other. Their second results count. */
async function runFailedAgain(results: readonly Result[]): Promise<readonly Result[]> {
  const failed = results.filter(isFailed)
  if (failed.length > MOST_SECOND_RUNS) return results
  const again = new Map<Job, Result>()
  for (const { job } of failed) {
    console.log(`-- ${job.name}: runs again, alone`)
    again.set(job, await runJob(job, console.log))
  }
  const unsteady = failed.filter(({ job }) => again.get(job)?.failures.length === 0)
  if (unsteady.length > 0) console.log(headed('failed once, passed alone', unsteady))
  return results.map((result) => again.get(result.job) ?? result)
}

const headed = (title: string, results: readonly Result[]): string =>
  [`\n== ${title} ==`, ...results.flatMap(({ failures }) => failures)].join('\n')

const COMMAND_LINE: CommandLine<Flags> = { command: 'npm test --', flags: {}, positionals: '[suite …]' }

const { positionals: wanted } = argumentsOf(COMMAND_LINE)
const names = Object.keys(SUITES)
const unknown = wanted.find((name) => !names.includes(name))
if (unknown !== undefined)
  orExit(() => rejectArguments(COMMAND_LINE, `unknown suite ${unknown}: expected ${names.join(', ')}`))
const jobs = inOrder(
  names.filter((name) => wanted.length === 0 || wanted.includes(name)).flatMap((name) => SUITES[name] ?? []),
)

const start = Date.now()
const postgres = await startTestPostgres()
const build = runJob(BUILD, console.log)
const tested = await runJobs(
  jobs,
  build.then((result) => !isFailed(result)),
)
const results = [await build, ...(wanted.length === 0 ? await runFailedAgain(tested) : tested)]
const total = results.reduce((sum, { counts }) => addCounts(sum, counts), NONE)
await dropped
const postgresS = groupProcessorTime(postgres.group)
await postgres.stop()
if (results.some(isFailed)) console.log(headed('failures', results.filter(isFailed)))
const processorS = finished.reduce((sum, job) => sum + (job.processorS ?? 0), postgresS)
console.log(
  [
    ...['', '== slowest jobs ==', ...slowestJobs(finished), ''],
    `in ${secondsSince(start).toFixed(0)} s, ${processorS.toFixed(0)} s of processor time, of which Postgres ${postgresS.toFixed(0)} s`,
    closingLine(total),
  ].join('\n'),
)
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
