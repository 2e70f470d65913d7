/** Executes adjustments that the api has accepted: signs, stores and sends them, and ends attempts that will not be mined. See README.md. */
import { type Fence, LeaseLost } from '../../db/fence.ts'
import { reportRulesFor } from '../../domain/market/in-force.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { decideSigning, isOutdated, type SigningDecision } from '../../domain/positions/adjustment-signing.ts'
import type { ReportRules } from '../../domain/prices/report.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Call, Calls, Chain, Fee, Signer } from '../ports.ts'
import type { Delivery } from '../relayer/delivery.ts'
import type { IsDead } from '../relayer/key-delivery.ts'
import type { RelayerLane, RelayerStore, StoredTransaction } from '../relayer/ports.ts'
import { isOpen, isSameNonce, NOOP_PURPOSE } from '../relayer/stored-transaction.ts'
import {
  type AdjustmentStore,
  type AttemptFailure,
  type AttemptTransaction,
  type NewSignature,
  type OpenAttempt,
  UNMINED,
} from './ports.ts'

export interface AdjustmentPorts {
  readonly adjustments: AdjustmentStore
  readonly relayers: Pick<RelayerStore, 'reserve' | 'open'>
  readonly delivery: Pick<Delivery, 'start' | 'check' | 'recoverIfDue' | 'refresh'>
  readonly chain: Pick<Chain, 'head' | 'findCulprit' | 'reportRules'>
  readonly signer: Signer
  readonly calls: Pick<Calls, 'adjust'>
  readonly clock: Clock
  readonly logger: Logger
  readonly killPoint: KillPointHook<
    'after-adjustment-reserved' | 'after-adjustment-signed' | 'after-adjustment-submitted'
  >
  readonly fee: () => Fee
  readonly headTime: () => Millis | null
  readonly markets: () => Promise<readonly MarketSpec[]>
  /** Blocks on top of a revert before it counts as final. */
  readonly confirmations: number
}

/** Maximum attempts per pass, oldest first. */
const ATTEMPTS_PER_PASS = 500
/** Attempts whose state is read at the same time. */
const READ_AT_ONCE = 8
/** Maximum attempts that a pass signs, because the transaction that stores them locks the journal of their market. */
const SIGNED_PER_PASS = 32
/** The receipt of a transaction that the indexer does not record within this time is fetched again. */
const INDEXER_LATE_MS = 2_000

/** `waiting`: attempts are in flight, or transactions of the lane are open. */
type Progress = 'idle' | 'waiting'

const FOREIGN: AttemptFailure = { ...UNMINED, reason: 'nonce used by a foreign transaction' }
const NO_EVENT: AttemptFailure = {
  status: 'RECEIPT_RECONCILIATION_FAILED',
  kind: 'no_account_adjustment_position_updates',
  reason: 'the transaction succeeded without an adjustment event',
}

/**
 * Open transactions of the lane to send until their nonce is used. For an aborted attempt, only the no-op stored by
 * nonce recovery is resent.
 */
function followed(
  open: readonly StoredTransaction[],
  sent: readonly OpenAttempt[],
): readonly StoredTransaction[] {
  const key = ({ relayer, nonce }: { readonly relayer: string | null; readonly nonce: number | null }) =>
    `${relayer}-${nonce}`
  const nonces = new Set([
    ...sent.map(nonceOf).map(key),
    ...open.filter(({ purpose }) => purpose === NOOP_PURPOSE).map(key),
  ])
  return open.filter((transaction) => nonces.has(key(transaction)))
}

const nonceOf = ({ relayer, relayerNonce }: OpenAttempt) => ({ relayer, nonce: relayerNonce })

/** An attempt that is to be signed, and the transaction that executes it. */
interface ReadyAttempt {
  readonly attempt: OpenAttempt
  readonly decision: Extract<SigningDecision, { kind: 'sign' }>
  readonly call: Call
}

export class Adjustments {
  readonly #ports: AdjustmentPorts
  readonly #lane: RelayerLane
  /** The contracts' rules for reports, fetched once. */
  readonly #rules = new Map<MarketId, ReportRules>()

  constructor(ports: AdjustmentPorts, lane: RelayerLane) {
    this.#ports = ports
    this.#lane = lane
  }

  /** One pass over the attempts in flight. Safe to repeat: every pass reads the state from the database. */
  async pass(fence: Fence): Promise<Progress> {
    const { adjustments } = this.#ports
    const attempts = await adjustments.open(ATTEMPTS_PER_PASS)
    const sent = attempts.filter(({ relayerNonce }) => relayerNonce !== null)
    const open = await this.#follow(fence, sent)
    const prepared = attempts.filter(({ relayerNonce }) => relayerNonce === null)
    if (prepared.length > 0) await this.#signAll(fence, prepared)
    return attempts.length + open > 0 ? 'waiting' : 'idle'
  }

  // ---------------------------------------------------------------------- signing

  async #signAll(fence: Fence, attempts: readonly OpenAttempt[]): Promise<void> {
    const specs = new Map((await this.#ports.markets()).map((spec) => [spec.marketId, spec]))
    const ready: ReadyAttempt[] = []
    for (let at = 0; at < attempts.length && ready.length < SIGNED_PER_PASS; at += READ_AT_ONCE) {
      const some = attempts.slice(at, at + READ_AT_ONCE)
      const decided = some.map((attempt) => this.#decide(fence, attempt, specs.get(attempt.marketId)))
      ready.push(...(await Promise.all(decided)).filter((one) => one !== null))
    }
    const next = ready.slice(0, SIGNED_PER_PASS)
    for (const ofMarket of Map.groupBy(next, ({ attempt }) => attempt.marketId).values())
      await this.#send(fence, ofMarket).catch((err: unknown) => {
        if (err instanceof LeaseLost) throw err
        const adjustment_ids = ofMarket.map(({ attempt }) => attempt.adjustmentId)
        this.#ports.logger.error({ adjustment_ids, err }, 'sending adjustments failed; will retry')
      })
  }

  /** Null unless the attempt is to be signed now. An attempt without a decision does not delay other attempts. */
  async #decide(
    fence: Fence,
    attempt: OpenAttempt,
    spec: MarketSpec | undefined,
  ): Promise<ReadyAttempt | null> {
    try {
      if (spec === undefined) throw new Error(`market ${attempt.marketId} is not listed`)
      const { signed, createdAt, nonce } = attempt
      const decision = decideSigning({
        ...{ ...(await this.#ports.adjustments.state(attempt)), ...signed, createdAt, nonce, spec },
        ...{ headTime: this.#ports.headTime(), rules: await this.#rulesOf(spec) },
      })
      if (decision.kind === 'sign') {
        const { asOf, report } = decision
        return {
          attempt,
          decision,
          call: this.#ports.calls.adjust(spec, { ...attempt, ...signed, asOf, report }),
        }
      }
      if (decision.kind === 'abort') await this.#fail(fence, attempt, { ...UNMINED, reason: decision.reason })
    } catch (err) {
      if (err instanceof LeaseLost) throw err
      const { adjustmentId: adjustment_id } = attempt
      this.#ports.logger.error({ adjustment_id, err }, 'deciding on an adjustment failed; will retry')
    }
    return null
  }

  /** Signs, stores and sends the attempts of one market. */
  async #send(fence: Fence, ready: readonly ReadyAttempt[]): Promise<void> {
    const { adjustments, relayers, signer, clock, delivery, killPoint, fee } = this.#ports
    const first = await relayers.reserve(this.#lane, fence, ready.length)
    killPoint('after-adjustment-reserved')
    const signatures: NewSignature[] = []
    for (const [at, { attempt, call, decision }] of ready.entries()) {
      const nonce = first + at
      const bytes = await signer.sign(call, nonce, fee())
      const { asOf, maxRemovable } = decision
      signatures.push({ ...bytes, attempt, nonce, signedAt: clock.now(), asOf, maxRemovable })
    }
    const stored = await adjustments.storeSigned(this.#lane, fence, signatures)
    if (stored.length === 0) return
    killPoint('after-adjustment-signed')
    for (const transaction of stored) delivery.start(transaction)
    const attempts = ready.map(({ attempt }) => attempt)
    await adjustments.noteSubmitted(attempts, fence, clock.now())
    killPoint('after-adjustment-submitted')
  }

  async #rulesOf(spec: MarketSpec): Promise<ReportRules | null> {
    const known = this.#rules.get(spec.marketId)
    if (known !== undefined) return known
    const fetched = await this.#ports.chain.reportRules(spec.trader).catch(() => null)
    if (fetched === null) return null
    const rules = reportRulesFor(spec, fetched)
    this.#rules.set(spec.marketId, rules)
    return rules
  }

  // ---------------------------------------------------------------------- following what was sent

  /** Returns how many transactions of the lane are open. */
  async #follow(fence: Fence, sent: readonly OpenAttempt[]): Promise<number> {
    const { adjustments, delivery, clock, relayers } = this.#ports
    const open = await relayers.open(this.#lane)
    const nonces = sent.map(({ relayerNonce }) => relayerNonce as number)
    const transactions = await adjustments.transactions(this.#lane, nonces)
    // After a crash between signing and sending, or between sending and its record.
    const unnoted = sent.filter((one) => one.status === 'SIGNED' && this.#isSent(one, transactions))
    for (const ofMarket of Map.groupBy(unnoted, ({ marketId }) => marketId).values())
      await adjustments.noteSubmitted(ofMarket, fence, clock.now())
    const headTime = this.#ports.headTime()
    const isDead: IsDead = (nonce) =>
      sent.some((one) => isSameNonce(nonceOf(one), nonce) && isOutdated(one.asOf as Millis, headTime))
    const isRecovered = await delivery.recoverIfDue(fence, sent.length + open.length > 0)
    await delivery.check(fence, followed(open, sent), isDead)
    for (const attempt of sent) {
      const own = transactions.filter((transaction) => isSameNonce(transaction, nonceOf(attempt)))
      await this.#end(fence, attempt, own, isRecovered)
    }
    return open.length
  }

  #isSent(attempt: OpenAttempt, transactions: readonly AttemptTransaction[]): boolean {
    return transactions.some(
      (transaction) => isSameNonce(transaction, nonceOf(attempt)) && transaction.status !== 'SIGNED',
    )
  }

  /** Ends the attempt if its transaction can have no effect any more. The indexer ends attempts that the chain has executed. */
  async #end(
    fence: Fence,
    attempt: OpenAttempt,
    own: readonly AttemptTransaction[],
    isRecovered: boolean,
  ): Promise<void> {
    if (own.some(isOpen)) return
    const used = own.find(({ status }) => status === 'MINED' || status === 'REVERTED')
    if (used === undefined) {
      await this.#fail(fence, attempt, FOREIGN)
      return
    }
    const isExecuted = used.status === 'MINED' && used.purpose !== NOOP_PURPOSE
    if (isExecuted && !used.isIngested) {
      const isLate = elapsed(this.#ports.clock, used.signedAt) > INDEXER_LATE_MS
      if (isLate && isRecovered) await this.#ports.delivery.refresh(used)
      return
    }
    if (!(await this.#isFinal(used))) return
    if (isExecuted) await this.#fail(fence, attempt, NO_EVENT)
    else if (used.status === 'REVERTED') await this.#fail(fence, attempt, await this.#revertOf(used))
    else await this.#fail(fence, attempt, UNMINED)
  }

  /** True if the transaction's present block has enough confirmations. */
  async #isFinal(transaction: AttemptTransaction): Promise<boolean> {
    const { delivery, chain, confirmations } = this.#ports
    const block = (await delivery.refresh(transaction))?.block ?? null
    return block !== null && (await chain.head()).block >= block + confirmations
  }

  async #revertOf({ raw, block }: AttemptTransaction): Promise<AttemptFailure> {
    const { error } = await this.#ports.chain.findCulprit(raw, block as number)
    return { status: 'ABORTED', kind: null, reason: error }
  }

  async #fail(fence: Fence, attempt: OpenAttempt, failure: AttemptFailure): Promise<void> {
    const { adjustments, clock, logger } = this.#ports
    await adjustments.fail(attempt, fence, failure, clock.now())
    const { adjustmentId, marketId } = attempt
    const details = { adjustment_id: adjustmentId, market_id: marketId, reason: failure.reason }
    if (failure.kind === null) logger.info(details, 'adjustment aborted')
    else logger.error({ ...details, failure_kind: failure.kind }, 'adjustment executed without its event')
  }
}
