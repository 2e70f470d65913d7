/** The commands of the exchange: for each kind its decider, its class in the engine's queue, and the roles that may send it. */
import {
  type AccountStateAnswer,
  type AccountStateCommand,
  readAccountState,
} from '../../domain/exchange/decide/chain/account-state.ts'
import {
  type AdjustmentLaneAnswer,
  type AdjustmentLaneCommand,
  decideAdjustmentLane,
} from '../../domain/exchange/decide/chain/adjustment-lane.ts'
import {
  type BlockCommand,
  type ChainAnswer,
  type ChainCommand,
  type ChainRules,
  type ConfirmCommand,
  decideChain,
  type RollBackCommand,
} from '../../domain/exchange/decide/chain/blocks.ts'
import {
  decideEnd,
  type EndAnswer,
  type RestartCommand,
  type VoidCommand,
} from '../../domain/exchange/decide/chain/end-actions.ts'
import { decideLane, type LaneAnswer, type LaneCommand } from '../../domain/exchange/decide/chain/lanes.ts'
import {
  decideRelayLane,
  type RelayLaneAnswer,
  type RelayLaneCommand,
} from '../../domain/exchange/decide/chain/relay-lane.ts'
import {
  decideRelease,
  type ReleaseAnswer,
  type ReleaseEnded,
  type ReleaseTransactions,
} from '../../domain/exchange/decide/chain/release.ts'
import {
  type AdjustAnswer,
  type AdjustCommand,
  decideAdjust,
} from '../../domain/exchange/decide/orders/adjust.ts'
import { decideCancelAll } from '../../domain/exchange/decide/orders/cancel-all.ts'
import type {
  CancelAllCommand,
  CancelAllStep,
  OrdersAnswer,
  OrdersCommand,
} from '../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../domain/exchange/decide/orders/decide-orders.ts'
import {
  type AdmissionInputAnswer,
  type AdmissionInputCommand,
  type DryRunCommand,
  decideDryRun,
  readAdmissionInput,
} from '../../domain/exchange/decide/orders/dry-run.ts'
import { decideListing, type ListMarketCommand } from '../../domain/exchange/decide/orders/list-market.ts'
import {
  decideOperator,
  type OperatorAnswer,
  type OperatorCommand,
} from '../../domain/exchange/decide/orders/operator.ts'
import {
  type AcceptRelayCommand,
  decideAcceptRelay,
  type RelayAnswer,
} from '../../domain/exchange/decide/orders/relays.ts'
import {
  type CancelFiredCommand,
  decideEndConnections,
  decideFireSwitches,
  decideHoldConnections,
  decideSetSwitch,
  type EndConnectionsCommand,
  type FiredAnswer,
  type FireSwitchesCommand,
  type HeldConnections,
  type HoldConnectionsCommand,
  type SetSwitchAnswer,
  type SetSwitchCommand,
} from '../../domain/exchange/decide/orders/switches.ts'
import { decideLogIn, type LoggedIn, type LogInCommand } from '../../domain/exchange/decide/orders/users.ts'
import { decideRestriction, type RestrictCommand } from '../../domain/exchange/decide/restrict.ts'
import {
  type FinalizeCommand,
  type FinalizeRefusal,
  finalizeMarket,
} from '../../domain/exchange/decide/turn/ending.ts'
import {
  type FundingAnswer,
  type FundingCommand,
  fundingUpdate,
} from '../../domain/exchange/decide/turn/funding.ts'
import type { HashOrder } from '../../domain/exchange/decide/turn/liquidation.ts'
import { marketTurn, type TurnAnswer, type TurnCommand } from '../../domain/exchange/decide/turn/turn.ts'
import { Continued, type Decider } from '../../domain/exchange/decide.ts'
import type { MarketId } from '../../domain/units.ts'
import type { Verdict } from '../../domain/verdict.ts'
import type { CommandClass } from './fair-queue.ts'
import type { Role } from './link/messages.ts'

/** A market's turn, or the step that continues it. The sender passes on the memory of the last answer. */
export interface MarketTurn {
  readonly kind: 'turn'
  readonly turn: TurnCommand
}

export interface UpdateFunding extends FundingCommand {
  readonly kind: 'update_funding'
}

export interface Finalize extends FinalizeCommand {
  readonly kind: 'finalize'
}

/**
 * Changes nothing. Answered after all commands received before, once readers' tables show their changes. Commands with
 * a key in `fences` that an API received earlier are then not executed.
 */
export interface Barrier {
  readonly kind: 'barrier'
  readonly fences: readonly string[]
}

/** The answer to each kind of command. */
interface Answers {
  readonly orders: OrdersAnswer
  readonly cancel_all: OrdersAnswer
  readonly cancel_all_step: OrdersAnswer
  readonly dry_run: OrdersAnswer
  readonly admission_input: AdmissionInputAnswer
  readonly operator: OperatorAnswer
  readonly list_market: { readonly isNew: boolean }
  readonly log_in: LoggedIn
  readonly set_switch: SetSwitchAnswer
  readonly hold_connections: HeldConnections
  readonly end_connections: null
  readonly fire_switches: FiredAnswer
  readonly cancel_fired: FiredAnswer
  readonly accept_relay: RelayAnswer
  readonly barrier: null
  readonly adjust: AdjustAnswer
  readonly turn: TurnAnswer
  readonly update_funding: FundingAnswer
  readonly finalize: Verdict<number | null, FinalizeRefusal>
  readonly restrict: { readonly kind: 'restricted' }
  readonly apply_block: ChainAnswer
  readonly roll_back: ChainAnswer
  readonly confirm_blocks: ChainAnswer
  readonly register_lane: LaneAnswer
  readonly reserve_nonces: LaneAnswer
  readonly next_action: LaneAnswer
  readonly signed: LaneAnswer
  readonly submitted: LaneAnswer
  readonly adopt_action_id: LaneAnswer
  readonly signed_hashes: LaneAnswer
  readonly idle: LaneAnswer
  readonly adjustments_signed: AdjustmentLaneAnswer
  readonly adjustments_submitted: AdjustmentLaneAnswer
  readonly fail_adjustment: AdjustmentLaneAnswer
  readonly account_state: AccountStateAnswer
  readonly relay_signed: RelayLaneAnswer
  readonly fail_relay: RelayLaneAnswer
  readonly requeue_relay: RelayLaneAnswer
  readonly void: EndAnswer
  readonly restart_queue: EndAnswer
  readonly release_ended: ReleaseAnswer
  readonly release_transactions: ReleaseAnswer
}

export type ExchangeCommand =
  | OrdersCommand
  | CancelAllCommand
  | CancelAllStep
  | DryRunCommand
  | AdmissionInputCommand
  | OperatorCommand
  | ListMarketCommand
  | LogInCommand
  | SetSwitchCommand
  | HoldConnectionsCommand
  | EndConnectionsCommand
  | FireSwitchesCommand
  | CancelFiredCommand
  | AcceptRelayCommand
  | Barrier
  | AdjustCommand
  | MarketTurn
  | UpdateFunding
  | Finalize
  | RestrictCommand
  | BlockCommand
  | RollBackCommand
  | ConfirmCommand
  | LaneCommand
  | AccountStateCommand
  | AdjustmentLaneCommand
  | RelayLaneCommand
  | VoidCommand
  | RestartCommand
  | ReleaseEnded
  | ReleaseTransactions

export type CommandKind = ExchangeCommand['kind']
export type CommandOf<Kind extends CommandKind> = Extract<ExchangeCommand, { readonly kind: Kind }>
export type AnswerOf<Kind extends CommandKind> = Answers[Kind]
export type ExchangeAnswer = Answers[CommandKind]

/** Functions and rules that deciders need besides state and inputs. */
export interface DeciderParts {
  readonly hashOrder: HashOrder
  readonly chainRules: ChainRules
}

interface CommandTerms<Kind extends CommandKind> {
  readonly decide: (parts: DeciderParts) => Decider<CommandOf<Kind>, Answers[Kind], ExchangeCommand>
  readonly class: CommandClass
  /** None: only the engine itself has it, as the continuation of another one or at a market's time. */
  readonly roles: readonly Role[]
}

const always =
  <Command, Answer, Next>(decider: Decider<Command, Answer, Next>) =>
  () =>
    decider

const chain = <Kind extends ChainCommand['kind']>(): CommandTerms<Kind> => ({
  decide:
    ({ chainRules }) =>
    (draft, inputs, command) =>
      decideChain(chainRules, draft, inputs, command as ChainCommand) as Answers[Kind],
  class: 'chain',
  roles: ['ingest'],
})

const lane = <Kind extends LaneCommand['kind']>(): CommandTerms<Kind> => ({
  decide: always(
    (draft, inputs, command) => decideLane(draft, inputs, command as LaneCommand) as Answers[Kind],
  ),
  class: 'chain',
  roles: ['worker'],
})

const adjustmentLane = <Kind extends AdjustmentLaneCommand['kind']>(): CommandTerms<Kind> => ({
  decide: always(
    (draft, inputs, command) =>
      decideAdjustmentLane(draft, inputs, command as AdjustmentLaneCommand) as Answers[Kind],
  ),
  class: 'chain',
  roles: ['worker'],
})

const relayLane = <Kind extends RelayLaneCommand['kind']>(): CommandTerms<Kind> => ({
  decide: always(
    (draft, inputs, command) => decideRelayLane(draft, inputs, command as RelayLaneCommand) as Answers[Kind],
  ),
  class: 'chain',
  roles: ['worker'],
})

const end = <Kind extends 'void' | 'restart_queue'>(): CommandTerms<Kind> => ({
  decide: always(
    (draft, inputs, command) =>
      decideEnd(draft, inputs, command as VoidCommand | RestartCommand) as Answers[Kind],
  ),
  class: 'chain',
  roles: ['worker'],
})

const takeTurn: CommandTerms<'turn'>['decide'] =
  ({ hashOrder }) =>
  (draft, inputs, { turn }) => {
    const step = marketTurn(hashOrder)(draft, inputs, turn)
    if (!(step instanceof Continued)) return step
    return new Continued<TurnAnswer, ExchangeCommand>(step.answer, { kind: 'turn', turn: step.next })
  }

/** An operator's decision is never continued. */
const changeSetting: Decider<OperatorCommand, OperatorAnswer, ExchangeCommand> = (draft, inputs, command) =>
  decideOperator(draft, inputs, command)

export const COMMANDS: { readonly [Kind in CommandKind]: CommandTerms<Kind> } = {
  orders: { decide: always(decideOrders), class: 'placement', roles: ['api'] },
  cancel_all: { decide: always(decideCancelAll), class: 'cancel', roles: ['api'] },
  cancel_all_step: { decide: always(decideCancelAll), class: 'cancel', roles: [] },
  dry_run: { decide: always(decideDryRun), class: 'placement', roles: ['api'] },
  admission_input: { decide: always(readAdmissionInput), class: 'placement', roles: ['api'] },
  operator: { decide: always(changeSetting), class: 'chain', roles: ['operator'] },
  list_market: { decide: always(decideListing), class: 'chain', roles: ['operator'] },
  log_in: { decide: always(decideLogIn), class: 'placement', roles: ['api'] },
  set_switch: { decide: always(decideSetSwitch), class: 'cancel', roles: ['api'] },
  hold_connections: { decide: always(decideHoldConnections), class: 'cancel', roles: ['api'] },
  end_connections: { decide: always(decideEndConnections), class: 'cancel', roles: ['api'] },
  fire_switches: { decide: always(decideFireSwitches), class: 'cancel', roles: [] },
  cancel_fired: { decide: always(decideFireSwitches), class: 'cancel', roles: [] },
  accept_relay: { decide: always(decideAcceptRelay), class: 'placement', roles: ['api'] },
  barrier: { decide: always(() => null), class: 'chain', roles: ['api'] },
  adjust: { decide: always(decideAdjust), class: 'placement', roles: ['api'] },
  turn: { decide: takeTurn, class: 'auction', roles: [] },
  update_funding: { decide: always(fundingUpdate), class: 'auction', roles: [] },
  finalize: { decide: always(finalizeMarket), class: 'chain', roles: ['worker'] },
  restrict: { decide: always(decideRestriction), class: 'chain', roles: [] },
  apply_block: chain<'apply_block'>(),
  roll_back: chain<'roll_back'>(),
  confirm_blocks: chain<'confirm_blocks'>(),
  register_lane: lane<'register_lane'>(),
  reserve_nonces: lane<'reserve_nonces'>(),
  next_action: lane<'next_action'>(),
  signed: lane<'signed'>(),
  submitted: lane<'submitted'>(),
  adopt_action_id: lane<'adopt_action_id'>(),
  signed_hashes: lane<'signed_hashes'>(),
  idle: lane<'idle'>(),
  adjustments_signed: adjustmentLane<'adjustments_signed'>(),
  adjustments_submitted: adjustmentLane<'adjustments_submitted'>(),
  fail_adjustment: adjustmentLane<'fail_adjustment'>(),
  account_state: { decide: always(readAccountState), class: 'chain', roles: ['worker'] },
  relay_signed: relayLane<'relay_signed'>(),
  fail_relay: relayLane<'fail_relay'>(),
  requeue_relay: relayLane<'requeue_relay'>(),
  void: end<'void'>(),
  restart_queue: end<'restart_queue'>(),
  release_ended: {
    decide: always((draft, _, command) => decideRelease(draft, command)),
    class: 'chain',
    roles: [],
  },
  release_transactions: {
    decide: always((draft, _, command) => decideRelease(draft, command)),
    class: 'chain',
    roles: ['worker'],
  },
}

/** Whether clients with the role may send the command. */
export const mayRoleSend = (role: Role, { kind }: ExchangeCommand): boolean =>
  COMMANDS[kind].roles.includes(role)

/** Only cancels leave the class of placements: they need no margin, and traders wait for them in a fall. */
export function classOf(command: ExchangeCommand): CommandClass {
  const isCancel = command.kind === 'orders' && command.items.every(({ kind }) => kind === 'cancel')
  return isCancel ? 'cancel' : COMMANDS[command.kind].class
}

/** Orders and the engine's own commands are answered once they are in the journal; what else clients send is read from the tables of readers afterwards. */
const ANSWERED_AT_ONCE: ReadonlySet<CommandKind> = new Set([
  'orders',
  'cancel_all',
  'cancel_all_step',
  'dry_run',
  'admission_input',
  'account_state',
  'hold_connections',
  'end_connections',
])

/** Whether the sender reads from the tables what the command has changed. */
export const isReadBack = ({ kind }: ExchangeCommand): boolean =>
  COMMANDS[kind].roles.length > 0 && !ANSWERED_AT_ONCE.has(kind)

/** The account whose commands take turns with those of other accounts; null if the command is of no account. */
export const accountOf = (command: ExchangeCommand): number | null =>
  'userId' in command ? command.userId : null

/** Markets that the command names. */
export function marketsOf(command: ExchangeCommand): readonly MarketId[] {
  switch (command.kind) {
    case 'turn':
      return [command.turn.marketId]
    case 'orders':
      return [
        ...new Set(command.items.flatMap((item) => (item.kind === 'place' ? [item.order.marketId] : []))),
      ]
    case 'adjust':
    case 'update_funding':
    case 'finalize':
    case 'adjustments_signed':
    case 'adjustments_submitted':
    case 'fail_adjustment':
    case 'account_state':
      return [command.marketId]
    case 'void':
    case 'restart_queue':
      return [command.spec.marketId]
    default:
      return []
  }
}
