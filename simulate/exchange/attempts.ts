/** The sendings of commands by clients: a command without a certain outcome is sent again. */
import type { CommandClass } from '../../keeper/engine/fair-queue.ts'
import type { Reply } from '../../keeper/engine/owner.ts'
import type { Random } from '../random.ts'
import type { Scheduler } from './scheduler.ts'

/** Sends to the engine that the client takes for the owner; null if that is not one. */
export type Send<Command, Answer> = (command: Command, of: CommandClass) => Promise<Reply<Answer>> | null

/** One sending of a command and its reply. */
export interface Attempt<Command, Answer> {
  readonly command: Command
  readonly sentAt: number
  repliedAt: number | null
  reply: Reply<Answer> | null
}

export interface Sent<Command> {
  /** The command of the attempt with this number, unique in the run. */
  readonly of: (attempt: number) => Command
  readonly class: CommandClass
  /** Whether it has an identity, by which the engine recognizes a repetition. */
  readonly isRepeatable: boolean
}

const NETWORK_MS = 0.5
const PATIENCE_MS = 400
const RETRY_MS = 50
/** A client that has sent a command so often gives up: its outcome stays unknown. */
const MOST_ATTEMPTS = 12

export class Attempts<Command, Answer> {
  readonly all: Attempt<Command, Answer>[] = []
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #send: Send<Command, Answer>
  readonly #noted: (attempt: Attempt<Command, Answer>) => void

  constructor(
    scheduler: Scheduler,
    random: Random,
    send: Send<Command, Answer>,
    noted: (attempt: Attempt<Command, Answer>) => void,
  ) {
    this.#scheduler = scheduler
    this.#random = random
    this.#send = send
    this.#noted = noted
  }

  send(sent: Sent<Command>, count = 1): Attempt<Command, Answer> {
    const attempt: Attempt<Command, Answer> = {
      command: sent.of(this.all.length + 1),
      sentAt: this.#scheduler.now,
      repliedAt: null,
      reply: null,
    }
    this.all.push(attempt)
    const repeat = { isOver: !sent.isRepeatable || count >= MOST_ATTEMPTS }
    const again = (): void => {
      if (repeat.isOver) return
      repeat.isOver = true
      this.#scheduler.after(RETRY_MS, () => void this.send(sent, count + 1))
    }
    this.#scheduler.after(PATIENCE_MS, again)
    this.#scheduler.after(this.#random() * 2 * NETWORK_MS, () => {
      const replied = this.#send(attempt.command, sent.class)
      if (replied === null) return this.#scheduler.after(NETWORK_MS, again)
      void replied.then((reply) =>
        this.#scheduler.after(this.#random() * 2 * NETWORK_MS, () => {
          attempt.repliedAt = this.#scheduler.now
          attempt.reply = reply
          this.#noted(attempt)
          if ('answer' in reply) repeat.isOver = true
          else again()
        }),
      )
    })
    return attempt
  }
}
