/**
 * Simulated database with a synchronous replica. Writes are visible at once, durable later, and lost in a failover
 * before that. Requests and answers are delayed, lost and reordered.
 */
import type { Group, Journal, Lease, LeaseReading, TableStep, Tables } from '../../keeper/engine/ports.ts'
import type { Random } from '../random.ts'
import type { EngineErrors } from './engine-code.ts'
import type { Host, SharedClock } from './host.ts'
import type { Scheduler } from './scheduler.ts'

interface Stored<Row> {
  readonly groups: readonly Group<Row>[]
  readonly tables: WrittenTables<Row>
  readonly lease: LeaseReading
}

export interface WrittenTables<Row> {
  /** The last group that they contain. */
  readonly written: number
  readonly rows: readonly Row[]
}

/** Rates of faults per request, and the present ones of the whole database. */
export interface DatabaseFaults {
  lossRate: number
  /** Nothing can be written: the disk is full. */
  isFull: boolean
  /** Hosts that cannot reach the database. */
  readonly partitioned: Set<string>
  /** Mean time from visible to durable. */
  replicationMs: number
}

const REQUEST_MS = 0.4
const TIMEOUT_MS = 150
const LATE_MS = 400

export class SimulatedDatabase<Row> {
  readonly faults: DatabaseFaults = { lossRate: 0, isFull: false, partitioned: new Set(), replicationMs: 0.5 }
  /** The states after each write; those after `#durable` can be lost. */
  #states: Stored<Row>[] = [
    { groups: [], tables: { written: 0, rows: [] }, lease: { token: 0, renewals: 0, isReleased: true } },
  ]
  #durable = 0
  #waiting: { readonly at: number; readonly done: (isDurable: boolean) => void }[] = []
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #clock: SharedClock
  readonly #errors: EngineErrors
  /** Whether a row is one that the database rejects. */
  readonly #isPoison: (row: Row) => boolean

  constructor(
    parts: { scheduler: Scheduler; random: Random; clock: SharedClock; errors: EngineErrors },
    isPoison: (row: Row) => boolean,
  ) {
    this.#scheduler = parts.scheduler
    this.#random = parts.random
    this.#clock = parts.clock
    this.#errors = parts.errors
    this.#isPoison = isPoison
  }

  get #state(): Stored<Row> {
    return this.#states.at(-1) as Stored<Row>
  }

  /** The last group of the journal and of the tables that the present primary shows. */
  get visible(): { readonly groups: number; readonly written: number } {
    return { groups: this.#state.groups.length, written: this.#state.tables.written }
  }

  /** The journal as a failover at this moment would leave it. */
  get durableGroups(): readonly Group<Row>[] {
    return (this.#states[0] as Stored<Row>).groups
  }

  /** The tables of readers as such a failover would leave them. */
  get durableTables(): WrittenTables<Row> {
    return (this.#states[0] as Stored<Row>).tables
  }

  /** The replica becomes the primary: writes that are not durable are lost, its clock differs. */
  failOver(): void {
    this.#states = [this.#states[0] as Stored<Row>]
    const lost = this.#waiting
    this.#waiting = []
    for (const { done } of lost) done(false)
    this.#clock.offset += this.#random.between(-200, 200)
  }

  journalOf(host: Host): Journal<Row> {
    const { AppendUnknown, ContentRejected, JournalUnavailable } = this.#errors
    return {
      append: (group) =>
        this.#request(
          host,
          () => this.#append(group),
          () => new AppendUnknown('no answer'),
        ).then((result) => {
          if (result === 'rejected') throw new ContentRejected('invalid text')
          if (result === 'full') throw new JournalUnavailable('no space left on device')
          return result
        }),
      read: (after, most) =>
        this.#request(
          host,
          () => ({ value: this.#state.groups.slice(after, after + most), isWrite: false }),
          () => new JournalUnavailable('no answer'),
        ),
      readWritten: (after, most) =>
        this.#request(
          host,
          () => {
            const { groups, tables } = this.#state
            return { value: groups.slice(after, Math.min(after + most, tables.written)), isWrite: false }
          },
          () => new JournalUnavailable('no answer'),
        ),
    }
  }

  /** Tables of readers, as the list of the rows that were written to them. They check that the owner collects exactly the rows that its machine has. */
  tablesOf(host: Host, position: () => number, violated: (law: string) => void): Tables<Row> {
    const { AppendUnknown, JournalUnavailable } = this.#errors
    const unavailable = (): Error => new JournalUnavailable('no answer')
    /** Positions of the machine up to which rows are collected, and were before the last collection. */
    let collected = 0
    let before = 0
    return {
      written: () =>
        this.#request(host, () => ({ value: this.#state.tables.written, isWrite: false }), unavailable),
      begin() {
        collected = position()
      },
      collect: (rows) => {
        before = collected
        collected += rows.length
        if (position() !== collected)
          violated(`tables: ${collected} rows collected, the state has ${position()}`)
        const start = before
        return {
          run: async (step) => {
            const result = await this.#request(
              host,
              () => this.#writeTables(step, { start, rows }, violated),
              () => new AppendUnknown('no answer'),
            )
            if (result === 'full') throw new JournalUnavailable('no space left on device')
            return result
          },
        }
      },
      giveBack() {
        collected = before
      },
      isAwaited: () => this.#random.chance(0.2),
    }
  }

  leaseOf(host: Host): Lease {
    const failed = (): Error => new Error('no answer')
    return {
      read: () => this.#request(host, () => ({ value: this.#state.lease, isWrite: false }), failed),
      take: (seen) => this.#request(host, () => this.#take(seen), failed),
      renew: (token) => this.#request(host, () => this.#renew(token), failed),
      release: (token) => this.#request(host, () => this.#release(token), failed),
    }
  }

  #append(group: Group<Row>): Execution<boolean | 'rejected' | 'full'> {
    const { groups, lease, tables } = this.#state
    if (this.faults.isFull) return { value: 'full', isWrite: false }
    if (group.rows.some(this.#isPoison)) return { value: 'rejected', isWrite: false }
    if (group.token !== lease.token || group.number !== groups.length + 1)
      return { value: false, isWrite: false }
    return this.#write(true, { groups: [...groups, structuredClone(group)], tables, lease })
  }

  #writeTables(
    { token, from, to }: TableStep,
    { start, rows }: { readonly start: number; readonly rows: readonly Row[] },
    violated: (law: string) => void,
  ): Execution<boolean | 'full'> {
    const { groups, lease, tables } = this.#state
    if (this.faults.isFull) return { value: 'full', isWrite: false }
    if (token !== lease.token || from !== tables.written) return { value: false, isWrite: false }
    if (start !== tables.rows.length)
      violated(`tables: changes behind row ${start} are written to tables with ${tables.rows.length} rows`)
    if (to > groups.length) violated(`tables: group ${to} is written and not stored`)
    const written = { written: to, rows: [...tables.rows, ...structuredClone(rows)] }
    return this.#write(true, { groups, tables: written, lease })
  }

  #take(seen: LeaseReading): Execution<number | null> {
    const { groups, lease, tables } = this.#state
    if (
      lease.token !== seen.token ||
      lease.renewals !== seen.renewals ||
      lease.isReleased !== seen.isReleased
    ) {
      return { value: null, isWrite: false }
    }
    const token = lease.token + 1
    const next = { token, renewals: lease.renewals + 1, isReleased: false }
    return this.#write(token, { groups, tables, lease: next })
  }

  #renew(token: number): Execution<boolean> {
    const { groups, lease, tables } = this.#state
    if (lease.token !== token) return { value: false, isWrite: false }
    return this.#write(true, { groups, tables, lease: { ...lease, renewals: lease.renewals + 1 } })
  }

  #release(token: number): Execution<void> {
    const { groups, lease, tables } = this.#state
    if (lease.token !== token) return { value: undefined, isWrite: false }
    return this.#write(undefined, { groups, tables, lease: { ...lease, isReleased: true } })
  }

  #write<Value>(value: Value, state: Stored<Row>): Execution<Value> {
    this.#states.push(state)
    return { value, isWrite: true }
  }

  /** Executes the request at some later time, and answers once it is durable; or loses it, or its answer. */
  #request<Value>(host: Host, execute: () => Execution<Value>, lost: () => Error): Promise<Value> {
    return new Promise((resolve, reject) => {
      const random = this.#random
      const fail = (ms: number): void => this.#scheduler.after(ms, () => host.deliver(() => reject(lost())))
      if (this.faults.partitioned.has(host.name)) return fail(TIMEOUT_MS)
      const isLost = random.chance(this.faults.lossRate)
      if (isLost && random.chance(0.4)) return fail(TIMEOUT_MS)
      const arrival = isLost && random.chance(0.4) ? random() * LATE_MS : random() * 2 * REQUEST_MS
      const answer = isLost ? () => {} : resolve
      if (isLost) fail(TIMEOUT_MS)
      this.#scheduler.after(arrival, () => {
        const { value, isWrite } = execute()
        const acknowledge = (isDurable: boolean): void => {
          const isCut = this.faults.partitioned.has(host.name)
          const ms = isCut ? TIMEOUT_MS : random() * 2 * REQUEST_MS
          this.#scheduler.after(ms, () =>
            host.deliver(() => (isDurable && !isCut ? answer(value) : reject(lost()))),
          )
        }
        if (isWrite) this.#whenDurable(acknowledge)
        else acknowledge(true)
      })
    })
  }

  #whenDurable(done: (isDurable: boolean) => void): void {
    const at = this.#durable + this.#states.length - 1
    this.#waiting.push({ at, done })
    this.#scheduler.after(this.#random() * 2 * this.faults.replicationMs, () => this.#replicate(at))
  }

  /** Replication keeps the order of writes: all writes up to `at` are durable. */
  #replicate(at: number): void {
    while (this.#durable < at && this.#states.length > 1) {
      this.#states.shift()
      this.#durable += 1
    }
    const done = this.#waiting.filter((write) => write.at <= this.#durable)
    this.#waiting = this.#waiting.filter((write) => write.at > this.#durable)
    for (const write of done) write.done(true)
  }
}

interface Execution<Value> {
  readonly value: Value
  /** The answer waits until the write is durable. */
  readonly isWrite: boolean
}
