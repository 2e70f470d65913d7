/**
 * `npm run fuzz:deep`: random trading in markets of every kind (test/contracts/invariants), a campaign in slices
 * (tasks/fuzz-profiles.ts). `--minutes 20` begins no slice after that time; the next run resumes, unless contracts or
 * invariants have changed. Several processes can share a campaign. Each writes docs/audit/fuzz-campaign.md when it ends.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { argumentsOf, positiveNumber } from '../service/command-line.ts'
import { DEEP, DEEP_FILES } from '../tasks/fuzz-profiles.ts'
import { Campaign, type PassedTest, reportOf } from './fuzz-campaign.ts'

/** Runs Hardhat. Resolves to its output, or to null if it fails. */
async function hardhat(args: readonly string[], env: Record<string, string> = {}): Promise<string | null> {
  const child = spawn('hardhat', args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (data: Buffer) => {
    output += data
    process.stdout.write(data)
  })
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve))
  return code === 0 ? output : null
}

/** Below the name of its contract: `✔ invariant_exchange() (runs: 250)`, `✔ testFuzz_series(uint96,uint256) (runs: 5000)`. */
function passedIn(output: string): PassedTest[] {
  const passed: PassedTest[] = []
  let contract = ''
  for (const line of output.split('\n')) {
    contract = /^ {2}(?:\S+:)?(\w+)$/.exec(line)?.[1] ?? contract
    const [, law, runs] = /✔ (\w+)\(.*\) \(runs: (\d+)\)/.exec(line) ?? []
    if (law !== undefined) passed.push({ contract, law, runs: Number(runs) })
  }
  return passed
}

/** Null if a law is violated. */
async function runSlice(slice: number): Promise<PassedTest[] | null> {
  const passed: PassedTest[] = []
  for (const [file, { runs, slices }] of Object.entries(DEEP_FILES)) {
    if (slice >= slices) continue
    const args = [
      'test',
      'solidity',
      '--no-compile',
      '--test-profile',
      'deep',
      `test/contracts/invariants/${file}.t.sol`,
    ]
    const output = await hardhat(args, { FUZZ_SLICE: String(slice), FUZZ_RUNS: String(runs) })
    if (output === null) {
      console.log(`FUZZ_SLICE=${slice} FUZZ_RUNS=${runs} hardhat ${args.join(' ')} repeats the failure`)
      return null
    }
    passed.push(...passedIn(output))
  }
  return passed
}

const { minutes } = argumentsOf({
  command: 'npm run fuzz:deep --',
  flags: { minutes: positiveNumber('begin no slice after this time; the next run resumes') },
})
const until = minutes === undefined ? Number.POSITIVE_INFINITY : Date.now() + minutes * 60_000

const campaign = new Campaign()
let failed = (await hardhat(['build', '--quiet'])) === null
while (!failed && Date.now() < until) {
  const slice = campaign.claim()
  if (slice === null) break
  const started = Date.now()
  const tests = await runSlice(slice)
  failed = tests === null
  if (tests !== null) campaign.pass(slice, { seconds: Math.round((Date.now() - started) / 1000), tests })
}

const passed = campaign.passed()
console.log(`${passed.length} of ${DEEP.slices} slices have passed`)
process.exitCode = failed ? 1 : 0
if (!failed) writeFileSync('docs/audit/fuzz-campaign.md', reportOf(passed, campaign.contracts))
