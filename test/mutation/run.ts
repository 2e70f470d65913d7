/**
 * `npm run mutation`: generates mutants of the contracts and runs tests against each until one fails. Arguments select files:
 * `npm run mutation -- FeeLib`. `--minutes 9` stops early and the next run resumes. A killed mutant is not run again while its
 * file stays unchanged; `--fresh` runs all of them. `--sample 20 --seed 1` runs that many, selected by the seed, whatever the
 * saved results are. `--since <commit>` runs those on lines that have changed since.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import {
  argumentsOf,
  orExit,
  positiveNumber,
  text,
  toggle,
  wholeNumber,
  withDefault,
} from '../../service/command-line.ts'
import { linesChangedSince } from './changed-lines.ts'
import { type Mutant, mutantsOf, nameOf } from './mutants.ts'
import { OTHERS, TARGETS, type Target, type TestStage } from './targets.ts'
import type { Task, Verdict } from './worker.ts'

const RESULTS = 'cache/mutants.json'
const ACCEPTED_SURVIVORS = 'test/mutation/survivors.json'
/** For a fault that never ends; tests of a mutant take seconds, on a busy machine minutes. */
const TASK_TIMEOUT_MS = 600_000
/** The compiler's memory grows with every run, so a worker process is replaced after this many tasks. */
const TASKS_PER_WORKER = 150

type KilledBy = Verdict['killedBy']

// ---------------------------------------------------------------------- workers

class Worker {
  #child: ChildProcess | undefined
  #tasks = 0
  readonly #sound = new Set<TestStage>()

  async #ready(): Promise<ChildProcess> {
    if (this.#tasks >= TASKS_PER_WORKER) this.stop()
    if (this.#child) return this.#child
    const child = fork(new URL('worker.ts', import.meta.url))
    await new Promise((resolve) => child.once('message', resolve))
    this.#child = child
    this.#tasks = 0
    return child
  }

  async run(task: Task): Promise<KilledBy> {
    const child = await this.#ready()
    this.#tasks++
    return new Promise((resolve) => {
      const settle = (killedBy: KilledBy): void => {
        clearTimeout(timer)
        child.removeAllListeners()
        resolve(killedBy)
      }
      const fail = (reason: string) => (): void => {
        this.stop()
        settle(reason)
      }
      const timer = setTimeout(fail('times out'), TASK_TIMEOUT_MS)
      child.once('message', (verdict: Verdict) => settle(verdict.killedBy))
      child.once('exit', fail('ends the process'))
      child.send(task)
    })
  }

  /** Without a fault every test must pass; otherwise a failure would not show that a mutant was killed. */
  async requireSound(stage: TestStage): Promise<void> {
    if (this.#sound.has(stage)) return
    const killedBy = await this.run({ id: 0, stage, sources: {} })
    if (killedBy !== null)
      throw new Error(`${stage.contract} fails without a fault: ${killedBy ?? 'no code'}`)
    this.#sound.add(stage)
  }

  async judge({ stages }: Target, mutant: Mutant): Promise<KilledBy> {
    let killedBy: KilledBy = null
    for (const [id, stage] of stages.entries()) {
      await this.requireSound(stage)
      killedBy = await this.run({ id, stage, sources: { [mutant.file]: mutant.source } })
      if (killedBy !== null) break
    }
    return killedBy
  }

  stop(): void {
    this.#child?.removeAllListeners()
    this.#child?.kill()
    this.#child = undefined
  }
}

// ---------------------------------------------------------------------- saved results

/** By mutant: the test that killed it, or a digest of the tests that it survived. */
interface SavedResults {
  readonly killed: Record<string, string>
  readonly survived: Record<string, string>
}

const NOT_COMPILED = 'does not compile'

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 24)

/** A digest of the tests of a target: when the tests change, its surviving mutants are run again. */
const testsOf = ({ stages }: Target): string =>
  digestOf(
    [...stages.flatMap(({ tests }) => globSync([...tests])), ...globSync('test/support/*.ts')]
      .sort()
      .map((path) => readFileSync(path, 'utf8'))
      .join(),
  )

const readJson = <T>(path: string, otherwise: T): T =>
  existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as T) : otherwise

/** A mutant with its saved result. */
class TrackedMutant {
  readonly target: Target
  readonly mutant: Mutant
  readonly #key: string
  readonly #tests: string
  readonly #results: SavedResults

  constructor(target: Target, mutant: Mutant, tests: string, results: SavedResults) {
    this.target = target
    this.mutant = mutant
    this.#key = digestOf(`${readFileSync(mutant.file)}${mutant.source}`)
    this.#tests = tests
    this.#results = results
  }

  /** A position in the sample that depends on the seed only. */
  place(seed: string): string {
    return digestOf(`${seed} ${this.#key}`)
  }

  get isPending(): boolean {
    return !(this.#key in this.#results.killed) && !this.survives
  }

  get survives(): boolean {
    return this.#results.survived[this.#key] === this.#tests && !(this.#key in this.#results.killed)
  }

  get isKilled(): boolean {
    const by = this.#results.killed[this.#key]
    return by !== undefined && by !== NOT_COMPILED
  }

  record(killedBy: KilledBy): void {
    if (killedBy === null) this.#results.survived[this.#key] = this.#tests
    else this.#results.killed[this.#key] = killedBy ?? NOT_COMPILED
  }
}

function trackedMutantsOf(target: Target, results: SavedResults): TrackedMutant[] {
  const tests = testsOf(target)
  return mutantsOf(target.file)
    .filter(({ place }) => target.places?.includes(place) ?? true)
    .map((mutant) => new TrackedMutant(target, mutant, tests, results))
}

// ---------------------------------------------------------------------- the run

interface Options {
  readonly workers: number
  readonly until: number
  readonly save: () => void
}

async function runAll(mutants: readonly TrackedMutant[], { workers, until, save }: Options): Promise<void> {
  const queue = mutants.filter(({ isPending }) => isPending)
  const runs = Array.from({ length: Math.min(workers, queue.length) }, async () => {
    const worker = new Worker()
    try {
      while (Date.now() < until) {
        const tracked = queue.shift()
        if (tracked === undefined) break
        tracked.record(await worker.judge(tracked.target, tracked.mutant))
        save()
      }
    } finally {
      worker.stop()
    }
  })
  await Promise.all(runs)
}

/** Prints the score; returns the number of survivors that are not accepted and of mutants that did not run. */
function report(mutants: readonly TrackedMutant[], acceptances: Readonly<Record<string, string>>): number {
  const isAccepted = ({ mutant }: TrackedMutant): boolean => nameOf(mutant) in acceptances
  console.log('\n| file | mutants | killed | accepted | survived | not run |\n|---|---|---|---|---|---|')
  for (const file of new Set(mutants.map(({ mutant }) => mutant.file))) {
    const mine = mutants.filter(({ mutant }) => mutant.file === file)
    const killed = mine.filter(({ isKilled }) => isKilled).length
    const survivors = mine.filter(({ survives }) => survives)
    const pending = mine.filter(({ isPending }) => isPending).length
    const accepted = survivors.filter(isAccepted).length
    const run = killed + survivors.length
    console.log(
      `| ${file} | ${run} | ${killed} | ${accepted} | ${survivors.length - accepted} | ${pending} |`,
    )
  }
  const left = mutants.filter((tracked) => tracked.survives && !isAccepted(tracked))
  for (const { mutant } of left) console.log(`\n${mutant.file}:${mutant.line}\n${nameOf(mutant)}`)
  return left.length + mutants.filter(({ isPending }) => isPending).length
}

/** Accepted survivors that are not generated any more, anywhere in the selected files. */
function staleAcceptances(
  mutants: readonly TrackedMutant[],
  acceptances: Readonly<Record<string, string>>,
): string[] {
  const files = new Set(mutants.map(({ mutant }) => mutant.file))
  const made = new Set([...files].flatMap((file) => mutantsOf(file).map(nameOf)))
  return Object.keys(acceptances).filter((name) => files.has(name.split(' ')[0] as string) && !made.has(name))
}

const { positionals, ...values } = argumentsOf({
  command: 'npm run mutation --',
  positionals: '[part of a file name …]',
  flags: {
    minutes: positiveNumber('stop after this time; the next run resumes'),
    workers: withDefault(wholeNumber('number of worker processes', { least: 1 }), 2),
    fresh: toggle('run every mutant again'),
    sample: wholeNumber('run only this many, whatever the saved results are', { least: 1 }),
    seed: withDefault(text('<text>', 'selects the sample'), '1'),
    since: text('<commit>', 'run only those on lines that have changed since the commit'),
  },
})
const started = Date.now()
const empty: SavedResults = { killed: {}, survived: {} }
const isSample = values.sample !== undefined
const results = values.fresh || isSample ? empty : readJson(RESULTS, empty)
const acceptances = readJson<Record<string, string>>(ACCEPTED_SURVIVORS, {})
const isNamed = ({ file }: Target): boolean => positionals.some((name) => file.includes(name))
const all = (positionals.length === 0 ? TARGETS : [...TARGETS, ...OTHERS].filter(isNamed)).flatMap((target) =>
  trackedMutantsOf(target, results),
)
const { since } = values
const changed = since === undefined ? null : orExit(() => linesChangedSince(since))
const wanted = all.filter(
  ({ mutant }) => changed === null || changed.get(mutant.file)?.has(mutant.line) === true,
)
const chosen = isSample
  ? [...wanted].sort((a, b) => (a.place(values.seed) < b.place(values.seed) ? -1 : 1)).slice(0, values.sample)
  : wanted
const until = values.minutes ? started + values.minutes * 60_000 : Number.POSITIVE_INFINITY
mkdirSync('cache', { recursive: true })
const save = (): void => {
  if (!isSample) writeFileSync(RESULTS, JSON.stringify(results, null, 1))
}
await runAll(chosen, { workers: values.workers, until, save })
const left = report(chosen, acceptances)
const stale = staleAcceptances(all, acceptances)
for (const name of stale) console.log(`\naccepted, but no longer generated: ${name}`)
console.log(`\n${((Date.now() - started) / 60_000).toFixed(1)} minutes`)
process.exitCode = left + stale.length > 0 ? 1 : 0
