/** Outcomes of commands of an owner that ends in the middle of long work, and when it stores its groups. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import type { CommandClass } from '../../../keeper/engine/fair-queue.ts'
import type { Machine } from '../../../keeper/engine/machine.ts'
import { createOwner, type Owner, type OwnerOptions, type Reply } from '../../../keeper/engine/owner.ts'
import type { Journal } from '../../../keeper/engine/ports.ts'
import { systemTimer } from '../../../keeper/engine/timer.ts'

type Command = 'first' | 'second' | 'faulty' | 'short'

/** `first` is continued by `second`, or by `faulty`, which throws. */
class Steps implements Machine<Command, string, string> {
  readonly rows: string[] = []
  readonly #next: Command

  constructor(next: Command) {
    this.#next = next
  }

  decide(command: Command) {
    if (command === 'faulty') throw new Error('a step of the command is faulty')
    return { rows: [command], answer: command, next: command === 'first' ? this.#next : null }
  }

  apply(row: string): void {
    this.rows.push(row)
  }

  position = (): number => this.rows.length
  undoTo(position: number): void {
    this.rows.length = position
  }
  forget(): void {}
  digest = (): string => `${this.rows.length}`
  time = (): Millis => 0 as Millis
  restriction = (): null => null
  unfinished = (): readonly Command[] => []
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const clock = { now: () => performance.now() as Millis, monotonic: () => performance.now() }

/** Longer than a turn: the next command is decided meanwhile. */
const APPEND_MS = 20

/** An owner whose journal ends it while it stores the row with this number. */
function ownerOf(next: Command, endAt: number): Owner<Command, string> {
  let stored = 0
  const journal: Journal<string> = {
    async append() {
      stored += 1
      if (stored === endAt) owner.end('ownership lost')
      await sleep(APPEND_MS)
      return true
    },
    read: async () => [],
  }
  const owner = createOwner<Command, string, string>(
    {
      machine: new Steps(next),
      journal,
      clock,
      timer: systemTimer,
      logger: SILENT,
      observer: { waited() {}, decided() {}, stored() {} },
    },
    { token: 1, isSafe: () => true, whenSafe: (work) => work(), stop() {} },
    { turnMs: 5, maxGroup: 1, restRatio: 0, restMaxMs: 0 },
    { head: 0 },
    () => {},
  )
  return owner
}

function submit(owner: Owner<Command, string>, command: Command): Promise<Reply<string>> {
  const deadline = Number.POSITIVE_INFINITY
  return owner.submit({ command, class: 'cancel', account: 1, deadline })
}

describe('the outcome of a command in several steps', () => {
  it('when all steps are stored, it has the last answer', async () => {
    expect(await submit(ownerOf('second', 0), 'first')).to.deep.equal({ answer: 'second' })
  })

  it('when the owner ends before the first step is decided, it is not executed', async () => {
    const owner = ownerOf('second', 0)
    const reply = submit(owner, 'first')
    owner.end('ownership lost')
    expect(await reply).to.deep.equal({ none: 'not_executed' })
  })

  it('when the first step is stored and the owner ends before the next one, it is unknown', async () => {
    const owner = ownerOf('second', 2)
    const first = submit(owner, 'first')
    // It is decided while `first` is stored, and stored before `second`.
    const short = submit(owner, 'short')
    expect(await Promise.all([first, short])).to.deep.equal([{ none: 'unknown' }, { none: 'unknown' }])
  })

  it('when a later step is faulty, it is unknown; when the first one is, it is faulty', async () => {
    expect(await submit(ownerOf('faulty', 0), 'first')).to.deep.equal({ none: 'unknown' })
    expect(await submit(ownerOf('faulty', 0), 'faulty')).to.deep.equal({ none: 'faulty' })
  })
})

describe('the rest after an append', () => {
  /** An owner by a clock that only its timers move. Appends take `APPEND_MS`; each is noted with its time and rows. */
  function resting(options: Partial<OwnerOptions>) {
    let now = 0
    let due: { at: number; readonly work: () => void }[] = []
    const later = (ms: number, work: () => void): (() => void) => {
      const one = { at: now + ms, work }
      due.push(one)
      return () => {
        due = due.filter((other) => other !== one)
      }
    }
    const appends: { readonly at: number; readonly rows: readonly string[] }[] = []
    const journal: Journal<string> = {
      append({ rows }) {
        appends.push({ at: now, rows })
        return new Promise((resolve) => later(APPEND_MS, () => resolve(true)))
      },
      read: async () => [],
    }
    const owner = createOwner<Command, string, string>(
      {
        machine: new Steps('short'),
        journal,
        clock: { now: () => now as Millis, monotonic: () => now },
        timer: { after: later, soon: (work) => void later(0, work) },
        logger: SILENT,
        observer: { waited() {}, decided() {}, stored() {} },
      },
      { token: 1, isSafe: () => true, whenSafe: (work) => work(), stop() {} },
      { turnMs: 5, maxGroup: 100, restRatio: 2, restMaxMs: 1_000, ...options },
      { head: 0 },
      () => {},
    )
    return {
      appends,
      owner,
      submit: (of: CommandClass = 'placement') =>
        void owner.submit({
          command: 'short',
          class: of,
          account: 1,
          deadline: Number.POSITIVE_INFINITY,
        }),
      async runTo(end: number): Promise<void> {
        for (;;) {
          await Promise.resolve()
          await new Promise(setImmediate)
          const [next] = due.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
          if (next === undefined) break
          due = due.filter((one) => one !== next)
          now = Math.max(now, next.at)
          next.work()
        }
        now = end
      },
    }
  }

  it('when commands follow an append, they share the next one, which begins after twice its duration', async () => {
    const { appends, submit, runTo } = resting({})
    submit()
    await runTo(25)
    submit()
    await runTo(40)
    submit()
    await runTo(100)
    expect(appends).to.deep.equal([
      { at: 0, rows: ['short'] },
      { at: 20 + 2 * APPEND_MS, rows: ['short', 'short'] },
    ])
  })

  it('when a command comes after the rest, it is stored at once; so are auctions and blocks during it, with all that waits', async () => {
    for (const urgent of ['auction', 'chain'] as const) {
      const { appends, submit, runTo } = resting({})
      submit()
      await runTo(200)
      submit()
      await runTo(225)
      submit()
      await runTo(230)
      submit(urgent)
      await runTo(300)
      expect(appends).to.deep.equal([
        { at: 0, rows: ['short'] },
        { at: 200, rows: ['short'] },
        { at: 230, rows: ['short', 'short'] },
      ])
    }
  })

  it('when the append was slow, the rest has its bound; a full group and the end of the owner do not wait', async () => {
    const { appends, owner, submit, runTo } = resting({ restMaxMs: 30, maxGroup: 2 })
    submit()
    await runTo(25)
    submit()
    await runTo(60)
    submit()
    submit()
    await runTo(75)
    submit()
    void owner.drain()
    await runTo(200)
    expect(appends.map(({ at, rows }) => [at, rows.length])).to.deep.equal([
      [0, 1],
      [50, 1],
      [70, 2],
      [90, 1],
    ])
  })
})
