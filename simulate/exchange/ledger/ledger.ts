/**
 * The smallest exchange that exercises the whole engine: accounts, reservations, long work in steps, repeated and faulty
 * commands, rejected rows. Its state is one map.
 */
import { createHash } from 'node:crypto'
import type { Millis } from '../../../domain/units.ts'
import type { Decision, Inputs, Machine } from '../../../keeper/engine/machine.ts'

export type LedgerKind =
  | 'deposit'
  | 'place'
  | 'cancel'
  | 'cancel_all'
  | 'close'
  | 'query'
  | 'faulty'
  | 'poison'
  | 'restrict'

export interface LedgerCommand {
  readonly kind: LedgerKind
  /** Identity of the command; a repetition has the same identity. */
  readonly id: string
  /** Number of this attempt, unique in the run. */
  readonly attempt: number
  readonly account: number
  readonly amount: number
  /** The order of a cancel. */
  readonly order?: string
  /** A step of `close`: orders up to this number are closed, two at a time. */
  readonly upTo?: number
}

export interface LedgerRow {
  readonly id: string
  readonly attempt: number
  readonly account: number
  readonly at: Millis
  /** New values by entry; null deletes it. */
  readonly changes: readonly (readonly [key: string, value: number | null])[]
  /** The row is the first of its command's effect. */
  readonly isFirst: boolean
  readonly isPoison?: true
  readonly isFaulty?: true
}

export interface LedgerAnswer {
  readonly result: 'done' | 'refused' | 'balance'
  /** Rows of the state that the answer reflects. */
  readonly seen: number
  readonly free: number
  readonly reserved: number
}

type Step = Decision<LedgerCommand, LedgerRow, LedgerAnswer>

const hashOf = (key: string, value: number): bigint =>
  BigInt(`0x${createHash('sha256').update(`${key}=${value}`).digest('hex').slice(0, 32)}`)

const ORDERS_PER_STEP = 2

export class Ledger implements Machine<LedgerCommand, LedgerRow, LedgerAnswer> {
  readonly #entries = new Map<string, number>()
  #digest = 0n
  #applied = 0
  #time = 0
  /** The values that each applied row has replaced, newest last. */
  #undo: { time: number; readonly before: [string, number | null][] }[] = []

  execute(command: LedgerCommand, inputs: Inputs): Step {
    const step = this.#decide(command, inputs)
    for (const row of step.rows) this.apply(row)
    return step
  }

  #decide(command: LedgerCommand, { now }: Inputs): Step {
    const { account, kind } = command
    if (kind === 'query') return this.#answer('balance', account)
    if (kind === 'close') return this.#close(command, now)
    if (this.#get(`done:${command.id}`) !== 0) return this.#answer('done', account)
    if (kind === 'deposit')
      return this.#done(command, now, [[`free:${account}`, this.#free(account) + command.amount]])
    if (kind === 'place') return this.#place(command, now)
    if (kind === 'cancel') return this.#cancel(command, now, [command.order ?? ''])
    if (kind === 'cancel_all') return this.#cancel(command, now, this.#ordersOf(account))
    if (kind === 'restrict') return this.#done(command, now, [[`restricted:${account}`, 1]])
    const row = this.#row(command, now, [[`free:${account}`, this.#free(account) + 1]], true)
    const faulty: LedgerRow = kind === 'poison' ? { ...row, isPoison: true } : { ...row, isFaulty: true }
    return { rows: [faulty], answer: this.#answer('done', account).answer, next: null }
  }

  apply(row: LedgerRow): void {
    const before: [string, number | null][] = []
    this.#undo.push({ time: this.#time, before })
    this.#applied += 1
    this.#time = Math.max(this.#time, row.at)
    for (const [key, value] of row.changes) {
      before.push([key, this.#entries.get(key) ?? null])
      this.#set(key, value)
    }
    if (row.isFaulty) throw new Error(`the row of ${row.id} contradicts the state`)
  }

  position(): number {
    return this.#applied
  }

  undoTo(position: number): void {
    while (this.#applied > position) {
      const last = this.#undo.pop()
      if (last === undefined) throw new Error(`no undo entry at ${this.#applied}`)
      for (const [key, value] of last.before.toReversed()) this.#set(key, value)
      this.#time = last.time
      this.#applied -= 1
    }
  }

  forget(position: number): void {
    const kept = Math.max(0, this.#applied - position)
    this.#undo = kept === 0 ? [] : this.#undo.slice(-kept)
  }

  /** The number of rows is part of it: entries alone would not show that a row was applied twice. */
  digest(): string {
    return (this.#digest ^ BigInt(this.#applied)).toString(16).padStart(32, '0')
  }

  time(): Millis {
    return this.#time as Millis
  }

  restriction({ kind, account, id, attempt }: LedgerCommand): LedgerCommand | null {
    if (kind === 'restrict') return null
    return { kind: 'restrict', id: `restrict:${id}`, attempt: -attempt, account, amount: 0 }
  }

  unfinished(): readonly LedgerCommand[] {
    const closing = this.#get('closing')
    if (closing === 0) return []
    return [{ kind: 'close', id: `close:${closing}`, attempt: 0, account: 0, amount: 0, upTo: closing }]
  }

  balance(account: number): { free: number; reserved: number } {
    return { free: this.#free(account), reserved: this.#get(`reserved:${account}`) }
  }

  /** Whether a `close` has begun and not ended. */
  isClosing(): boolean {
    return this.#get('closing') !== 0
  }

  /** Sums per account by the live orders, which the entries `reserved:…` must equal. */
  reservedByOrders(account: number): number {
    return this.#ordersOf(account).reduce((sum, order) => sum + this.#get(`order:${account}:${order}`), 0)
  }

  #place(command: LedgerCommand, now: Millis): Step {
    const { account, amount, id } = command
    const reserved = this.#get(`reserved:${account}`)
    const isRefused = this.#get(`restricted:${account}`) === 1 || reserved + amount > this.#free(account)
    if (isRefused) return this.#answer('refused', account)
    const number = this.#get('orders') + 1
    return this.#done(command, now, [
      [`order:${account}:${id}`, amount],
      [`number:${account}:${id}`, number],
      [`reserved:${account}`, reserved + amount],
      ['orders', number],
    ])
  }

  #cancel(command: LedgerCommand, now: Millis, orders: readonly string[]): Step {
    return this.#done(command, now, this.#endings(command.account, orders))
  }

  #endings(account: number, orders: readonly string[]): [string, number | null][] {
    const live = orders.filter((order) => this.#get(`order:${account}:${order}`) > 0)
    const released = live.reduce((sum, order) => sum + this.#get(`order:${account}:${order}`), 0)
    if (live.length === 0) return []
    return [
      ...live.flatMap((order): [string, number | null][] => [
        [`order:${account}:${order}`, null],
        [`number:${account}:${order}`, null],
      ]),
      [`reserved:${account}`, this.#get(`reserved:${account}`) - released],
    ]
  }

  /** Ends all orders that were live when it began, in steps. */
  #close(command: LedgerCommand, now: Millis): Step {
    const running = this.#get('closing')
    if (command.upTo === undefined && running !== 0) return this.#answer('refused', command.account)
    const upTo = command.upTo ?? this.#get('orders')
    const due = [...this.#entries]
      .filter(([key, number]) => key.startsWith('number:') && number <= upTo)
      .toSorted(([, a], [, b]) => a - b)
      .slice(0, ORDERS_PER_STEP)
      .map(([key]) => key.split(':'))
    const isLast = due.length < ORDERS_PER_STEP
    const rows = due.map(([, account, order]) =>
      this.#row(
        { ...command, account: Number(account) },
        now,
        this.#endings(Number(account), [order as string]),
        false,
      ),
    )
    // Two orders of one account end by two rows, each decided on the state before both rows.
    const merged =
      rows.length === 2 && rows[0]?.account === rows[1]?.account ? [this.#both(command, now, due)] : rows
    const mark = this.#row(command, now, [['closing', isLast ? null : upTo]], command.upTo === undefined)
    const answer = this.#answer('done', command.account, merged.length + 1).answer
    return { rows: [...merged, mark], answer, next: isLast ? null : { ...command, upTo } }
  }

  #both(command: LedgerCommand, now: Millis, due: readonly string[][]): LedgerRow {
    const account = Number(due[0]?.[1])
    const orders = due.map(([, , order]) => order as string)
    return this.#row({ ...command, account }, now, this.#endings(account, orders), false)
  }

  #done(command: LedgerCommand, now: Millis, changes: readonly (readonly [string, number | null])[]): Step {
    const row = this.#row(command, now, [...changes, [`done:${command.id}`, 1]], true)
    return { rows: [row], answer: this.#answer('done', command.account, 1, changes).answer, next: null }
  }

  #row(
    { id, attempt, account }: LedgerCommand,
    at: Millis,
    changes: LedgerRow['changes'],
    isFirst: boolean,
  ): LedgerRow {
    return { id, attempt, account, at, changes, isFirst }
  }

  #answer(
    result: LedgerAnswer['result'],
    account: number,
    rows = 0,
    changes: LedgerRow['changes'] = [],
  ): Step {
    const after = new Map(changes)
    const free = after.get(`free:${account}`) ?? this.#free(account)
    const reserved = after.get(`reserved:${account}`) ?? this.#get(`reserved:${account}`)
    return { rows: [], answer: { result, seen: this.#applied + rows, free, reserved }, next: null }
  }

  #ordersOf(account: number): string[] {
    const prefix = `order:${account}:`
    return [...this.#entries.keys()]
      .filter((key) => key.startsWith(prefix))
      .map((key) => key.slice(prefix.length))
  }

  #free(account: number): number {
    return this.#get(`free:${account}`)
  }

  #get(key: string): number {
    return this.#entries.get(key) ?? 0
  }

  #set(key: string, value: number | null): void {
    const before = this.#entries.get(key)
    if (before !== undefined) this.#digest ^= hashOf(key, before)
    if (value === null) this.#entries.delete(key)
    else {
      this.#entries.set(key, value)
      this.#digest ^= hashOf(key, value)
    }
  }
}
