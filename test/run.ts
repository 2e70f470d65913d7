/**
 * `npm test`: runs every suite in turn and ends with one line of counts. Arguments choose suites: `npm test -- contracts`.
 * Service tests and end-to-end tests run in two processes at a time.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { createInterface } from 'node:readline'
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
import { startTestPostgres } from './support/postgres.ts'

/** A program of node_modules/.bin with its arguments. */
interface Job {
  readonly name: string
  readonly words: readonly string[]
}

interface Suite {
  readonly name: string
  readonly jobs: readonly Job[]
}

/** Their tests wait more than they compute. Service tests of one folder run in one process, which loads their modules once. */
const PROCESSES = 2

const mocha = (name: string, files: readonly string[]): Job => ({
  name,
  words: ['mocha', '--forbid-only', ...files],
})

/** Folders whose tests start processes and chains: they take longest and come first, so that all jobs end at about the same time. */
const SLOW = /^test\/(keeper|indexer)/

/** End-to-end tests that take two minutes. */
const LONG = /model|restart/

const slowFirst = <T>(items: readonly T[], isSlow: (item: T) => boolean): T[] =>
  items.toSorted((a, b) => Number(isSlow(b)) - Number(isSlow(a)))

/** One job per folder. */
const folderJobs = (files: readonly string[]): Job[] =>
  slowFirst([...Map.groupBy(files.toSorted(), dirname)], ([folder]) => SLOW.test(folder)).map(
    ([folder, own]) => mocha(folder, own),
  )

const fileJobs = (files: readonly string[]): Job[] =>
  slowFirst(files.toSorted(), (file) => LONG.test(file)).map((file) => mocha(file, [file]))

/** Compiled modules, for the processes that tests start: it halves the time until they run. */
const COMPILE_CACHE = resolve('node_modules/.cache/compiled')

const E2E = 'test/e2e/**/*.test.ts'
const SERVICES = globSync('test/**/*.test.ts', { exclude: ['test/contracts/**', 'test/e2e/**'] })

/** The contracts come first: their artifacts let the others read a custom error. */
const SUITES: readonly Suite[] = [
  { name: 'contracts', jobs: [{ name: 'contracts', words: ['hardhat', 'test'] }] },
  { name: 'services', jobs: folderJobs(SERVICES) },
  { name: 'e2e', jobs: fileJobs(globSync(E2E)) },
]

/** What was printed about failed tests, repeated at the end: it would be far above the closing line. */
const failures: string[] = []

const secondsSince = (start: number): string => `${((Date.now() - start) / 1000).toFixed(0)} s`

async function runJob(
  { name, words: [program, ...args] }: Job,
  print: (line: string) => void,
): Promise<Counts> {
  const child = spawn(process.execPath, [`node_modules/.bin/${program}`, ...args], {
    env: { ...process.env, TEST_POSTGRES_URL: postgres.url, NODE_COMPILE_CACHE: COMPILE_CACHE },
    stdio: ['ignore', 'pipe', 'pipe'],
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
  const [code, signal] = await once(child, 'close')
  if (code === 0) return counts

  if (counts.failed === 0) {
    record(`${name} ended early (${signal ?? `exit code ${code}`}), counted as one failure`)
    counts = addCounts(counts, { ...NONE, failed: 1 })
  }
  failures.push(`-- ${name}`, ...failuresIn(printed))
  return counts
}

/** The output of a single job is printed as it comes, that of one among several when it ends. */
async function runSuite({ name, jobs }: Suite): Promise<Counts> {
  const start = Date.now()
  console.log(`\n== ${name} ==`)
  let total = NONE
  const waiting = jobs.values()
  const work = async (): Promise<void> => {
    for (const job of waiting) {
      const started = Date.now()
      const lines: string[] = []
      const counts = await runJob(job, jobs.length === 1 ? console.log : (line) => lines.push(line))
      total = addCounts(total, counts)
      console.log([...lines, `-- ${job.name}: ${closingLine(counts)}, ${secondsSince(started)}`].join('\n'))
    }
  }
  await Promise.all(Array.from({ length: PROCESSES }, work))
  console.log(`== ${name}: ${closingLine(total)}, ${secondsSince(start)}`)
  return total
}

const COMMAND_LINE: CommandLine<Flags> = { command: 'npm test --', flags: {}, positionals: '[suite …]' }

const { positionals: wanted } = argumentsOf(COMMAND_LINE)
const names = SUITES.map(({ name }) => name)
const unknown = wanted.find((name) => !names.includes(name))
if (unknown !== undefined)
  orExit(() => rejectArguments(COMMAND_LINE, `unknown suite ${unknown}: expected ${names.join(', ')}`))
const chosen = SUITES.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
const postgres = await startTestPostgres()
let total = NONE
for (const suite of chosen) total = addCounts(total, await runSuite(suite))
await postgres.stop()
if (failures.length > 0) console.log(['\n== failures ==', ...failures].join('\n'))
console.log(`\n${closingLine(total)}`)
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
