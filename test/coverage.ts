/**
 * `npm run coverage:contracts`: runs the contract tests on instrumented contracts, shows what they reach, and fails where a
 * file stays under 99 % of its lines or statements. Afterwards it builds again, so that nothing instrumented is left.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'

const LEAST = 99
const HARDHAT = 'node_modules/.bin/hardhat'
/** Parity runs the rules through their harness, which knows corners that take a market long to get into. */
const TESTS = globSync('test/{contracts,parity}/**/*.test.ts').sort()

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

async function run(): Promise<string> {
  const child = spawn(process.execPath, [HARDHAT, 'test', '--coverage', 'mocha', ...TESTS], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    process.stdout.write(text)
    output += text
  })
  const [code] = await once(child, 'close')
  if (code !== 0) process.exitCode = 1
  return output
}

const rows = rowsOf(await run()).filter(({ file }) => !file.startsWith('contracts/mocks/'))
const short = rows.filter(({ lines, statements }) => Math.min(lines, statements) < LEAST)
if (rows.length === 0) throw new Error('the coverage table is not there')
for (const { file, lines, statements } of short) {
  console.error(
    `${file} reaches ${lines} % of its lines, ${statements} % of its statements; ${LEAST} % are asked for`,
  )
}
const rebuilt = spawnSync(process.execPath, [HARDHAT, 'build', '--force', '--quiet'], { stdio: 'inherit' })
if (short.length > 0 || rebuilt.status !== 0) process.exitCode = 1
