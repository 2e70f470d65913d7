/**
 * Implements the engine's machine for the exchange: a decider per kind of command, and journal rows that change the
 * state.
 */
import type { ClearingInputs } from '../../domain/auction/clearing.ts'
import type { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import { hasFired } from '../../domain/exchange/decide/orders/switches.ts'
import type { TurnAnswer } from '../../domain/exchange/decide/turn/turn.ts'
import {
  type Decision as DecidedEntries,
  type Decider,
  decideOn,
  executeOn,
} from '../../domain/exchange/decide.ts'
import type { Inputs as ExchangeInputs } from '../../domain/exchange/inputs.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import {
  COMMANDS,
  type DeciderParts,
  type ExchangeAnswer,
  type ExchangeCommand,
  type MarketTurn,
  marketsOf,
} from './commands.ts'
import type { Decision, Inputs, Machine } from './machine.ts'

export interface ExchangeParts extends DeciderParts {
  /** Newest facts from publisher and ingest at decision time. */
  readonly inputsAt: (now: Millis) => ExchangeInputs
  /**
   * Receives the inputs of each decided batch, before its rows are stored. Inputs are evidence and not part of the
   * state.
   */
  readonly keepInputs?: (marketId: MarketId, batchId: number, inputs: ClearingInputs) => void
}

type ExchangeDecision = Decision<ExchangeCommand, Entry, ExchangeAnswer>

export class Exchange implements Machine<ExchangeCommand, Entry, ExchangeAnswer> {
  readonly applied: AppliedRows
  readonly #parts: ExchangeParts

  constructor(applied: AppliedRows, parts: ExchangeParts) {
    this.applied = applied
    this.#parts = parts
  }

  execute(command: ExchangeCommand, { now }: Inputs): ExchangeDecision {
    return this.#decided(command, executeOn(this.applied, this.#parts.inputsAt(now), this.#stepOf(command)))
  }

  /** The decision of `execute`. The state stays as it is. */
  decide(command: ExchangeCommand, { now }: Inputs): ExchangeDecision {
    const { state } = this.applied
    return this.#decided(command, decideOn(state, this.#parts.inputsAt(now), this.#stepOf(command)))
  }

  #stepOf(command: ExchangeCommand) {
    const decider = COMMANDS[command.kind].decide(this.#parts)
    return { decider: decider as Decider<ExchangeCommand, ExchangeAnswer, ExchangeCommand>, command }
  }

  #decided(
    command: ExchangeCommand,
    { entries, answer, next }: DecidedEntries<ExchangeAnswer, ExchangeCommand>,
  ): ExchangeDecision {
    if (command.kind === 'turn') this.#keepInputs(command, answer as TurnAnswer)
    return { rows: entries, answer, next }
  }

  #keepInputs({ turn }: MarketTurn, { batchId, inputs }: TurnAnswer): void {
    if (batchId !== null && inputs !== null) this.#parts.keepInputs?.(turn.marketId, batchId, inputs)
  }

  apply(row: Entry): void {
    this.applied.apply(row)
  }

  position(): number {
    return this.applied.position()
  }

  undoTo(position: number): void {
    this.applied.undoTo(position)
  }

  forget(position: number): void {
    this.applied.forget(position)
  }

  digest(): string {
    return this.applied.digest()
  }

  time(): Millis {
    return this.applied.time()
  }

  restriction(faulty: ExchangeCommand): ExchangeCommand | null {
    const marketIds = marketsOf(faulty)
    return marketIds.length === 0 ? null : { kind: 'restrict', marketIds, why: 'fault' }
  }

  /**
   * Commands to continue after a takeover. Clients repeat cancels and blocks, and markets repeat turns, but fired
   * switches have no sender.
   */
  unfinished(): readonly ExchangeCommand[] {
    return hasFired(this.applied.state) ? [{ kind: 'cancel_fired' }] : []
  }
}
