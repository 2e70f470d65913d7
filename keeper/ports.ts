/** Ports that several jobs use: the chain, metrics, the queue of lanes. The ports of one job are in its folder. */

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
  /** How far the system's clock is ahead of the database's. */
  clockSkew(seconds: number): void
}

/** Jobs of relayer lanes. They may be lost, doubled, late or reordered: the work is in Postgres, and a sweep finds it. */
export interface LaneQueue {
  /** Adds a job of the lane unless one waits. Returns at once, whether or not the queue can be reached. */
  add(lane: string): void
  close(): Promise<void>
}

/**
 * `idle`: the lane's work is done. `followed`: another job of this process follows the lane. `elsewhere`: this process does not own the
 * lane's lease, or not any more. `lost`: the queue has lost the job.
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

/** Signs with a relayer's key. The key stays in its source; it may be in another process, so no transaction of the database waits. */
export interface Signer {
  readonly address: Address
  /** Where the key is, for logs. Contains no secret. */
  readonly place: string
  /** Resolves when the key can sign; rejects with the reason that it cannot. */
  ready(): Promise<void>
  sign(call: Call, nonce: number, fee: Fee): Promise<SignedTransaction>
  /** The same transaction with another fee. */
  replace(raw: `0x${string}`, fee: Fee): Promise<SignedTransaction>
  feeOf(raw: `0x${string}`): Fee
}

/** Whether a market's operator is alive, by its contract. */
export interface Liveness {
  /** Of the last action or heartbeat. */
  readonly aliveAt: Millis
  /** A freeze request is in force: neither an action nor a heartbeat is later. */
  readonly isRequested: boolean
  readonly requestedAt: Millis
  readonly isEnded: boolean
}

/** The wind-down of a market, by its contract. */
export interface WindDownState {
  /** 0: the market has not ended. */
  readonly endedAt: Millis
  /** Insolvent accounts can be reported until then; claims are possible after it. */
  readonly windowEnd: Millis
}

export interface Chain {
  readonly chainId: number
  head(): Promise<Head>
  send(raw: `0x${string}`): Promise<SendResult>
  receipt(hash: string): Promise<Receipt | null>
  /** Number of mined transactions of the address, which is its next nonce: at the head, or at the end of `block`. */
  transactionCount(address: Address, block?: number): Promise<number>
  balance(address: Address): Promise<bigint>
  /** The culprit that a reverted transaction's custom error names, found where it reverted, or else on the state after its block. */
  findCulprit(raw: `0x${string}`, block: number): Promise<Culprit>
  /** The error with which the call would revert at the head; null if it would succeed. */
  dryRun(call: Call, from: Address): Promise<string | null>
  /** The number of the market's last action at the head. */
  lastActionId(trader: Address): Promise<number>
  liveness(trader: Address): Promise<Liveness>
  /** The markets among these whose freeze was requested in the blocks from one to another, both included. */
  freezeRequests(traders: readonly Address[], from: number, to: number): Promise<ReadonlySet<Address>>
  /** The wind-down of the market at the head. */
  windDown(trader: Address): Promise<WindDownState>
  /** Whether the market's bank is paused at the head. */
  isBankPaused(trader: Address): Promise<boolean>
  /** The signers of a feed whose signatures the oracle accepts for observations at that time, and how many a report has. */
  feedSigners(
    oracle: Address,
    feedId: FeedId,
    observedAt: Millis,
  ): Promise<{ readonly signers: ReadonlySet<Address>; readonly threshold: number }>
  /** The contract's rules for oracle reports. */
  reportRules(trader: Address): Promise<ReportLimits>
}

/** A request that the forwarder executes for its owner; its value is 0. The forwarder itself has the nonce. */
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

/** One source of a feed. It polls, reads or computes by itself: asking for its latest reading never waits. */
export interface PriceSource extends SourceBounds {
  readonly name: string
  /** The latest reading or the present fault. `last`: the feed's latest report. */
  answer(now: Millis, last: Reading | null): Omit<SourceAnswer, 'source'>
  /** Ends its polling. */
  stop(): void
}

/** A signer of price reports with a key of its own, in this process or in another one. */
export interface ReportSigner {
  readonly name: string
  readonly address: Address
  /** The answers in the order of the requests. Rejects if the signer does not answer in time, or not in form. */
  sign(requests: readonly SigningRequest[], deadlineMs: number): Promise<readonly SigningAnswer[]>
}
