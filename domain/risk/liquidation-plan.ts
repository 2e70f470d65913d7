/**
 * Plans the steps of a market's liquidations in one transaction, by the decisions of `ladder.ts`.
 * The caller passes positions as earlier steps of the transaction leave them.
 */
import type { SingleAction } from '../actions/action.ts'
import type { MarketRow } from '../journal/journal-row.ts'
import type {
  LegEvidence,
  LiquidationChanged,
  LiquidationEvidence,
  LiquidationReason,
  LiquidationStep,
} from '../journal/liquidation-row.ts'
import type { MarketSpec } from '../market/market.ts'
import { closeOrders } from '../orders/close-orders.ts'
import type { OpenOrder } from '../orders/open-order.ts'
import type { Order } from '../orders/order.ts'
import { isClosable, isInBook, unmatched } from '../orders/order-state.ts'
import { exposureOf, LIQUIDATION_BUFFER, ratioOf } from '../positions/margin.ts'
import { marginOf, type Position } from '../positions/position.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type {
  Address,
  FundingIndex,
  Millis,
  OrderHash,
  Quote,
  Seconds,
  Seq,
  Steps,
  UserId,
} from '../units.ts'
import type { Counterparty } from './deleveraging-legs.ts'
import { forcedOrderRow } from './forced-order.ts'
import {
  type LadderInput,
  type LadderStep,
  needsCounterparties,
  nextStep,
  UNFILLED_BATCHES,
} from './ladder.ts'
import type { Backstop } from './liquidation.ts'
import type { ActionOutcome } from './liquidation-outcome.ts'
import {
  afterFailure,
  type LiquidationAction,
  NO_FAILURE,
  type RunningLiquidation,
} from './running-liquidation.ts'

export interface LiquidationTerms {
  /** Specification in force at `asOf`. */
  readonly spec: MarketSpec
  /** `asOf` of the next batch and of the actions. */
  readonly asOf: Millis
  readonly report: OracleReport
  readonly index: FundingIndex
  readonly pauseEndsAt: Seconds
  readonly at: Millis
  /** Sequence of the market's last row before this transaction. */
  readonly head: Seq
  /** Journal head at the market's previous auction. */
  readonly standingSeq: Seq
  /** Number of the last action in the market's queue. */
  readonly queued: number
  readonly hashOf: (order: Order) => OrderHash
}

/**
 * Maximum queued inheritances and deleveragings: each is computed on top of the earlier ones in the queue.
 */
export const MAX_PENDING = 20

export interface LiquidationCase {
  readonly account: UserId
  readonly maker: Address
  /** Running liquidation; null if there is none. */
  readonly running: RunningLiquidation | null
  readonly outcome: ActionOutcome
  /** Matched position after the pending actions. */
  readonly position: Position
  /** The account's orders in the market that have not ended. They end while its liquidation runs. */
  readonly orders: readonly OpenOrder[]
  readonly backstop: { readonly address: Address; readonly state: Backstop } | 'itself' | null
  /** Pool of the market after the pending actions. */
  readonly pool: Quote
  readonly counterparties: () => Iterable<Counterparty>
  readonly userOf: (address: Address) => UserId
}

export type UnrankedCase = Omit<LiquidationCase, 'counterparties'>

/** All writes of one transaction about liquidations. */
export interface LiquidationPlan {
  readonly rows: readonly MarketRow[]
  /** Orders that end or leave the book. */
  readonly orders: readonly OpenOrder[]
  readonly reserved: ReadonlyMap<UserId, Quote>
  readonly actions: readonly SingleAction[]
  readonly running: readonly RunningLiquidation[]
  readonly ended: readonly UserId[]
}

/**
 * Maximum widenings of one forced order. At the narrowest protection (0.1 %) they reach 12 % beyond the reference,
 * at usual widths the band edge. More would only add rows.
 */
export const MOST_WIDENINGS = 40
const KIND_OF = { inherit: 'inherit_position', deleverage: 'deleverage' } as const

interface StepDetails {
  readonly orderId?: string | null
  readonly queueNo?: number | null
}

export class LiquidationPlanner {
  readonly #terms: LiquidationTerms
  readonly #rows: MarketRow[] = []
  readonly #orders: OpenOrder[] = []
  readonly #closed = new Set<string>()
  readonly #reserved = new Map<UserId, Quote>()
  readonly #actions: SingleAction[] = []
  readonly #running: RunningLiquidation[] = []
  readonly #ended: UserId[] = []

  constructor(terms: LiquidationTerms) {
    this.#terms = terms
  }

  /** Number of orders that the plan changes so far. */
  get changes(): number {
    return this.#orders.length + this.#running.length
  }

  plan(): LiquidationPlan {
    return {
      ...{ rows: this.#rows, orders: this.#orders, reserved: this.#reserved, actions: this.#actions },
      ...{ running: this.#running, ended: this.#ended },
    }
  }

  /**
   * Takes the next step of the account's liquidation. Returns the queued action, or null. `hasRoom`: the
   * queue may take an action.
   */
  decide(one: LiquidationCase, hasRoom: boolean): SingleAction | null {
    if (one.outcome === 'pending') return null
    const before = this.#afterAction(one)
    const forced = one.orders.filter((order) => order.forced && isInBook(order))
    const own = forced.find((order) => order.orderId === before?.orderId && isReducing(order, one.position))
    const resting = own === undefined ? (0 as Steps) : unmatched(own)
    const step = this.#nextStep(one, before, resting)
    if (step.kind === 'end') return this.#end(one, before, step.reason)
    if (step.kind === 'grace') return null
    const state = before ?? this.#start(one)
    // Orders that the owner placed since, and forced orders that a voided batch returned to the book.
    this.#closeOrders(one.orders.filter((order) => order !== own))
    switch (step.kind) {
      case 'rest':
        return this.#rest(one, state, resting)
      case 'force':
        return this.#force(one, state, step.steps)
      case 'uncovered':
        return this.#put(before, { ...state, stage: 'waiting' })
      default:
        return this.mayAct(state, KIND_OF[step.kind], hasRoom)
          ? this.#act(one, state, step)
          : this.#keepIf(before, state)
    }
  }

  /**
   * Whether an action of the account can be queued: the queue has room, and no action of this kind failed recently.
   * The cause of a failed inheritance does not affect a deleveraging.
   */
  mayAct(running: RunningLiquidation | null, kind: LiquidationAction, hasRoom: boolean): boolean {
    return hasRoom && (running?.failedKind !== kind || running.retryAt <= this.#terms.at)
  }

  /** Whether the account's next step can be a deleveraging, which needs counterparties. */
  needsCounterparties(one: UnrankedCase): boolean {
    return needsCounterparties(this.#ladderInput(one, one.running, 0 as Steps))
  }

  #nextStep(one: LiquidationCase, before: RunningLiquidation | null, resting: Steps): LadderStep {
    return nextStep({ ...this.#ladderInput(one, before, resting), counterparties: one.counterparties })
  }

  #ladderInput(
    { position, backstop, pool }: UnrankedCase,
    before: RunningLiquidation | null,
    resting: Steps,
  ): Omit<LadderInput, 'counterparties'> {
    const { spec, index, report, asOf, pauseEndsAt } = this.#terms
    return {
      ...{ spec, position, index, oracle: report.price, asOf, pauseEndsAt, pool },
      backstop: backstop === 'itself' ? backstop : (backstop?.state ?? null),
      progress: {
        startSteps: Math.abs(before?.startSize ?? position.size) as Steps,
        resting,
        unfilled: before?.widenings ?? 0,
      },
    }
  }

  /** The liquidation after its single action was mined or failed. */
  #afterAction({ running, outcome, position }: LiquidationCase): RunningLiquidation | null {
    if (running === null || outcome === null || outcome === 'pending') return running
    const waiting = { ...running, stage: 'waiting' as const }
    if (outcome === 'done') return this.#keep({ ...waiting, ...NO_FAILURE })
    const failed = outcome.isOwn ? afterFailure(running, this.#terms.at) : waiting
    this.#note(failed, 'failed', outcome.failed, this.#evidence(position), { queueNo: running.queueNo })
    return this.#keep(failed)
  }

  #start(one: LiquidationCase): RunningLiquidation {
    const { at } = this.#terms
    const number = this.#nextSeq()
    const state: RunningLiquidation = {
      ...{ account: one.account, number, stage: 'waiting', startSize: one.position.size, orderId: null },
      ...{ widenings: 0, resting: 0 as Steps, queueNo: null, ...NO_FAILURE },
      ...{ seenSeq: number, startedAt: at },
    }
    this.#note(state, 'started', 'BELOW_THRESHOLD', this.#evidence(one.position))
    this.#closeOrders(one.orders)
    return state
  }

  /** Counts the batch since the last step, if it filled no step. */
  #rest(one: LiquidationCase, state: RunningLiquidation, resting: Steps): null {
    const { head, standingSeq } = this.#terms
    if (standingSeq < state.seenSeq || state.widenings >= MOST_WIDENINGS) return null
    if (resting !== state.resting) return this.#put(null, { ...state, resting, seenSeq: head })
    const seenSeq = this.#nextSeq()
    const widened = { ...state, widenings: state.widenings + 1, seenSeq }
    this.#note(widened, 'widened', 'UNFILLED', this.#evidence(one.position), { orderId: state.orderId })
    return this.#put(null, widened)
  }

  #force(one: LiquidationCase, state: RunningLiquidation, steps: Steps): null {
    const { spec, at, hashOf } = this.#terms
    const seq = this.#nextSeq()
    const { account, maker } = one
    const row = forcedOrderRow(
      { marketId: spec.marketId, account, maker, size: one.position.size, steps, seq, at },
      hashOf,
    )
    this.#rows.push(row)
    const closing = {
      ...state,
      stage: 'closing' as const,
      orderId: row.order_id,
      widenings: 0,
      resting: steps,
    }
    this.#note(closing, 'forced', 'BELOW_THRESHOLD', this.#evidence(one.position), { orderId: row.order_id })
    return this.#put(null, { ...closing, seenSeq: (this.#nextSeq() - 1) as Seq })
  }

  #act(
    one: LiquidationCase,
    state: RunningLiquidation,
    step: Extract<LadderStep, { kind: 'inherit' | 'deleverage' }>,
  ): SingleAction | null {
    this.#closeOrders(one.orders.filter(({ forced }) => forced))
    const action = this.#actionOf(one, step)
    const queueNo = this.#terms.queued + this.#actions.length + 1
    this.#actions.push(action)
    const isInherited = step.kind === 'inherit'
    const stage = isInherited ? ('inheriting' as const) : ('deleveraging' as const)
    const legs = isInherited ? [] : step.legs.map((leg) => legEvidence(leg, one.userOf))
    const acting = { ...state, stage, queueNo, resting: 0 as Steps }
    const reason = this.#reasonToAct(one.position, state)
    const name = isInherited ? 'inherit_queued' : 'deleverage_queued'
    this.#note(acting, name, reason, this.#evidence(one.position, legs), { queueNo })
    this.#put(null, acting)
    return action
  }

  #actionOf(
    { maker: account, backstop }: LiquidationCase,
    step: Extract<LadderStep, { kind: 'inherit' | 'deleverage' }>,
  ): SingleAction {
    const { asOf, report } = this.#terms
    if (step.kind === 'deleverage') {
      const legs = step.legs.map(({ counterparty, steps }) => ({ counterparty, steps }))
      return { kind: 'deleverage', asOf, account, legs, report }
    }
    const address = (backstop as { readonly address: Address }).address
    return { kind: 'inherit_position', asOf, account, backstop: address, report }
  }

  #reasonToAct(position: Position, state: RunningLiquidation): LiquidationReason {
    const { spec, index, report } = this.#terms
    if (exposureOf(spec, position, index, report.price).equity <= 0n) return 'NO_EQUITY'
    return state.widenings >= UNFILLED_BATCHES ? 'UNFILLED' : 'BELOW_MAINTENANCE'
  }

  #end(one: LiquidationCase, state: RunningLiquidation | null, reason: 'closed' | 'healthy'): null {
    this.#closeOrders(one.orders.filter((order) => order.forced && isInBook(order)))
    if (state === null) return null
    this.#note(state, 'ended', reason === 'closed' ? 'CLOSED' : 'HEALTHY', this.#evidence(one.position))
    this.#ended.push(one.account)
    const kept = this.#running.findIndex(({ account }) => account === one.account)
    if (kept !== -1) this.#running.splice(kept, 1)
    return null
  }

  #closeOrders(orders: readonly OpenOrder[]): void {
    const open = orders.filter((order) => isClosable(order) && !this.#closed.has(order.orderId))
    const { orders: closed, reserved, rows } = closeOrders(open, 'LIQUIDATION', this.#terms.at)
    for (const { orderId } of closed) this.#closed.add(orderId)
    this.#orders.push(...closed)
    this.#rows.push(...rows)
    for (const [account, delta] of reserved)
      this.#reserved.set(account, ((this.#reserved.get(account) ?? 0n) + delta) as Quote)
  }

  /** Sequence of the next row. */
  #nextSeq(): Seq {
    return (this.#terms.head + this.#rows.length + 1) as Seq
  }

  #keep(state: RunningLiquidation): RunningLiquidation {
    const at = this.#running.findIndex(({ account }) => account === state.account)
    if (at === -1) this.#running.push(state)
    else this.#running[at] = state
    return state
  }

  /** Writes the state if it has changed. */
  #put(before: RunningLiquidation | null, state: RunningLiquidation): null {
    if (before === null || before.stage !== state.stage) this.#keep(state)
    return null
  }

  #keepIf(before: RunningLiquidation | null, state: RunningLiquidation): null {
    if (before === null) this.#keep(state)
    return null
  }

  #note(
    state: RunningLiquidation,
    step: LiquidationStep,
    reason: string,
    evidence: LiquidationEvidence,
    details: StepDetails = {},
  ): void {
    this.#rows.push(changedRow(state, { step, reason, evidence, at: this.#terms.at, ...details }))
  }

  #evidence(position: Position, legs: readonly LegEvidence[] = []): LiquidationEvidence {
    const { spec, asOf, report, index } = this.#terms
    const ratio = ratioOf(exposureOf(spec, position, index, report.price))
    return {
      ...{ as_of: asOf, oracle_price: report.price.toString(), oracle_at: report.observedAt },
      ...{ funding_index: index.toString(), size: position.size },
      ...{ entry_notional: position.entryNotional.toString(), margin: marginOf(position, index).toString() },
      ...{ margin_ratio: ratio?.toString() ?? null, threshold: (spec.mmr + LIQUIDATION_BUFFER).toString() },
      legs,
    }
  }
}

const isReducing = ({ side }: OpenOrder, { size }: Position): boolean => (side === 'LONG') === size < 0

interface StepRow extends StepDetails, Pick<LiquidationChanged, 'step' | 'reason' | 'evidence' | 'at'> {}

const changedRow = (
  { number, account, widenings }: RunningLiquidation,
  { step, reason, evidence, at, orderId = null, queueNo = null }: StepRow,
): LiquidationChanged => ({
  ...{ kind: 'liquidation_changed', number, user_id: account, step, reason, order_id: orderId, widenings },
  ...{ queue_no: queueNo, at, evidence },
})

/** Ends the liquidations of a closed market. The close ends its orders. */
export const endedPlan = (running: readonly RunningLiquidation[], at: Millis): LiquidationPlan => ({
  ...{ orders: [], reserved: new Map(), actions: [], running: [] },
  rows: running.map((state) =>
    changedRow(state, { step: 'ended', reason: 'MARKET_CLOSED', evidence: null, at }),
  ),
  ended: running.map(({ account }) => account),
})

const legEvidence = (
  {
    counterparty,
    steps,
    score,
  }: { readonly counterparty: Address; readonly steps: Steps; readonly score: bigint },
  userOf: (address: Address) => UserId,
): LegEvidence => ({ user_id: userOf(counterparty), steps, score: score.toString() })
