/**
 * `npm run fuzz:deep`: random trading in markets of every kind (test/contracts/invariants), long. Without arguments it is the
 * campaign of docs/fuzz-campaign.md, at least ten million steps with a fixed seed, and writes that file when it passes.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { argumentsOf, wholeNumber } from '../service/command-line.ts'
import { DEEP } from '../tasks/fuzz-profiles.ts'

const { runs } = argumentsOf({
  command: 'npm run fuzz:deep --',
  flags: { runs: wholeNumber('runs per market; writes no report', { least: 1 }) },
})

const started = Date.now()
const child = spawn('hardhat', ['test', 'solidity', '--test-profile', 'deep'], {
  env: { ...process.env, ...(runs === undefined ? {} : { FUZZ_RUNS: String(runs) }) },
  stdio: ['ignore', 'pipe', 'inherit'],
})
let output = ''
child.stdout.on('data', (data: Buffer) => {
  output += data
  process.stdout.write(data)
})
const code = await new Promise<number | null>((resolve) => child.on('exit', resolve))
const minutes = Math.round((Date.now() - started) / 60_000)
process.exitCode = code ?? 1

const passed = [...output.matchAll(/(\w+Invariants)\n\s+✔ (\w+)\(\) \(runs: (\d+)\)/g)]
const steps = passed.reduce((sum, [, , , count]) => sum + Number(count) * DEEP.depth, 0)
console.log(`${steps} steps in ${minutes} minutes`)

const digest = createHash('sha256')
for (const path of globSync('contracts/**/*.sol').sort()) digest.update(readFileSync(path))

const report = `# Deep fuzzing campaign

Random steps (trades, cancels, deposits, withdrawals, funding, adjustments, liquidations, inheritances, deleveragings, time, unauthorized
calls) in markets of every kind, with all laws of \`test/contracts/invariants/\` checked after every step, and the exit of every
account at the end of each run of ${DEEP.depth} steps. \`npm run fuzz:deep\` repeats the campaign and writes this file.

| | |
|---|---|
| seed | \`${DEEP.seed}\` |
| steps | ${steps.toLocaleString('en-US')} |
| duration | ${minutes} minutes |
| sha256 of \`contracts/**/*.sol\`, in the order of their paths | \`${digest.digest('hex')}\` |
| violated laws | none |

| market | law | runs | steps |
|---|---|---|---|
${passed.map(([, market, law, count]) => `| ${market} | \`${law}\` | ${count} | ${Number(count) * DEEP.depth} |`).join('\n')}
`
if (code === 0 && runs === undefined) writeFileSync('docs/fuzz-campaign.md', report)
