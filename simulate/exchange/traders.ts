/** Clients of the engine: each sends commands, repeats those without a certain outcome, and records what it was answered. */

import type { CommandClass } from '../../keeper/engine/fair-queue.ts'
import type { Reply } from '../../keeper/engine/owner.ts'
import type { Random } from '../random.ts'
import type { LedgerAnswer, LedgerCommand, LedgerKind } from './ledger.ts'
import type { Scheduler } from './scheduler.ts'

/** One sending of a command and its reply. */
export interface Attempt {
  readonly command: LedgerCommand
  readonly sentAt: number
  /** Rows whose effect some client knew of when this was sent: an answer that sees fewer is stale. */
  readonly knownRows: number
  repliedAt: number | null
  reply: Reply<LedgerAnswer> | null
}

/** Sends to the engine that the client takes for the owner; null if that is not one. */
export type Send = (command: LedgerCommand, of: CommandClass) => Promise<Reply<LedgerAnswer>> | null

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

const NETWORK_MS = 0.5
/** A draw that makes a query. */
const QUERY_DRAW = 0.9
const PATIENCE_MS = 400
const RETRY_MS = 50
/** A client that has sent a command so often gives up: its outcome stays unknown. */
const MOST_ATTEMPTS = 12

export class Traders {
  readonly attempts: Attempt[] = []
  knownRows = 0
  #sent = 0
  #placed: string[][] = []
  /** Share of commands that only read, besides those of the ordinary mix. */
  readonly #queries: number
  /** No new commands; those under way are repeated until they are answered. */
  isQuiet = false
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #send: Send

  constructor(scheduler: Scheduler, random: Random, send: Send) {
    this.#scheduler = scheduler
    this.#random = random
    this.#send = send
    this.#queries = random.pick([0, 0, 0.95])
  }

  start(accounts: number, meanPauseMs: number): void {
    this.#placed = Array.from({ length: accounts }, () => [])
    for (let account = 0; account < accounts; account++) this.#loop(account, meanPauseMs)
  }

  #loop(account: number, meanPauseMs: number): void {
    this.#scheduler.after(-Math.log(1 - this.#random()) * meanPauseMs, () => {
      if (this.isQuiet) return
      const count = this.#random.chance(0.1) ? this.#random.between(2, 20) : 1
      for (let at = 0; at < count; at++) this.#issue(account)
      this.#loop(account, meanPauseMs)
    })
  }

  /** Sends one deposit, as an operator who looks whether the engine works. */
  probe(): { isDone(): boolean } {
    const id = `c${++this.#sent}`
    this.#attempt({ kind: 'deposit', id, account: 0, amount: 1 }, 1)
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
    this.#attempt(command, 1)
  }

  #attempt(command: Omit<LedgerCommand, 'attempt'>, count: number): void {
    const sent: LedgerCommand = { ...command, attempt: this.attempts.length + 1 }
    const attempt: Attempt = {
      command: sent,
      sentAt: this.#scheduler.now,
      knownRows: this.knownRows,
      repliedAt: null,
      reply: null,
    }
    this.attempts.push(attempt)
    const repeat = { isOver: NEVER_REPEATED.has(command.kind) || count >= MOST_ATTEMPTS }
    const again = (): void => {
      if (repeat.isOver) return
      repeat.isOver = true
      this.#scheduler.after(RETRY_MS, () => this.#attempt(command, count + 1))
    }
    this.#scheduler.after(PATIENCE_MS, again)
    this.#scheduler.after(this.#random() * 2 * NETWORK_MS, () => {
      const replied = this.#send(sent, CLASS[sent.kind])
      if (replied === null) return this.#scheduler.after(NETWORK_MS, again)
      void replied.then((reply) =>
        this.#scheduler.after(this.#random() * 2 * NETWORK_MS, () => {
          this.#note(attempt, reply)
          if ('answer' in reply) repeat.isOver = true
          else again()
        }),
      )
    })
  }

  #note(attempt: Attempt, reply: Reply<LedgerAnswer>): void {
    attempt.repliedAt = this.#scheduler.now
    attempt.reply = reply
    if ('answer' in reply) this.knownRows = Math.max(this.knownRows, reply.answer.seen)
  }
}
