/**
 * First start on a restored database. The chain may have settled more than the journal contains: markets become
 * cancel-only, and only blocks are decided until the chain's head is reached.
 */

import type { MarketId } from '../../domain/units.ts'
import type { Logger } from '../../service/logger.ts'
import type { CommandKind, ExchangeCommand } from './commands.ts'
import type { Reply, Request } from './owner.ts'
import { pause, type Timer } from './ports.ts'

export interface RestorationPorts {
  readonly submit: (request: Request<ExchangeCommand>) => Promise<Reply<unknown>>
  readonly markets: () => readonly MarketId[]
  /** Whether the indexer has completed a pass over the chain's head since this process started. */
  readonly isChainSeen: () => boolean
  /** Whether the database still awaits it: another member may have done it meanwhile. */
  readonly isAwaited: () => Promise<boolean>
  readonly noteDone: () => Promise<void>
  readonly timer: Timer
  readonly logger: Logger
}

/** Commands that clients may send meanwhile: blocks, and listings with their settings, which the setup of an exchange repeats at each start. */
const ALLOWED: ReadonlySet<CommandKind> = new Set([
  'apply_block',
  'roll_back',
  'confirm_blocks',
  'list_market',
  'barrier',
])

const POLL_MS = 100

export class Restoration {
  readonly #ports: RestorationPorts
  #isDone = false
  #isStopped = false

  constructor(ports: RestorationPorts) {
    this.#ports = ports
  }

  /** False for a command that is not executed before the chain is replayed. */
  allows(command: ExchangeCommand): boolean {
    if (this.#isDone || ALLOWED.has(command.kind)) return true
    return command.kind === 'operator' && command.setting.kind !== 'reopen'
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Called once this member owns the journal. False if it was stopped before. */
  async complete(): Promise<boolean> {
    const { logger, isChainSeen, isAwaited, noteDone } = this.#ports
    if (await this.#repeated(isAwaited)) {
      logger.warn({}, 'the database was restored from a backup: markets are cancel-only')
      if (!(await this.#untilTrue(() => this.#restrict()))) return false
      if (!(await this.#untilTrue(async () => isChainSeen()))) return false
      await this.#repeated(noteDone)
      logger.warn({}, 'the chain is replayed onto the restored journal')
    }
    if (this.#isStopped) return false
    this.#isDone = true
    return true
  }

  /** Markets that are not open keep their mode. Repeating it writes nothing. */
  async #restrict(): Promise<boolean> {
    const { submit, markets } = this.#ports
    const command = { kind: 'restrict', marketIds: markets(), why: 'restore' } as const
    const reply = await submit({ command, class: 'chain', account: null, deadline: Number.POSITIVE_INFINITY })
    return 'answer' in reply
  }

  async #untilTrue(work: () => Promise<boolean>): Promise<boolean> {
    while (!this.#isStopped) {
      if (await this.#repeated(work)) return true
      await pause(this.#ports.timer, POLL_MS)
    }
    return false
  }

  /** Repeats work that the database refuses to do. Null once it is stopped. */
  async #repeated<Value>(work: () => Promise<Value>): Promise<Value | null> {
    while (!this.#isStopped) {
      try {
        return await work()
      } catch (err) {
        this.#ports.logger.warn({ err }, 'restored database not prepared; will retry')
        await pause(this.#ports.timer, POLL_MS)
      }
    }
    return null
  }
}
