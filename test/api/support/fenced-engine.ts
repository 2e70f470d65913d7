/** The engine behind its port, as apis reach it in production: the fences of one api's answers concern attempts of all apis. */
import type { Millis } from '../../../domain/units.ts'
import {
  type AnswerOf,
  accountOf,
  type CommandKind,
  type CommandOf,
  classOf,
  type ExchangeCommand,
} from '../../../keeper/engine/commands.ts'
import { ConnectionDeadlines } from '../../../keeper/engine/connection-deadlines.ts'
import { createEnginePort, type EnginePort } from '../../../keeper/engine/engine-port.ts'
import { Facts } from '../../../keeper/engine/facts.ts'
import { decode } from '../../../keeper/engine/link/codec.ts'
import type { Engine, EngineReply } from '../../../keeper/engine/link/engine.ts'

const BUDGET_MS = 30_000

/** One port for all apis of a test. Decides with `engine`. */
export const fencedPort = (engine: Engine): EnginePort =>
  createEnginePort({
    submit: ({ command }) => engine.submit(command, BUDGET_MS) as never,
    facts: new Facts({ oracleMaxAgeMs: 0, chainMaxAgeMs: 0 }),
    deadlines: new ConnectionDeadlines(),
    now: () => Date.now() as Millis,
    monotonic: () => performance.now(),
  })

/** The connection of one api to the port. The test can hold the api's commands between their arrival and their sending. */
export class FencedEngine implements Engine {
  readonly #port: EnginePort
  #released = Promise.withResolvers<void>()
  #held = Promise.withResolvers<void>()

  /** When each key was fenced, by `performance.now()`. */
  readonly fencedAt = new Map<string, number>()

  constructor(port: EnginePort) {
    this.#port = port
    this.release()
  }

  /** Commands with orders wait until `release`. */
  hold(): void {
    this.#released = Promise.withResolvers()
    this.#held = Promise.withResolvers()
  }

  release(): void {
    this.#released.resolve()
  }

  /** Resolves once a command waits since the last `hold`. */
  get held(): Promise<void> {
    return this.#held.promise
  }

  async submit<Kind extends CommandKind>(
    command: CommandOf<Kind>,
    _budgetMs: number,
    arrivedAt = performance.now(),
  ): Promise<EngineReply<AnswerOf<Kind>>> {
    if (command.kind === 'orders') {
      this.#held.resolve()
      await this.#released.promise
    }
    const sent: ExchangeCommand = command
    if (sent.kind === 'barrier') for (const key of sent.fences) this.fencedAt.set(key, performance.now())
    const terms = { class: classOf(command), account: accountOf(command), deadline: Number.POSITIVE_INFINITY }
    const reply = await this.#port.submit({ command, arrivedAt, ...terms })
    if (reply === null) return { none: 'not_executed' }
    return 'none' in reply ? reply : { answer: decodedAnswer<Kind>(reply.answer) }
  }

  async inform(): Promise<void> {}
}

const decodedAnswer = <Kind extends CommandKind>(answer: unknown): AnswerOf<Kind> =>
  decode(JSON.parse(JSON.stringify(answer))) as AnswerOf<Kind>
