/** Slices of the deep fuzzing campaign: which have passed, which process runs one, and the report. */
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { DEEP, seedText } from '../tasks/fuzz-profiles.ts'

export interface PassedTest {
  readonly contract: string
  readonly law: string
  /** Runs of a sequence of steps, or inputs of a test without one. */
  readonly runs: number
}

export interface PassedSlice {
  readonly seconds: number
  readonly tests: readonly PassedTest[]
}

function digestOf(pattern: string): string {
  const digest = createHash('sha256')
  for (const path of globSync(pattern).sort()) digest.update(readFileSync(path))
  return digest.digest('hex')
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The slices of the present contracts and invariants. Processes claim a slice by a file, which only one process can create. */
export class Campaign {
  readonly contracts = digestOf('contracts/**/*.sol')
  readonly #folder: string

  constructor() {
    const key = createHash('sha256')
      .update(this.contracts)
      .update(digestOf('test/contracts/invariants/*.sol'))
      .update(`${DEEP.seed} ${DEEP.depth}`)
    this.#folder = `cache/fuzz/${key.digest('hex').slice(0, 16)}`
    mkdirSync(this.#folder, { recursive: true })
  }

  #claimPath = (slice: number): string => `${this.#folder}/${slice}.claim`
  #resultPath = (slice: number): string => `${this.#folder}/${slice}.json`

  /** The first slice that has not passed and that no other process runs; null if there is none. */
  claim(): number | null {
    for (let slice = 0; slice < DEEP.slices; slice++) {
      if (!existsSync(this.#resultPath(slice)) && this.#take(this.#claimPath(slice))) return slice
    }
    return null
  }

  #take(path: string): boolean {
    if (existsSync(path) && !isRunning(Number(readFileSync(path, 'utf8')))) rmSync(path, { force: true })
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      return false
    }
  }

  pass(slice: number, result: PassedSlice): void {
    const path = this.#resultPath(slice)
    writeFileSync(`${path}.new`, JSON.stringify(result))
    renameSync(`${path}.new`, path)
    rmSync(this.#claimPath(slice), { force: true })
  }

  passed(): readonly PassedSlice[] {
    const slices = Array.from({ length: DEEP.slices }, (_, slice) => this.#resultPath(slice))
    return slices.filter((path) => existsSync(path)).map((path) => JSON.parse(readFileSync(path, 'utf8')))
  }
}

// ---------------------------------------------------------------------- report

const number = (value: number): string => value.toLocaleString('en-US')

/** Runs of each test, in all slices. */
function totalsOf(slices: readonly PassedSlice[]): PassedTest[] {
  const totals = new Map<string, PassedTest>()
  for (const test of slices.flatMap(({ tests }) => tests)) {
    const name = `${test.contract}.${test.law}`
    totals.set(name, { ...test, runs: test.runs + (totals.get(name)?.runs ?? 0) })
  }
  return [...totals].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, total]) => total)
}

const isSequence = ({ law }: PassedTest): boolean => law.startsWith('invariant_')
const sumOf = (tests: readonly PassedTest[]): number => tests.reduce((sum, { runs }) => sum + runs, 0)

const stepsIn = (tests: readonly PassedTest[]): number => sumOf(tests) * DEEP.depth

/** docs/audit/fuzz-campaign.md. */
export function reportOf(slices: readonly PassedSlice[], contracts: string): string {
  const totals = totalsOf(slices)
  const sequences = totals.filter(isSequence)
  const inMarkets = sequences.filter(({ contract }) => contract !== 'PauseInvariants')
  const minutes = Math.round(slices.reduce((sum, { seconds }) => sum + seconds, 0) / 60)
  const state =
    slices.length < DEEP.slices ? `${slices.length} of ${DEEP.slices}: not complete` : `all ${DEEP.slices}`
  return `# Deep fuzzing campaign

Random steps of every kind, also unauthorized calls and endings, in markets of every kind. All laws of \`test/contracts/invariants/\` are checked after every step, and every
account leaves at the end of a run of ${DEEP.depth} steps. \`npm run fuzz:deep\` writes this page.

- Slices that have passed: ${state}, each with one of the seeds \`${seedText(DEEP.seed)}\` to \`${seedText(DEEP.seed + DEEP.slices - 1)}\`. No law was violated.
- Steps: ${number(stepsIn(inMarkets))} in markets, ${number(stepsIn(sequences))} in all. Added durations: ${minutes} minutes.
- sha256 of \`contracts/**/*.sol\`, in the order of their paths: \`${contracts}\`.

Runs of each law:

${[...Map.groupBy(totals, ({ contract, runs }) => `${contract} ${runs}`).values()].map(lineOf).join('\n')}
`
}

/** Tests of one contract with equal runs. */
function lineOf(tests: readonly PassedTest[]): string {
  const [{ contract, runs }] = tests as [PassedTest]
  const unit = tests.every(isSequence) ? `of ${DEEP.depth} steps` : 'with one input each'
  return `- ${contract}, ${number(runs)} ${unit}:\n  ${tests.map(({ law }) => `\`${law}\``).join(', ')}`
}
