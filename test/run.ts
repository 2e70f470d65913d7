/**
 * `npm test`: runs all tests in three processes at a time and ends with one line of counts. Arguments choose suites:
 * `npm test -- contracts`.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import {
  argumentsOf,
  type CommandLine,
  type Flags,
  orExit,
  rejectArguments,
} from '../service/command-line.ts'
import { addCounts, type Counts, closingLine, countsOf, NONE } from './support/counts.ts'
import { failuresIn } from './support/failures.ts'
import { dropDatabases, startTestPostgres } from './support/postgres.ts'

/** A program of node_modules/.bin with its arguments. */
interface Job {
  readonly name: string
  readonly words: readonly string[]
}

/** Most tests wait more than they compute: two processes would use half of two cores. */
const PROCESSES = 3

const mocha = (name: string, files: readonly string[]): Job => ({
  name,
  words: ['mocha', '--forbid-only', ...files],
})

/** Service tests of one folder run in one process, which loads their modules once. */
const folderJobs = (files: readonly string[]): Job[] =>
  [...Map.groupBy(files.toSorted(), dirname)].map(([folder, own]) => mocha(folder, own))

const fileJobs = (files: readonly string[]): Job[] => files.toSorted().map((file) => mocha(file, [file]))

/** Far more than the longest job takes on two busy cores. A job that never ends would hide what it printed, and the counts. */
const JOB_LIMIT_MS = 45 * 60_000

const OUTPUT_GRACE_MS = 5_000

/** Compiled modules, for the processes that tests start: it halves the time until they run. */
const COMPILE_CACHE = resolve('node_modules/.cache/compiled')

const E2E = 'test/e2e/**/*.test.ts'
const SERVICES = globSync('test/**/*.test.ts', { exclude: ['test/contracts/**', 'test/e2e/**'] })

const SUITES: Readonly<Record<string, readonly Job[]>> = {
  contracts: [{ name: 'contracts', words: ['hardhat', 'test'] }],
  services: folderJobs(SERVICES),
  e2e: fileJobs(globSync(E2E)),
}

/** Jobs of more than a minute come first, so that all processes end at about the same time. */
const SLOW =
  /^contracts|^test\/(keeper|indexer|stack|e2e\/(model|restart|crash|market-ends|adjustments|liquidation))/

/** They need no artifacts, and run beside the build, which computes on one core. */
const EARLY = /^test\/(domain|simulate|service|api\/(commands|http|live|order-entry|read-after))/

/** Artifacts of the contracts, which let the tests of services read a custom error. */
const BUILD: Job = { name: 'build', words: ['hardhat', 'build', '--quiet'] }

/** What was printed about failed tests, repeated at the end: it would be far above the closing line. */
const failures: string[] = []

const secondsSince = (start: number): string => `${((Date.now() - start) / 1000).toFixed(0)} s`

/** A process that the job left behind may hold its pipes open for ever. */
function closeOutput({ stdout, stderr }: ChildProcessByStdio<null, Readable, Readable>): void {
  stdout.destroy()
  stderr.destroy()
}

let numbered = 0
/** Databases of ended jobs are dropped one after the other, while other jobs run. */
let dropped: Promise<void> = Promise.resolve()

async function runJob(
  { name, words: [program, ...args] }: Job,
  print: (line: string) => void,
): Promise<Counts> {
  const prefix = `test_${++numbered}_`
  const child = spawn(process.execPath, [`node_modules/.bin/${program}`, ...args], {
    env: {
      ...process.env,
      ...{ TEST_POSTGRES_URL: postgres.url, TEST_DATABASES: prefix, NODE_COMPILE_CACHE: COMPILE_CACHE },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: JOB_LIMIT_MS,
    killSignal: 'SIGKILL',
  })
  let counts = NONE
  const printed: string[] = []
  const record = (line: string): void => {
    print(line)
    printed.push(stripVTControlCharacters(line))
  }
  createInterface(child.stderr).on('line', record)
  createInterface(child.stdout).on('line', (line) => {
    record(line)
    counts = addCounts(counts, countsOf(stripVTControlCharacters(line)))
  })
  child.once('exit', () => setTimeout(() => closeOutput(child), OUTPUT_GRACE_MS).unref())
  const [code, signal] = await once(child, 'close')
  dropped = dropped
    .then(() => dropDatabases(postgres.url, prefix))
    .catch((error) => console.log(`the databases of ${name} are left: ${error}`))
  if (code === 0) return counts

  if (counts.failed === 0) {
    record(`${name} ended early (${signal ?? `exit code ${code}`}), counted as one failure`)
    counts = addCounts(counts, { ...NONE, failed: 1 })
  }
  failures.push(`-- ${name}`, ...failuresIn(printed))
  return counts
}

/**
 * The output of a single job is printed as it comes, that of one among several when it ends. Jobs that are not early wait until the artifacts
 * are built; without artifacts they do not run.
 */
async function runJobs(jobs: readonly Job[], built: Promise<boolean>): Promise<Counts> {
  let total = NONE
  const waiting = jobs.values()
  const work = async (): Promise<void> => {
    for (const job of waiting) {
      if (!EARLY.test(job.name) && !(await built)) continue
      const started = Date.now()
      const lines: string[] = []
      const counts = await runJob(job, jobs.length === 1 ? console.log : (line) => lines.push(line))
      total = addCounts(total, counts)
      console.log([...lines, `-- ${job.name}: ${closingLine(counts)}, ${secondsSince(started)}`].join('\n'))
    }
  }
  // The build takes the place of one process.
  await Promise.all([...Array.from({ length: PROCESSES - 1 }, work), built.then(work)])
  return total
}

const COMMAND_LINE: CommandLine<Flags> = { command: 'npm test --', flags: {}, positionals: '[suite …]' }

const { positionals: wanted } = argumentsOf(COMMAND_LINE)
const names = Object.keys(SUITES)
const unknown = wanted.find((name) => !names.includes(name))
if (unknown !== undefined)
  orExit(() => rejectArguments(COMMAND_LINE, `unknown suite ${unknown}: expected ${names.join(', ')}`))
/** Jobs that can begin at once, then those that take long, then the others. */
const rank = ({ name }: Job): number => (EARLY.test(name) ? 0 : SLOW.test(name) ? 1 : 2)
const jobs = names
  .filter((name) => wanted.length === 0 || wanted.includes(name))
  .flatMap((name) => SUITES[name] ?? [])
  .toSorted((one, other) => rank(one) - rank(other))

const start = Date.now()
const postgres = await startTestPostgres()
const build = runJob(BUILD, console.log)
const [built, tested] = await Promise.all([
  build,
  runJobs(
    jobs,
    build.then(({ failed }) => failed === 0),
  ),
])
const total = addCounts(built, tested)
await dropped
await postgres.stop()
if (failures.length > 0) console.log(['\n== failures ==', ...failures].join('\n'))
console.log(`\nin ${secondsSince(start)}\n${closingLine(total)}`)
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
