/** The exchange as the engine's machine: each kind of command has its decider, and rows of the journal change the state. */
import type { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import { decideCancelAll } from '../../domain/exchange/decide/orders/cancel-all.ts'
import type {
  CancelAllCommand,
  CancelAllStep,
  OrdersAnswer,
  OrdersCommand,
} from '../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../domain/exchange/decide/orders/decide-orders.ts'
import {
  decideOperator,
  type OperatorAnswer,
  type OperatorCommand,
} from '../../domain/exchange/decide/orders/operator.ts'
import { decideRestriction, type RestrictCommand } from '../../domain/exchange/decide/restrict.ts'
import type { HashOrder } from '../../domain/exchange/decide/turn/liquidation.ts'
import { marketTurn, type TurnAnswer, type TurnCommand } from '../../domain/exchange/decide/turn/turn.ts'
import { Continued, type Decider, decideOn } from '../../domain/exchange/decide.ts'
import type { Inputs as ExchangeInputs } from '../../domain/exchange/inputs.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { Decision, Inputs, Machine } from './machine.ts'

/** A market's turn, or the step that continues it. The sender passes on the memory of the last answer. */
export interface MarketTurn {
  readonly kind: 'turn'
  readonly turn: TurnCommand
}

export interface TurnTaken {
  readonly kind: 'turn_taken'
  readonly turn: TurnAnswer
}

export type ExchangeCommand =
  | OrdersCommand
  | CancelAllCommand
  | CancelAllStep
  | OperatorCommand
  | MarketTurn
  | RestrictCommand
export interface SettingChanged {
  readonly kind: 'setting_changed'
  readonly outcome: OperatorAnswer
}

export type ExchangeAnswer = OrdersAnswer | SettingChanged | TurnTaken | { readonly kind: 'restricted' }

/** Newest facts from publisher and ingest at the time of a decision, and the hash of forced orders. */
export interface ExchangeParts {
  readonly inputsAt: (now: Millis) => ExchangeInputs
  readonly hashOrder: HashOrder
}

export class Exchange implements Machine<ExchangeCommand, Entry, ExchangeAnswer> {
  readonly applied: AppliedRows
  readonly #parts: ExchangeParts

  constructor(applied: AppliedRows, parts: ExchangeParts) {
    this.applied = applied
    this.#parts = parts
  }

  decide(command: ExchangeCommand, { now }: Inputs): Decision<ExchangeCommand, Entry, ExchangeAnswer> {
    const decider = this.#deciderOf(command) as Decider<ExchangeCommand, ExchangeAnswer, ExchangeCommand>
    const { entries, answer, next } = decideOn(this.applied.state, this.#parts.inputsAt(now), {
      decider,
      command,
    })
    return { rows: entries, answer, next }
  }

  #deciderOf({ kind }: ExchangeCommand): unknown {
    switch (kind) {
      case 'orders':
        return decideOrders
      case 'cancel_all':
      case 'cancel_all_step':
        return decideCancelAll
      case 'operator':
        return changeSetting
      case 'turn':
        return takeTurn(this.#parts.hashOrder)
      case 'restrict':
        return decideRestriction
    }
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
    return marketIds.length === 0 ? null : { kind: 'restrict', marketIds }
  }

  /** Clients repeat cancels, and markets their turns. */
  unfinished(): readonly ExchangeCommand[] {
    return []
  }
}

/** Markets that the command names. */
function marketsOf(command: ExchangeCommand): readonly MarketId[] {
  if (command.kind === 'turn') return [command.turn.marketId]
  if (command.kind !== 'orders') return []
  const ids = command.items.flatMap((item) => (item.kind === 'place' ? [item.order.marketId] : []))
  return [...new Set(ids)]
}

const changeSetting: Decider<OperatorCommand, SettingChanged> = (draft, inputs, command) => {
  const outcome = decideOperator(draft, inputs, command)
  // An operator's decision is never continued.
  return { kind: 'setting_changed', outcome: outcome as OperatorAnswer }
}

const takeTurn =
  (hashOrder: HashOrder): Decider<MarketTurn, TurnTaken, MarketTurn> =>
  (draft, inputs, { turn }) => {
    const step = marketTurn(hashOrder)(draft, inputs, turn)
    if (!(step instanceof Continued)) return { kind: 'turn_taken', turn: step }
    return new Continued<TurnTaken, MarketTurn>(
      { kind: 'turn_taken', turn: step.answer },
      { kind: 'turn', turn: step.next },
    )
  }
