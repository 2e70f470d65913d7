/**
 * `npm run coverage:contracts`: runs the contract tests on instrumented contracts, shows what they reach, and fails where a
 * file stays under 99 % of its lines or statements. What was built before is put back afterwards, however the run ends.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

const LEAST = 99
const HARDHAT = 'node_modules/.bin/hardhat'
/** What a build writes. */
const BUILT = ['artifacts', 'cache', 'typechain-types']
/**
 * Parity runs the rules through their harness, which knows corners that take a market long to get into. A deployment is compared
 * with the code that is shipped, so it cannot be rehearsed with another.
 */
const TESTS = globSync('test/{contracts,parity}/**/*.test.ts', {
  exclude: ['test/contracts/deployment/**'],
}).sort()

interface Reached {
  readonly file: string
  readonly lines: number
  readonly statements: number
}

/** The rows of the table that Hardhat prints: `║ contracts/X.sol │ 100.00 │ 99.50 │ 165 ║`. */
function rowsOf(output: string): Reached[] {
  const row = /║ (contracts\/\S+\.sol)\s*│ (\d+\.\d+)\s*│ (\d+\.\d+)/g
  return [...stripVTControlCharacters(output).matchAll(row)].map(([, file = '', lines, statements]) => ({
    file,
    lines: Number(lines),
    statements: Number(statements),
  }))
}

/** Keeps a copy of what is built; returns how to put it back. */
function keepBuilt(): () => void {
  const copy = mkdtempSync(join(tmpdir(), 'coverage-'))
  const kept = BUILT.filter((name) => existsSync(name))
  for (const name of kept) cpSync(name, join(copy, name), { recursive: true })
  return () => {
    for (const name of BUILT) rmSync(name, { recursive: true, force: true })
    for (const name of kept) cpSync(join(copy, name), name, { recursive: true })
    rmSync(copy, { recursive: true })
  }
}

async function run(): Promise<string> {
  const child = spawn(process.execPath, [HARDHAT, 'test', '--coverage', 'mocha', ...TESTS], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // Interrupted, the tests end, and what was built is put back.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text)
    output += text
  })
  const [code] = await once(child, 'close')
  if (code !== 0) process.exitCode = 1
  return output
}

const putBack = keepBuilt()
const rows = rowsOf(await run().finally(putBack)).filter(({ file }) => !file.startsWith('contracts/mocks/'))
if (rows.length === 0) throw new Error('the coverage table is not there')
for (const { file, lines, statements } of rows) {
  if (Math.min(lines, statements) >= LEAST) continue
  console.error(
    `${file} reaches ${lines} % of its lines, ${statements} % of its statements; ${LEAST} % are asked for`,
  )
  process.exitCode = 1
}
