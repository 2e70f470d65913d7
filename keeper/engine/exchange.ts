/** The exchange as the engine's machine: each kind of command has its decider, and rows of the journal change the state. */
import type { AppliedRows } from '../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../domain/exchange/apply.ts'
import type { OrdersAnswer, OrdersCommand } from '../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../domain/exchange/decide/orders/decide-orders.ts'
import { decideRestriction, type RestrictCommand } from '../../domain/exchange/decide/restrict.ts'
import { type Decider, decideOn } from '../../domain/exchange/decide.ts'
import type { Inputs as ExchangeInputs } from '../../domain/exchange/inputs.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { Decision, Inputs, Machine } from './machine.ts'

export type ExchangeCommand = OrdersCommand | RestrictCommand
export type ExchangeAnswer = OrdersAnswer | { readonly kind: 'restricted' }

const DECIDERS: {
  readonly [Kind in ExchangeCommand['kind']]: Decider<
    Extract<ExchangeCommand, { readonly kind: Kind }>,
    ExchangeAnswer,
    ExchangeCommand
  >
} = {
  orders: decideOrders,
  restrict: decideRestriction,
}

export class Exchange implements Machine<ExchangeCommand, Entry, ExchangeAnswer> {
  readonly applied: AppliedRows
  readonly #inputsAt: (now: Millis) => ExchangeInputs

  /** `inputsAt`: what publisher and ingest have sent most recently, at the time of a decision. */
  constructor(applied: AppliedRows, inputsAt: (now: Millis) => ExchangeInputs) {
    this.applied = applied
    this.#inputsAt = inputsAt
  }

  decide(command: ExchangeCommand, { now }: Inputs): Decision<ExchangeCommand, Entry, ExchangeAnswer> {
    const decider = DECIDERS[command.kind] as Decider<ExchangeCommand, ExchangeAnswer, ExchangeCommand>
    const { entries, answer, next } = decideOn(this.applied.state, this.#inputsAt(now), { decider, command })
    return { rows: entries, answer, next }
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

  /** Steps of a cancel are not continued: its client repeats it. */
  unfinished(): readonly ExchangeCommand[] {
    return []
  }
}

/** Markets that the command names. */
function marketsOf(command: ExchangeCommand): readonly MarketId[] {
  if (command.kind === 'restrict') return []
  const ids = command.items.flatMap((item) => (item.kind === 'place' ? [item.order.marketId] : []))
  return [...new Set(ids)]
}
