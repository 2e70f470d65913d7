/** Ports shared by several jobs: chain, metrics and lane queue. The ports of one job are in its folder. */

import type { SignableAction } from '../domain/actions/action-rules.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import type { ReportLimits } from '../domain/market/parameters.ts'
import type { Adjustment } from '../domain/positions/adjustment-attempt.ts'
import type { Reading, SourceAnswer, SourceBounds } from '../domain/prices/aggregate.ts'
import type { FeedId } from '../domain/prices/report-hash.ts'
import type { OracleReport } from '../domain/settlement/settlement.ts'
import type { Culprit } from '../domain/settlement/void-batch.ts'
import type { Address, MarketId, Millis, Seconds } from '../domain/units.ts'
import type { SigningAnswer, SigningRequest } from '../service/report-key.ts'

export interface Metrics {
  /** Time from one stage of a settlement to the next. */
  stage(stage: 'matched_to_signed' | 'signed_to_mined', seconds: number): void
  transactionEnded(outcome: 'mined' | 'reverted'): void
  inFlight(lane: string, transactions: number): void
  queued(lane: string, actions: number): void
  balance(lane: string, wei: bigint, at: Millis): void
  head(block: number, time: Millis): void
  freezeRequested(marketId: MarketId): void
  freezePending(marketId: MarketId, isPending: boolean): void
  /** A closed market has no final report. */
  finalReportMissing(marketId: MarketId, isMissing: boolean): void
  /** Time by which the system's clock is ahead of the database's clock. */
  clockSkew(seconds: number): void
}

/**
 * Jobs of relayer lanes. Jobs may be lost, repeated, late or reordered: the work is in Postgres, and a sweep finds it.
 */
export interface LaneQueue {
  /** Adds a job of the lane unless one waits. Returns at once, whether or not the queue can be reached. */
  add(lane: string): void
  close(): Promise<void>
}

/**
 * `idle`: the lane's work is done. `followed`: a later job of this process takes over. `elsewhere`: this process does
 * not hold the lane's lease. `lost`: the queue has lost the job.
 */
export type JobEnd = 'idle' | 'followed' | 'elsewhere' | 'lost'

export interface Call {
  readonly to: Address
  readonly data: `0x${string}`
  readonly value: bigint
  readonly gas: bigint
}

export interface Fee {
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
}

export interface SignedTransaction {
  readonly hash: string
  readonly raw: `0x${string}`
}

export interface Receipt {
  readonly hash: string
  /** Null while only preconfirmed. */
  readonly block: number | null
  readonly succeeded: boolean
  /** Null if the node does not state it. */
  readonly gasUsed?: bigint | null
}

/**
 * `rejected`: not in the pool. `known`: it or another transaction with its nonce is in the pool. `nonce_used`: it or another transaction
 * with its nonce is mined. `unknown`: may be in the pool.
 */
export type SendResult =
  | { readonly kind: 'receipt'; readonly receipt: Receipt }
  | { readonly kind: 'sent' }
  | { readonly kind: 'rejected' | 'known' | 'nonce_used' | 'unknown'; readonly error: string }

export interface Head {
  readonly block: number
  readonly time: Millis
  readonly baseFee: bigint
}

/** Signs with a relayer's key, perhaps in another process. No database transaction may wait for it. */
export interface Signer {
  readonly address: Address
  /** The key's location, for logs. Contains no secret. */
  readonly place: string
  /** Resolves when the key can sign; rejects with the reason if it cannot. */
  ready(): Promise<void>
  sign(call: Call, nonce: number, fee: Fee): Promise<SignedTransaction>
  /** The same transaction with another fee. */
  replace(raw: `0x${string}`, fee: Fee): Promise<SignedTransaction>
  feeOf(raw: `0x${string}`): Fee
}

/** Liveness of a market's operator, from the market's contract. */
export interface Liveness {
  /** Time of the last action or heartbeat. */
  readonly aliveAt: Millis
  /** True if no action or heartbeat followed the last freeze request. */
  readonly isRequested: boolean
  readonly requestedAt: Millis
  readonly isEnded: boolean
}

/** Wind-down of a market, from its contract. */
export interface WindDownState {
  /** 0 while the market has not ended. */
  readonly endedAt: Millis
  /** Insolvent accounts can be reported up to this time; claims are possible afterwards. */
  readonly windowEnd: Millis
}

export interface Chain {
  readonly chainId: number
  head(): Promise<Head>
  send(raw: `0x${string}`): Promise<SendResult>
  receipt(hash: string): Promise<Receipt | null>
  /** Mined transactions of the address, which is its next nonce, at the head or after `block`. */
  transactionCount(address: Address, block?: number): Promise<number>
  balance(address: Address): Promise<bigint>
  /**
   * Culprit in a reverted transaction's custom error, traced where it reverted, or otherwise simulated on the state
   * after its block.
   */
  findCulprit(raw: `0x${string}`, block: number): Promise<Culprit>
  /** Error with which the call would revert at the head; null if it would succeed. */
  dryRun(call: Call, from: Address): Promise<string | null>
  /** The number of the market's last action at the head. */
  lastActionId(trader: Address): Promise<number>
  liveness(trader: Address): Promise<Liveness>
  /** Markets among `traders` with a freeze request in the blocks `from` to `to`, inclusive. */
  freezeRequests(traders: readonly Address[], from: number, to: number): Promise<ReadonlySet<Address>>
  /** The wind-down of the market at the head. */
  windDown(trader: Address): Promise<WindDownState>
  /** Whether the market's bank is paused at the head. */
  isBankPaused(trader: Address): Promise<boolean>
  /**
   * Signers whose signatures the oracle accepts for a feed's observations at that time, and the number of signatures
   * per report.
   */
  feedSigners(
    oracle: Address,
    feedId: FeedId,
    observedAt: Millis,
  ): Promise<{ readonly signers: ReadonlySet<Address>; readonly threshold: number }>
  /** The contract's rules for oracle reports. */
  reportRules(trader: Address): Promise<ReportLimits>
}

/** A request that the forwarder executes for its owner. Its value is 0, and its nonce is the forwarder's own. */
export interface SignedForwardRequest {
  readonly owner: string
  readonly target: string
  readonly gas: number
  readonly deadline: number
  readonly data: string
  readonly signature: string
}

/** A signed adjustment, with the time and the report at which the chain evaluates it. */
export interface ExecutableAdjustment {
  readonly adjustment: Adjustment
  readonly account: Address
  readonly nonce: number
  readonly deadline: Seconds
  readonly signature: string
  readonly asOf: Millis
  readonly report: OracleReport
}

/** Encoded contract calls of the keeper. */
export interface Calls {
  action(spec: MarketSpec, action: SignableAction, actionId: number): Call
  adjust(spec: MarketSpec, adjustment: ExecutableAdjustment): Call
  heartbeat(trader: Address): Call
  submitFinalReport(trader: Address, report: OracleReport): Call
  reportInsolvent(trader: Address, accounts: readonly Address[]): Call
  claim(trader: Address, account: Address): Call
  /** Executes an owner's signed request. Carries enough gas that all of the request's gas can be forwarded. */
  forward(forwarder: Address, request: SignedForwardRequest): Call
  mint(token: Address, to: Address, amount: bigint): Call
  transfer(to: Address, value: bigint): Call
  /** Uses a nonce and does nothing else. */
  noop(self: Address): Call
}

/**
 * One source of a feed. It polls, reads or computes independently, so that its latest reading is available without
 * waiting.
 */
export interface PriceSource extends SourceBounds {
  readonly name: string
  /** Latest reading or current fault. `last`: the feed's latest report. */
  answer(now: Millis, last: Reading | null): Omit<SourceAnswer, 'source'>
  /** Ends its polling. */
  stop(): void
}

/** A signer of price reports with its own key, in this process or another. */
export interface ReportSigner {
  readonly name: string
  readonly address: Address
  /** Answers in the order of the requests. Rejects if the signer answers late or in an invalid form. */
  sign(requests: readonly SigningRequest[], deadlineMs: number): Promise<readonly SigningAnswer[]>
}
