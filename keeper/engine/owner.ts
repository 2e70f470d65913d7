/**
 * Decides commands on the state in memory, stores the rows in groups and answers after the commit. The tables of readers follow
 * (`flusher.ts`). While a group is in flight the next one collects; nothing waits for a timer: a rest after an append, to make groups larger, made answers slower and saved nothing.
 */
import type { Millis } from '../../domain/units.ts'
import { type Appender, createAppender } from './appender.ts'
import { type CommandClass, createFairQueue } from './fair-queue.ts'
import { createFlusher, type FlusherStart } from './flusher.ts'
import type { Machine } from './machine.ts'
import { createTimeGuard } from './now.ts'
import type { Ownership } from './ownership.ts'
import type { EngineClock, EngineLogger, Journal, Tables, Timer } from './ports.ts'

/** Why a command has no answer of the machine. */
export type NoAnswer =
  /** Not decided: it would not have been before its deadline. */
  | 'overloaded'
  /** Not executed: the owner ended before it stored the command's rows, or the command is faulty. */
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
  /** A command of the class, or a step that continues one, has waited this long for its decision. */
  waited(of: CommandClass, ms: number): void
  decided(command: Command, ms: number, rows: readonly Row[], traceId: string | undefined): void
  stored(commands: number, rows: readonly Row[], ms: number): void
  /** The tables of readers have been written, by so many rows. */
  written(rows: number, ms: number): void
}

export interface OwnerPorts<Command, Row, Answer> {
  readonly machine: Machine<Command, Row, Answer>
  readonly journal: Journal<Row>
  readonly tables: Tables<Row>
  /** Whether the sender reads what the command has changed from the tables of readers: its answer waits until they contain it. */
  readonly isReadBack: (command: Command) => boolean
  readonly clock: EngineClock
  readonly timer: Timer
  readonly logger: EngineLogger
  readonly observer: OwnerObserver<Command, Row>
}

export interface OwnerOptions {
  /** Longest time between two visits of the event loop. */
  readonly turnMs: number
  /** Most commands of a group. */
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
  /** Resolves with the answer, or with the reason why there is none. Never rejects. */
  submit(request: Request<Command>): Promise<Reply<Answer>>
  /** Ends at once: groups in flight have an unknown outcome. */
  end(reason: EndReason): void
  /** Decides nothing more; resolves when everything decided is stored and answered. */
  drain(): Promise<void>
  readonly waiting: (of: CommandClass) => number
  /** The last group that is known to be stored. */
  readonly stored: () => { readonly head: number; readonly digest: string }
}

interface Item<Command, Answer> extends Request<Command> {
  /** When it began to wait, by the monotonic clock. */
  readonly queuedAt: number
  readonly reply: (reply: Reply<Answer>) => void
  /** The sender reads the effects from the tables of readers; of long work what its first command says. */
  readonly isReadBack: boolean
  /** Steps of the command are stored: without an answer its outcome is unknown. */
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
  /** Groups without rows, decided while the lease was no longer safe: their answers wait for a renewal. */
  const unproven = new Set<OpenGroup<Command, Row, Answer>>()
  /** Commands of a rejected group: each is decided and stored alone, before all others. */
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

  /** Each command has transactions of its own, also of the tables, and is answered behind both. */
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

  /** Terms of a command that the owner gives itself, which is never refused. */
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
      const { rows, answer, next } = machine.decide(item.command, { now })
      for (const row of rows) machine.apply(row)
      open.rows.push(...rows)
      open.decided.push({ item, answer, next })
      observer.decided(item.command, clock.monotonic() - started, rows, item.traceId)
    } catch (error) {
      if (undo(before)) refuseFaulty(item, error)
    }
    queue.charge(item.class, clock.monotonic() - started)
  }

  /** False if the state cannot be trusted any more; the owner has ended. */
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

  /** Stores the open group, unless one is in flight: its answers wait for that one, too. */
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
      // Begun work is finished, however late.
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
