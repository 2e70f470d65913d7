/**
 * Decides commands in memory, stores their rows in groups and answers after the commit. Groups wait for no timer: a
 * pause to make them larger slowed answers and saved nothing.
 */

import type { Millis } from '../../domain/units.ts'
import type { Logger } from '../../service/logger.ts'
import { type Appender, createAppender } from './appender.ts'
import { type CommandClass, createFairQueue } from './fair-queue.ts'
import { createFlusher, type FlusherStart } from './flusher.ts'
import type { Machine } from './machine.ts'
import { createTimeGuard } from './now.ts'
import type { Ownership } from './ownership.ts'
import type { EngineClock, Journal, Tables, Timer } from './ports.ts'

/** Reason why a command has no answer. */
export type NoAnswer =
  /** Not decided, because its deadline would have passed first. */
  | 'overloaded'
  /** Not executed, because the owner ended before the command's rows were stored. */
  | 'not_executed'
  | 'faulty'
  /** The owner ended while the group with the command's rows was in flight. */
  | 'unknown'

export type Reply<Answer> = { readonly answer: Answer } | { readonly none: NoAnswer }

export interface Request<Command> {
  readonly command: Command
  readonly class: CommandClass
  readonly account: number | null
  readonly deadline: number
  /** Names the request behind the command in debug lines. */
  readonly traceId?: string | undefined
}

/** Measurements of the engine, for metrics and debug lines. */
export interface OwnerObserver<Command, Row> {
  /** Wait of a command, or of a step that continues it, for its decision. */
  waited(of: CommandClass, ms: number): void
  decided(command: Command, ms: number, rows: readonly Row[], traceId: string | undefined): void
  stored(commands: number, rows: readonly Row[], ms: number): void
  /** A write of readers' tables, with its number of rows. */
  written(rows: number, ms: number): void
}

export interface OwnerPorts<Command, Row, Answer> {
  readonly machine: Machine<Command, Row, Answer>
  readonly journal: Journal<Row>
  readonly tables: Tables<Row>
  /** True if the sender reads the effects from readers' tables. The answer then waits for the tables. */
  readonly isReadBack: (command: Command) => boolean
  readonly clock: EngineClock
  readonly timer: Timer
  readonly logger: Logger
  readonly observer: OwnerObserver<Command, Row>
}

export interface OwnerOptions {
  /** Maximum time between two turns of the event loop. */
  readonly turnMs: number
  /** Maximum commands per group. */
  readonly maxGroup: number
}

export type EndReason =
  | 'ownership lost'
  | 'history lost'
  | 'clock jumped'
  | 'undo failed'
  | 'restriction failed'
  | 'stopped'

export interface Owner<Command, Answer> {
  /** Resolves with the answer, or the reason for having none. Never rejects. */
  submit(request: Request<Command>): Promise<Reply<Answer>>
  /** Ends immediately; commands of groups in flight get `unknown`. */
  end(reason: EndReason): void
  /** Stops deciding; resolves once all decided commands are stored and answered. */
  drain(): Promise<void>
  readonly waiting: (of: CommandClass) => number
  /** The last group that is known to be stored. */
  readonly stored: () => { readonly head: number; readonly digest: string }
}

interface Item<Command, Answer> extends Request<Command> {
  /** Start of the wait, by the monotonic clock. */
  readonly queuedAt: number
  readonly reply: (reply: Reply<Answer>) => void
  /** See `OwnerPorts.isReadBack`. Later steps of long work inherit it from the first command. */
  readonly isReadBack: boolean
  /** Earlier steps of the command are stored, so without an answer its outcome is unknown. */
  readonly isBegun?: true
}

const notExecuted = ({ isBegun }: Pick<Item<unknown, unknown>, 'isBegun'>): Reply<never> => ({
  none: isBegun ? 'unknown' : 'not_executed',
})

interface Decided<Command, Answer> {
  readonly item: Item<Command, Answer>
  readonly answer: Answer
  readonly next: Command | null
}

interface OpenGroup<Command, Row, Answer> {
  /** Position of the machine before its first row. */
  readonly from: number
  readonly rows: Row[]
  readonly decided: Decided<Command, Answer>[]
}

export function createOwner<Command, Row, Answer>(
  ports: OwnerPorts<Command, Row, Answer>,
  ownership: Ownership,
  options: OwnerOptions,
  start: Omit<FlusherStart<Row>, 'token'>,
  onEnd: (reason: EndReason) => void,
): Owner<Command, Answer> {
  const { machine, journal, tables, clock, timer, logger, observer } = ports
  type Entry = Item<Command, Answer>
  const queue = createFairQueue<Entry>()
  const appender: Appender<Row> = createAppender({ journal, timer, logger }, ownership.token, {
    head: start.head,
    digest: machine.digest(),
  })
  const timeGuard = createTimeGuard(clock)
  const newGroup = (): OpenGroup<Command, Row, Answer> => ({
    from: machine.position(),
    rows: [],
    decided: [],
  })

  let open = newGroup()
  let inFlight: OpenGroup<Command, Row, Answer> | null = null
  /** Groups without rows that were decided while the lease was unsafe. Their answers wait for a renewal. */
  const unproven = new Set<OpenGroup<Command, Row, Answer>>()
  /** Commands of a rejected group. They are decided and stored one by one, before all other commands. */
  let singles: Entry[] = []
  let isScheduled = false
  let isDraining = false
  let ended: EndReason | null = null
  let whenIdle: (() => void)[] = []
  const flusher = createFlusher<Row>(
    {
      tables,
      clock,
      timer,
      logger,
      isSettled: () => inFlight === null && open.rows.length === 0,
      onWritten(rows, ms) {
        observer.written(rows, ms)
        schedule()
      },
      onLost: () => end('history lost'),
    },
    { ...start, token: ownership.token },
  )

  /** With groups of one command, each command has its own journal and table transactions and is answered after both. */
  const isSingle = options.maxGroup === 1
  if (isSingle) flusher.hurry()

  function schedule(): void {
    if (isScheduled || ended !== null) return
    isScheduled = true
    timer.soon(turn)
  }

  function turn(): void {
    isScheduled = false
    const until = clock.monotonic() + options.turnMs
    while (ended === null && canDecide()) {
      const now = timeGuard.now(machine.time())
      if (now === null) {
        end('clock jumped')
        return
      }
      const item = nextItem()
      if (item === null) break
      decide(item, now)
      if (clock.monotonic() >= until) {
        schedule()
        break
      }
    }
    const wasFull = isFull()
    flush()
    if (wasFull && !isFull()) schedule()
    noticeIdle()
  }

  function canDecide(): boolean {
    if (isSingle ? inFlight !== null || !flusher.isIdle() : flusher.isBehind()) return false
    if (singles.length > 0) return inFlight === null && open.decided.length === 0
    return !isFull()
  }

  /** Queue terms of the owner's own commands, which are never refused. */
  const ownTerms = () => ({
    class: 'chain' as const,
    account: null,
    deadline: Number.POSITIVE_INFINITY,
    queuedAt: clock.monotonic(),
    isReadBack: false,
  })

  const isFull = (): boolean => open.decided.length >= options.maxGroup

  const nextItem = (): Entry | null => singles.shift() ?? queue.take()

  function decide(item: Entry, now: Millis): void {
    const started = clock.monotonic()
    if (started > item.deadline) {
      item.reply({ none: 'overloaded' })
      return
    }
    observer.waited(item.class, started - item.queuedAt)
    const before = machine.position()
    try {
      const { rows, answer, next } = machine.execute(item.command, { now })
      open.rows.push(...rows)
      open.decided.push({ item, answer, next })
      observer.decided(item.command, clock.monotonic() - started, rows, item.traceId)
    } catch (error) {
      if (undo(before)) refuseFaulty(item, error)
    }
    queue.charge(item.class, clock.monotonic() - started)
  }

  /**
   * Rolls the state back to `position`. On failure it ends the owner and returns false, because the state is no longer
   * valid.
   */
  function undo(position: number): boolean {
    try {
      machine.undoTo(position)
      return true
    } catch (err) {
      logger.error({ err }, 'undo failed')
      end('undo failed')
      return false
    }
  }

  function refuseFaulty(item: Entry, err: unknown): void {
    logger.error({ err, command: item.command }, 'command is faulty; its market accepts only cancels')
    item.reply({ none: item.isBegun ? 'unknown' : 'faulty' })
    const command = machine.restriction(item.command)
    if (command === null) return
    const reply = (result: Reply<Answer>): void => {
      if ('none' in result && result.none === 'faulty') end('restriction failed')
    }
    queue.pushFront({ ...ownTerms(), command, reply })
  }

  /** Stores the open group. While a group is in flight it does nothing; the open group follows that group. */
  function flush(): void {
    if (ended !== null || inFlight !== null || open.decided.length === 0) return
    const group = open
    open = newGroup()
    if (group.rows.length === 0) {
      unproven.add(group)
      ownership.whenSafe(() => {
        unproven.delete(group)
        answer(group)
      })
      return
    }
    inFlight = group
    flusher.closing(group.rows)
    void store(group)
  }

  async function store(group: OpenGroup<Command, Row, Answer>): Promise<void> {
    const started = clock.monotonic()
    const outcome = await appender.store({ rows: group.rows, digest: machine.digest() })
    if (ended !== null) return
    if (outcome === 'lost') {
      end('history lost')
      return
    }
    inFlight = null
    if (outcome === 'rejected') {
      flusher.takenBack(appender.head)
      decideSingly(group)
    } else {
      flusher.stored(appender.head)
      observer.stored(group.decided.length, group.rows, clock.monotonic() - started)
      machine.forget(group.from + group.rows.length)
      answer(group)
    }
    turn()
  }

  function decideSingly(group: OpenGroup<Command, Row, Answer>): void {
    const collected = open
    if (!undo(group.from)) return
    open = newGroup()
    const [first] = group.decided
    if (group.decided.length === 1 && first !== undefined) {
      refuseFaulty(first.item, new Error('the database rejects the rows of this command'))
      singles = [...collected.decided.map(({ item }) => item), ...singles]
      return
    }
    singles = [...group.decided, ...collected.decided].map(({ item }) => item).concat(singles)
  }

  function answer({ decided }: OpenGroup<Command, Row, Answer>): void {
    for (const { item, answer, next } of decided) {
      if (next === null) reply(item, answer)
      // Long work that has begun is finished, whatever its deadline was.
      else
        queue.pushFront({
          ...item,
          command: next,
          deadline: Number.POSITIVE_INFINITY,
          queuedAt: clock.monotonic(),
          isBegun: true,
        })
    }
    schedule()
  }

  function reply(item: Entry, answer: Answer): void {
    if (item.isReadBack)
      void flusher
        .whenWritten(appender.head)
        .then((isWritten) => item.reply(isWritten ? { answer } : { none: 'unknown' }))
    else item.reply({ answer })
  }

  function end(reason: EndReason): void {
    if (ended !== null) return
    ended = reason
    appender.stop()
    flusher.stop()
    ownership.stop()
    for (const { item } of inFlight?.decided ?? []) item.reply({ none: 'unknown' })
    for (const { decided } of [...unproven, open]) {
      for (const { item } of decided) item.reply(notExecuted(item))
    }
    for (const item of singles) item.reply(notExecuted(item))
    for (let item = queue.take(); item !== null; item = queue.take()) item.reply(notExecuted(item))
    for (const resolve of whenIdle) resolve()
    whenIdle = []
    onEnd(reason)
  }

  function noticeIdle(): void {
    const isBusy = inFlight !== null || open.decided.length > 0 || singles.length > 0 || queue.size > 0
    if (isBusy || unproven.size > 0 || !flusher.isIdle()) return
    for (const resolve of whenIdle) resolve()
    whenIdle = []
  }

  for (const command of machine.unfinished()) {
    queue.push({ ...ownTerms(), command, reply: () => {} }, clock.monotonic())
  }
  schedule()

  return {
    submit: (request) =>
      new Promise((resolve) => {
        if (ended !== null || isDraining) resolve({ none: 'not_executed' })
        else {
          const queuedAt = clock.monotonic()
          const isReadBack = isSingle || ports.isReadBack(request.command)
          if (queue.push({ ...request, reply: resolve, queuedAt, isReadBack }, queuedAt)) schedule()
          else resolve({ none: 'overloaded' })
        }
      }),
    end,
    drain() {
      isDraining = true
      flusher.hurry()
      return new Promise((resolve) => {
        whenIdle.push(resolve)
        schedule()
      })
    },
    waiting: queue.waiting,
    stored: () => ({ head: appender.head, digest: appender.digest }),
  }
}
