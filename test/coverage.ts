/** `npm run coverage:contracts`: runs the contract tests on instrumented contracts and fails if a file has less than 99 % of lines or statements covered. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { argumentsOf } from '../service/command-line.ts'

const REQUIRED_PERCENT = 99
const HARDHAT = 'node_modules/.bin/hardhat'
/**
 * The parity tests reach corner cases of the libraries through their harness. The deployment tests compare deployed code with the
 * production build, so they cannot run on instrumented code.
 */
const TESTS = globSync('test/{contracts,parity}/**/*.test.ts', {
  exclude: ['test/contracts/deployment/**'],
}).sort()

interface FileCoverage {
  readonly file: string
  readonly lines: number
  readonly statements: number
}

/** The rows of the table that Hardhat prints: `║ contracts/X.sol │ 100.00 │ 99.50 │ 165 ║`. */
function rowsOf(output: string): FileCoverage[] {
  const row = /║ (contracts\/\S+\.sol)\s*│ (\d+\.\d+)\s*│ (\d+\.\d+)/g
  return [...stripVTControlCharacters(output).matchAll(row)].map(([, file = '', lines, statements]) => ({
    file,
    lines: Number(lines),
    statements: Number(statements),
  }))
}

async function run(): Promise<string> {
  const child = spawn(process.execPath, [HARDHAT, 'test', '--coverage', 'mocha', ...TESTS], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // On a signal the tests end, and tasks/coverage-build.ts restores the build output.
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

argumentsOf({ command: 'npm run coverage:contracts', flags: {} })
const rows = rowsOf(await run()).filter(({ file }) => !file.startsWith('contracts/mocks/'))
if (rows.length === 0) throw new Error('no coverage table found in the output of hardhat')
for (const { file, lines, statements } of rows) {
  if (Math.min(lines, statements) >= REQUIRED_PERCENT) continue
  console.error(
    `${file}: ${lines} % of lines and ${statements} % of statements are covered; ${REQUIRED_PERCENT} % of each are required`,
  )
  process.exitCode = 1
}
