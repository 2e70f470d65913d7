/**
 * `npm test`: runs every suite in turn, shows its output as it comes, and ends with one line of counts.
 * Arguments choose suites by name: `npm test -- contracts`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'
import { startTestPostgres } from './support/postgres.ts'

interface Suite {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

interface Counts {
  passed: number
  failed: number
  skipped: number
}

const COUNTED = { passing: 'passed', failing: 'failed', pending: 'skipped' } as const

function suites(): Suite[] {
  const files = globSync('test/**/*.test.ts', { exclude: ['test/contracts/**'] }).sort()
  const contracts = globSync('test/contracts/**/*.{test.ts,t.sol}')
  return [
    ...(files.length > 0 ? [{ name: 'services', command: 'mocha', args: files }] : []),
    ...(contracts.length > 0 ? [{ name: 'contracts', command: 'hardhat', args: ['test'] }] : []),
  ]
}

/**
 * Adds what one line of a reporter says. Mocha indents its closing counts by two spaces; Hardhat adds a line per
 * outcome that also names the Solidity tests, e.g. `3 passing (1 solidity, 2 mocha)`.
 */
export function countLine(line: string, counts: Counts): void {
  const mocha = /^ {2}(\d+) (passing|failing|pending)\b/.exec(line)
  const solidity = /^\d+ (passing|failing) \(.*?\b(\d+) solidity/.exec(line)
  if (mocha) counts[COUNTED[mocha[2] as keyof typeof COUNTED]] += Number(mocha[1])
  else if (solidity) counts[COUNTED[solidity[1] as keyof typeof COUNTED]] += Number(solidity[2])
}

async function run(suite: Suite, env: NodeJS.ProcessEnv): Promise<Counts> {
  console.log(`\n== ${suite.name} ==`)
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  const child = spawn(suite.command, suite.args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)
  lines.on('line', (line) => {
    console.log(line)
    countLine(stripVTControlCharacters(line), counts)
  })
  const [code, signal] = await once(child, 'close')
  if (code !== 0 && counts.failed === 0) {
    console.log(`${suite.name} ended early (${signal ?? `exit code ${code}`}), counted as one failure`)
    counts.failed = 1
  }
  return counts
}

async function main(wanted: readonly string[]): Promise<void> {
  const chosen = suites().filter(({ name }) => wanted.length === 0 || wanted.includes(name))
  const postgres = await startTestPostgres()
  const total: Counts = { passed: 0, failed: 0, skipped: 0 }
  try {
    for (const suite of chosen) {
      const counts = await run(suite, { ...process.env, TEST_POSTGRES_URL: postgres.url })
      total.passed += counts.passed
      total.failed += counts.failed
      total.skipped += counts.skipped
    }
  } finally {
    await postgres.stop()
  }
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ''
  console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`)
  process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
}

if (import.meta.main) await main(process.argv.slice(2))
