/**
 * `npm test`: runs every suite in turn, shows its output as it comes, and ends with one line of counts.
 * Arguments choose suites: `npm test -- contracts`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
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
import { startTestPostgres } from './support/postgres.ts'

interface Suite {
  readonly name: string
  /** A program of node_modules/.bin and its arguments. */
  readonly words: readonly string[]
}

const mocha = (name: string, pattern: string, exclude: readonly string[] = []): Suite[] => {
  const files = globSync(pattern, { exclude }).sort()
  return files.length > 0 ? [{ name, words: ['mocha', '--forbid-only', ...files] }] : []
}

/** The contracts come first: their artifacts let the others read a custom error. */
const SUITES: readonly Suite[] = [
  { name: 'contracts', words: ['hardhat', 'test'] },
  ...mocha('services', 'test/**/*.test.ts', ['test/contracts/**', 'test/e2e/**']),
  ...mocha('e2e', 'test/e2e/**/*.test.ts'),
]

async function run({ name, words: [program, ...args] }: Suite, env: NodeJS.ProcessEnv): Promise<Counts> {
  console.log(`\n== ${name} ==`)
  const child = spawn(process.execPath, [`node_modules/.bin/${program}`, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let counts = NONE
  createInterface(child.stdout).on('line', (line) => {
    console.log(line)
    counts = addCounts(counts, countsOf(stripVTControlCharacters(line)))
  })
  const [code, signal] = await once(child, 'close')
  if (code === 0 || counts.failed > 0) return counts

  console.log(`${name} ended early (${signal ?? `exit code ${code}`}), counted as one failure`)
  return addCounts(counts, { ...NONE, failed: 1 })
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
for (const suite of chosen) {
  total = addCounts(total, await run(suite, { ...process.env, TEST_POSTGRES_URL: postgres.url }))
}
await postgres.stop()
console.log(`\n${closingLine(total)}`)
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
