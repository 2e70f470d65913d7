/** Outcomes of commands of an owner that ends in the middle of long work. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Millis } from '../../../domain/units.ts'
import type { Machine } from '../../../keeper/engine/machine.ts'
import { createOwner, type Owner, type Reply } from '../../../keeper/engine/owner.ts'
import type { Journal } from '../../../keeper/engine/ports.ts'
import { systemTimer } from '../../../keeper/engine/timer.ts'
import { NO_TABLES } from './support/no-tables.ts'

type Command = 'first' | 'second' | 'faulty' | 'short'

/** `first` is continued by `second`, or by `faulty`, which throws. */
class Steps implements Machine<Command, string, string> {
  readonly rows: string[] = []
  readonly #next: Command

  constructor(next: Command) {
    this.#next = next
  }

  execute(command: Command) {
    if (command === 'faulty') throw new Error('a step of the command is faulty')
    this.apply(command)
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
    readWritten: async () => [],
  }
  const owner = createOwner<Command, string, string>(
    {
      machine: new Steps(next),
      journal,
      clock,
      timer: systemTimer,
      logger: SILENT,
      tables: NO_TABLES,
      isReadBack: () => false,
      observer: { waited() {}, decided() {}, stored() {}, written() {} },
    },
    { token: 1, isSafe: () => true, whenSafe: (work) => work(), stop() {} },
    { turnMs: 5, maxGroup: 2 },
    { head: 0, written: 0, tail: [] },
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
    // The owner sends `first` in its next turn.
    for (let turn = 0; turn < 3; turn++) await nextTurn()
    // It is decided while `first` is stored, and stored before `second`.
    const short = submit(owner, 'short')
    expect(await Promise.all([first, short])).to.deep.equal([{ none: 'unknown' }, { none: 'unknown' }])
  })

  it('when a later step is faulty, it is unknown; when the first one is, it is faulty', async () => {
    expect(await submit(ownerOf('faulty', 0), 'first')).to.deep.equal({ none: 'unknown' })
    expect(await submit(ownerOf('faulty', 0), 'faulty')).to.deep.equal({ none: 'faulty' })
  })
})
