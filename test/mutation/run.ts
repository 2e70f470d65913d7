/**
 * `npm run mutation`: gives the contracts small faults, one at a time, and looks for faults that no test notices.
 * Arguments choose files: `npm run mutation -- FeeLib`. `--minutes 9` stops early; the next run goes on. What was noticed
 * once is not tried again while the file stays as it is; `--fresh` tries everything.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Mutant, mutantsOf, nameOf } from './mutants.ts'
import { type Stage, TARGETS, type Target } from './targets.ts'
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

  stop(): void {
    this.#child?.removeAllListeners()
    this.#child?.kill()
    this.#child = undefined
  }
}

// ---------------------------------------------------------------------- one fault

/** Without a fault every test passes, or nothing below means anything. */
async function requireSound(worker: Worker, stage: Stage): Promise<void> {
  const noticed = await worker.run({ id: 0, stage, sources: {} })
  if (noticed !== null) throw new Error(`${stage.contract} fails without a fault: ${noticed ?? 'no code'}`)
}

async function judge(worker: Worker, { stages }: Target, mutant: Mutant): Promise<Noticed> {
  let noticed: Noticed = null
  for (const [id, stage] of stages.entries()) {
    noticed = await worker.run({ id, stage, sources: { [mutant.file]: mutant.source } })
    if (noticed !== null) break
  }
  return noticed
}

// ---------------------------------------------------------------------- notes and report

type Notes = Record<string, string | null>

const keyOf = (mutant: Mutant): string =>
  createHash('sha256')
    .update(`${readFileSync(mutant.file)}${mutant.source}`)
    .digest('hex')
    .slice(0, 24)

const readJson = <T>(path: string, otherwise: T): T =>
  existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as T) : otherwise

interface Score {
  readonly file: string
  readonly mutants: number
  readonly noticed: number
  readonly survivors: readonly Mutant[]
  readonly open: number
}

function print(scores: readonly Score[], excuses: Readonly<Record<string, string>>): number {
  let unexcused = 0
  console.log('\n| file | faults | noticed | excused | unnoticed | not tried |\n|---|---|---|---|---|---|')
  for (const { file, mutants, noticed, survivors, open } of scores) {
    const left = survivors.filter((mutant) => !(nameOf(mutant) in excuses))
    unexcused += left.length
    const excused = survivors.length - left.length
    console.log(`| ${file} | ${mutants} | ${noticed} | ${excused} | ${left.length} | ${open} |`)
  }
  for (const mutant of scores.flatMap(({ survivors }) => survivors)) {
    if (!(nameOf(mutant) in excuses)) console.log(`\n${mutant.file}:${mutant.line}\n${nameOf(mutant)}`)
  }
  return unexcused
}

// ---------------------------------------------------------------------- all faults

interface Options {
  readonly workers: number
  readonly until: number
  readonly notes: Notes
}

async function work(target: Target, { workers, until, notes }: Options): Promise<Score> {
  const mutants = mutantsOf(target.file)
  const queue = mutants.filter((mutant) => typeof notes[keyOf(mutant)] !== 'string')
  const survivors: Mutant[] = []
  const lanes = Array.from({ length: Math.min(workers, queue.length) }, async () => {
    const worker = new Worker()
    if (Date.now() < until) for (const stage of target.stages) await requireSound(worker, stage)
    while (Date.now() < until) {
      const mutant = queue.shift()
      if (mutant === undefined) break
      const noticed = await judge(worker, target, mutant)
      if (noticed === null) survivors.push(mutant)
      notes[keyOf(mutant)] = noticed === undefined ? 'does not compile' : noticed
      writeFileSync(NOTES, JSON.stringify(notes, null, 1))
    }
    worker.stop()
  })
  await Promise.all(lanes)
  const tried = mutants.filter((mutant) => notes[keyOf(mutant)] !== 'does not compile')
  const noticed = tried.filter((mutant) => typeof notes[keyOf(mutant)] === 'string').length
  const { file } = target
  return { file, mutants: tried.length, noticed, survivors: survivors.sort(byLine), open: queue.length }
}

const byLine = (a: Mutant, b: Mutant): number => a.line - b.line

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    workers: { type: 'string', default: '2' },
    fresh: { type: 'boolean', default: false },
  },
})
mkdirSync('cache', { recursive: true })
const notes: Notes = values.fresh ? {} : readJson(NOTES, {})
const until = values.minutes ? Date.now() + Number(values.minutes) * 60_000 : Number.POSITIVE_INFINITY
const chosen = TARGETS.filter(
  ({ file }) => positionals.length === 0 || positionals.some((name) => file.includes(name)),
)
const scores: Score[] = []
for (const target of chosen)
  scores.push(await work(target, { workers: Number(values.workers), until, notes }))
process.exitCode = print(scores, readJson(EXCUSES, {})) > 0 || scores.some(({ open }) => open > 0) ? 1 : 0
