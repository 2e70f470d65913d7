/**
 * `npm run mutation`: gives the contracts small faults, one at a time, and looks for faults that no test notices.
 * Arguments choose files: `npm run mutation -- FeeLib`. `--minutes 9` stops early; the next run goes on. What was noticed
 * once is not tried again while the file stays as it is; `--fresh` tries everything.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
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

/** What noticed each fault; for the unnoticed, the tests that did not. */
interface Notes {
  readonly noticed: Record<string, string>
  readonly unnoticed: Record<string, string>
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 24)

const keyOf = (mutant: Mutant): string => digestOf(`${readFileSync(mutant.file)}${mutant.source}`)

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

const NOT_COMPILED = 'does not compile'

async function work(target: Target, { workers, until, notes }: Options): Promise<Score> {
  const tests = testsOf(target)
  const mutants = mutantsOf(target.file)
  const isOpen = (mutant: Mutant): boolean => {
    const key = keyOf(mutant)
    return !(key in notes.noticed) && notes.unnoticed[key] !== tests
  }
  const queue = mutants.filter(isOpen)
  const lanes = Array.from({ length: Math.min(workers, queue.length) }, async () => {
    const worker = new Worker()
    if (Date.now() < until) for (const stage of target.stages) await requireSound(worker, stage)
    while (Date.now() < until) {
      const mutant = queue.shift()
      if (mutant === undefined) break
      const noticed = await judge(worker, target, mutant)
      if (noticed === null) notes.unnoticed[keyOf(mutant)] = tests
      else notes.noticed[keyOf(mutant)] = noticed ?? NOT_COMPILED
      writeFileSync(NOTES, JSON.stringify(notes, null, 1))
    }
    worker.stop()
  })
  await Promise.all(lanes)
  const tried = mutants.filter((mutant) => notes.noticed[keyOf(mutant)] !== NOT_COMPILED && !isOpen(mutant))
  const survivors = tried.filter((mutant) => !(keyOf(mutant) in notes.noticed))
  const noticed = tried.length - survivors.length
  const { file } = target
  return { file, mutants: tried.length, noticed, survivors, open: mutants.filter(isOpen).length }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    workers: { type: 'string', default: '2' },
    fresh: { type: 'boolean', default: false },
  },
})
mkdirSync('cache', { recursive: true })
const nothing: Notes = { noticed: {}, unnoticed: {} }
const notes = values.fresh ? nothing : readJson(NOTES, nothing)
const until = values.minutes ? Date.now() + Number(values.minutes) * 60_000 : Number.POSITIVE_INFINITY
const chosen = TARGETS.filter(
  ({ file }) => positionals.length === 0 || positionals.some((name) => file.includes(name)),
)
const scores: Score[] = []
for (const target of chosen)
  scores.push(await work(target, { workers: Number(values.workers), until, notes }))
process.exitCode = print(scores, readJson(EXCUSES, {})) > 0 || scores.some(({ open }) => open > 0) ? 1 : 0
