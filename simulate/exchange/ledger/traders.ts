/** Traders of the ledger: each sends commands of all kinds, alone and in bursts. */

import type { CommandClass } from '../../../keeper/engine/fair-queue.ts'
import type { Random } from '../../random.ts'
import { type Attempt, Attempts, type Send } from '../attempts.ts'
import type { Clients } from '../scenario.ts'
import type { Scheduler } from '../scheduler.ts'
import type { LedgerAnswer, LedgerCommand, LedgerKind } from './ledger.ts'

const CLASS: Readonly<Record<LedgerKind, CommandClass>> = {
  deposit: 'chain',
  close: 'auction',
  cancel: 'cancel',
  cancel_all: 'cancel',
  place: 'placement',
  query: 'placement',
  faulty: 'placement',
  poison: 'placement',
  restrict: 'chain',
}

/** A closing has no identity, and faulty commands are faulty again. */
const NEVER_REPEATED: ReadonlySet<LedgerKind> = new Set(['close', 'faulty', 'poison'])

/** A draw that makes a query. */
const QUERY_DRAW = 0.9
export type LedgerAttempt = Attempt<LedgerCommand, LedgerAnswer>

const ACCOUNTS = 5

export class Traders implements Clients<LedgerCommand, LedgerAnswer> {
  /** Rows whose effect some client knew of when a command was sent: an answer that sees fewer is stale. */
  readonly #knownAt = new Map<LedgerCommand, number>()
  #known = 0
  #sent = 0
  #placed: string[][] = []
  /** Share of commands that only read, besides those of the ordinary mix. */
  readonly #queries: number
  /** No new commands; those under way are repeated until they are answered. */
  isQuiet = false
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #attempts: Attempts<LedgerCommand, LedgerAnswer>

  constructor(scheduler: Scheduler, random: Random, send: Send<LedgerCommand, LedgerAnswer>) {
    this.#scheduler = scheduler
    this.#random = random
    this.#attempts = new Attempts(scheduler, random, send, ({ reply }) => {
      if (reply !== null && 'answer' in reply) this.#known = Math.max(this.#known, reply.answer.seen)
    })
    this.#queries = random.pick([0, 0, 0.95])
  }

  knownRows = (command: LedgerCommand): number => this.#knownAt.get(command) ?? 0

  get attempts(): readonly LedgerAttempt[] {
    return this.#attempts.all
  }

  start(meanPauseMs: number): void {
    this.#placed = Array.from({ length: ACCOUNTS }, () => [])
    for (let account = 0; account < ACCOUNTS; account++) this.#loop(account, meanPauseMs)
  }

  #loop(account: number, meanPauseMs: number): void {
    this.#scheduler.after(-Math.log(1 - this.#random()) * meanPauseMs, () => {
      if (this.isQuiet) return
      const count = this.#random.chance(0.1) ? this.#random.between(2, 20) : 1
      for (let at = 0; at < count; at++) this.#issue(account)
      this.#loop(account, meanPauseMs)
    })
  }

  probe(): { isDone(): boolean } {
    const id = `c${++this.#sent}`
    this.#submit({ kind: 'deposit', id, account: 0, amount: 1 })
    return {
      isDone: () =>
        this.attempts.some(({ command, reply }) => command.id === id && reply !== null && 'answer' in reply),
    }
  }

  #issue(account: number): void {
    const random = this.#random
    const id = `c${++this.#sent}`
    const draw = random.chance(this.#queries) ? QUERY_DRAW : random()
    const orders = this.#placed[account] as string[]
    const kind: LedgerKind =
      draw < 0.12
        ? 'deposit'
        : draw < 0.5
          ? 'place'
          : draw < 0.65
            ? 'cancel'
            : draw < 0.72
              ? 'cancel_all'
              : draw < 0.8
                ? 'close'
                : draw < 0.97
                  ? 'query'
                  : draw < 0.985
                    ? 'faulty'
                    : 'poison'
    if (kind === 'place') orders.push(id)
    const order = kind === 'cancel' ? (orders.at(-random.between(1, 3)) ?? id) : null
    const command = { kind, id, account, amount: random.between(1, 40), ...(order !== null && { order }) }
    this.#submit(command)
  }

  #submit(command: Omit<LedgerCommand, 'attempt'>): void {
    this.#attempts.send({
      of: (attempt) => {
        const sent = { ...command, attempt }
        this.#knownAt.set(sent, this.#known)
        return sent
      },
      class: CLASS[command.kind],
      isRepeatable: !NEVER_REPEATED.has(command.kind),
    })
  }
}
