/**
 * `npm run mutation`: gives the contracts small faults, one at a time, and looks for faults that no test notices.
 * Arguments choose files: `npm run mutation -- FeeLib`. `--minutes 9` stops early; the next run goes on. What was noticed
 * once is not tried again while the file stays as it is; `--fresh` tries everything. `--sample 20 --seed 1` tries that many, chosen
 * by the seed, whatever is known of them.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Mutant, mutantsOf, nameOf } from './mutants.ts'
import { OTHERS, type Stage, TARGETS, type Target } from './targets.ts'
import type { Task, Verdict } from './worker.ts'

const NOTES = 'cache/mutation.json'
const EXCUSES = 'test/mutation/survivors.json'
const PATIENCE_MS = 180_000
/** A compiler that has run many times has grown. */
const TASKS_PER_WORKER = 150

type Noticed = Verdict['noticed']

// ---------------------------------------------------------------------- workers

class Worker {
  #child: ChildProcess | undefined
  #tasks = 0
  readonly #sound = new Set<Stage>()

  async #ready(): Promise<ChildProcess> {
    if (this.#tasks >= TASKS_PER_WORKER) this.stop()
    if (this.#child) return this.#child
    const child = fork(new URL('worker.ts', import.meta.url))
    await new Promise((resolve) => child.once('message', resolve))
    this.#child = child
    this.#tasks = 0
    return child
  }

  async run(task: Task): Promise<Noticed> {
    const child = await this.#ready()
    this.#tasks++
    return new Promise((resolve) => {
      const give = (noticed: Noticed): void => {
        clearTimeout(patience)
        child.removeAllListeners()
        resolve(noticed)
      }
      const lose = (why: string) => (): void => {
        this.stop()
        give(why)
      }
      const patience = setTimeout(lose('takes too long'), PATIENCE_MS)
      child.once('message', (verdict: Verdict) => give(verdict.noticed))
      child.once('exit', lose('ends the process'))
      child.send(task)
    })
  }

  /** Without a fault every test passes, or nothing below means anything. */
  async requireSound(stage: Stage): Promise<void> {
    if (this.#sound.has(stage)) return
    const noticed = await this.run({ id: 0, stage, sources: {} })
    if (noticed !== null) throw new Error(`${stage.contract} fails without a fault: ${noticed ?? 'no code'}`)
    this.#sound.add(stage)
  }

  async judge({ stages }: Target, mutant: Mutant): Promise<Noticed> {
    let noticed: Noticed = null
    for (const [id, stage] of stages.entries()) {
      await this.requireSound(stage)
      noticed = await this.run({ id, stage, sources: { [mutant.file]: mutant.source } })
      if (noticed !== null) break
    }
    return noticed
  }

  stop(): void {
    this.#child?.removeAllListeners()
    this.#child?.kill()
    this.#child = undefined
  }
}

// ---------------------------------------------------------------------- notes

/** What noticed each fault; for the unnoticed, the tests that did not. */
interface Notes {
  readonly noticed: Record<string, string>
  readonly unnoticed: Record<string, string>
}

const NOT_COMPILED = 'does not compile'

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 24)

/** The tests of a target: changed, they are asked again about what they did not notice. */
const testsOf = ({ stages }: Target): string =>
  digestOf(
    [...stages.flatMap(({ tests }) => globSync([...tests])), ...globSync('test/support/*.ts')]
      .sort()
      .map((path) => readFileSync(path, 'utf8'))
      .join(),
  )

const readJson = <T>(path: string, otherwise: T): T =>
  existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as T) : otherwise

/** One fault, and what is known of it. */
class Trial {
  readonly target: Target
  readonly mutant: Mutant
  readonly #key: string
  readonly #tests: string
  readonly #notes: Notes

  constructor(target: Target, mutant: Mutant, tests: string, notes: Notes) {
    this.target = target
    this.mutant = mutant
    this.#key = digestOf(`${readFileSync(mutant.file)}${mutant.source}`)
    this.#tests = tests
    this.#notes = notes
  }

  /** The same order for the same seed, and no other. */
  place(seed: string): string {
    return digestOf(`${seed} ${this.#key}`)
  }

  get isOpen(): boolean {
    return !(this.#key in this.#notes.noticed) && !this.survives
  }

  get survives(): boolean {
    return this.#notes.unnoticed[this.#key] === this.#tests && !(this.#key in this.#notes.noticed)
  }

  get isNoticed(): boolean {
    const by = this.#notes.noticed[this.#key]
    return by !== undefined && by !== NOT_COMPILED
  }

  note(noticed: Noticed): void {
    if (noticed === null) this.#notes.unnoticed[this.#key] = this.#tests
    else this.#notes.noticed[this.#key] = noticed ?? NOT_COMPILED
  }
}

function trialsOf(target: Target, notes: Notes): Trial[] {
  const tests = testsOf(target)
  return mutantsOf(target.file)
    .filter(({ place }) => target.places?.includes(place) ?? true)
    .map((mutant) => new Trial(target, mutant, tests, notes))
}

// ---------------------------------------------------------------------- the run

interface Options {
  readonly workers: number
  readonly until: number
  readonly keep: () => void
}

async function work(trials: readonly Trial[], { workers, until, keep }: Options): Promise<void> {
  const queue = trials.filter(({ isOpen }) => isOpen)
  const lanes = Array.from({ length: Math.min(workers, queue.length) }, async () => {
    const worker = new Worker()
    try {
      while (Date.now() < until) {
        const trial = queue.shift()
        if (trial === undefined) break
        trial.note(await worker.judge(trial.target, trial.mutant))
        keep()
      }
    } finally {
      worker.stop()
    }
  })
  await Promise.all(lanes)
}

/** Prints the score; returns how many faults are left without an excuse, or were not tried. */
function report(trials: readonly Trial[], excuses: Readonly<Record<string, string>>): number {
  const isExcused = ({ mutant }: Trial): boolean => nameOf(mutant) in excuses
  console.log('\n| file | faults | noticed | excused | unnoticed | not tried |\n|---|---|---|---|---|---|')
  for (const file of new Set(trials.map(({ mutant }) => mutant.file))) {
    const mine = trials.filter(({ mutant }) => mutant.file === file)
    const noticed = mine.filter(({ isNoticed }) => isNoticed).length
    const survivors = mine.filter(({ survives }) => survives)
    const open = mine.filter(({ isOpen }) => isOpen).length
    const excused = survivors.filter(isExcused).length
    const tried = noticed + survivors.length
    console.log(`| ${file} | ${tried} | ${noticed} | ${excused} | ${survivors.length - excused} | ${open} |`)
  }
  const left = trials.filter((trial) => trial.survives && !isExcused(trial))
  for (const { mutant } of left) console.log(`\n${mutant.file}:${mutant.line}\n${nameOf(mutant)}`)
  return left.length + trials.filter(({ isOpen }) => isOpen).length
}

/** Excuses for faults that nobody makes any more, in whatever place of the files that were chosen. */
function idleExcuses(trials: readonly Trial[], excuses: Readonly<Record<string, string>>): string[] {
  const files = new Set(trials.map(({ mutant }) => mutant.file))
  const made = new Set([...files].flatMap((file) => mutantsOf(file).map(nameOf)))
  return Object.keys(excuses).filter((name) => files.has(name.split(' ')[0] as string) && !made.has(name))
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    workers: { type: 'string', default: '2' },
    fresh: { type: 'boolean', default: false },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
})
const started = Date.now()
const nothing: Notes = { noticed: {}, unnoticed: {} }
const isSample = values.sample !== undefined
const notes = values.fresh || isSample ? nothing : readJson(NOTES, nothing)
const excuses = readJson<Record<string, string>>(EXCUSES, {})
const isNamed = ({ file }: Target): boolean => positionals.some((name) => file.includes(name))
const all = (positionals.length === 0 ? TARGETS : [...TARGETS, ...OTHERS].filter(isNamed)).flatMap((target) =>
  trialsOf(target, notes),
)
const chosen = isSample
  ? [...all]
      .sort((a, b) => (a.place(values.seed) < b.place(values.seed) ? -1 : 1))
      .slice(0, Number(values.sample))
  : all
const until = values.minutes ? started + Number(values.minutes) * 60_000 : Number.POSITIVE_INFINITY
mkdirSync('cache', { recursive: true })
const keep = (): void => {
  if (!isSample) writeFileSync(NOTES, JSON.stringify(notes, null, 1))
}
await work(chosen, { workers: Number(values.workers), until, keep })
const left = report(chosen, excuses)
const idle = idleExcuses(all, excuses)
for (const name of idle) console.log(`\nexcused, and not made any more: ${name}`)
console.log(`\n${((Date.now() - started) / 60_000).toFixed(1)} minutes`)
process.exitCode = left + idle.length > 0 ? 1 : 0
