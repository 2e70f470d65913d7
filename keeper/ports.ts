/** What several of the keeper's jobs need: the chain, metrics, wake-ups. What one job needs stands in its folder. */

import type { MarketSpec } from '../domain/market/market.ts'
import type { ReportRules } from '../domain/prices/report.ts'
import type { SettlementPart } from '../domain/settlement/settlement.ts'
import type { Culprit } from '../domain/settlement/void-batch.ts'
import type { Address, MarketId, Millis } from '../domain/units.ts'
import type { QueueRule } from './queues.ts'

export interface Metrics {
  /** Duration of an auction transaction. A skipped auction is not reported. */
  auction(marketId: MarketId, seconds: number): void
  batch(marketId: MarketId, orders: number, parts: number): void
  /** Conditional orders triggered by a mark. */
  triggered(marketId: MarketId, orders: number): void
  /** Time from one stage of a settlement to the next. */
  stage(stage: 'matched_to_signed' | 'signed_to_mined', seconds: number): void
  transactionEnded(outcome: 'mined' | 'reverted'): void
  inFlight(lane: string, transactions: number): void
  queued(lane: string, actions: number): void
  balance(lane: string, wei: bigint): void
  head(block: number, time: Millis): void
}

/** Wake-ups between processes. They may be lost, late or doubled. */
export interface WakeQueues {
  sender<Payload extends object>(rule: QueueRule<Payload>): (payload: Payload) => void
  receiver<Payload extends object>(rule: QueueRule<Payload>, onWake: () => void): { close(): Promise<void> }
  close(): Promise<void>
}

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
}

/** `rejected`: certainly not in the pool. `known`: it or another one with its nonce is. `unknown`: assume that it is. */
export type SendResult =
  | { readonly kind: 'receipt'; readonly receipt: Receipt }
  | { readonly kind: 'sent' }
  | { readonly kind: 'rejected' | 'known' | 'unknown'; readonly error: string }

export interface Head {
  readonly block: number
  readonly time: Millis
  readonly baseFee: bigint
}

/** A relayer's key. It never leaves the adapter. */
export interface Signer {
  readonly address: Address
  sign(call: Call, nonce: number, fee: Fee): SignedTransaction
  /** The same transaction for another fee. */
  replace(raw: `0x${string}`, fee: Fee): SignedTransaction
  feeOf(raw: `0x${string}`): Fee
}

export interface Chain {
  readonly chainId: number
  head(): Promise<Head>
  send(raw: `0x${string}`): Promise<SendResult>
  receipt(hash: string): Promise<Receipt | null>
  /** Transactions of the address that are mined. */
  transactionCount(address: Address): Promise<number>
  balance(address: Address): Promise<bigint>
  /** Whom the error of a reverted transaction names: found by running it again on the block that refused it. */
  blame(raw: `0x${string}`, block: number): Promise<Culprit>
  /** What the market's contract accepts as an oracle report. */
  reportRules(trader: Address): Promise<Omit<ReportRules, 'kind'>>
}

/** The calls that the keeper makes, as the contracts read them. */
export interface Calls {
  settleBatch(spec: MarketSpec, part: SettlementPart): Call
  mint(token: Address, to: Address, amount: bigint): Call
  transfer(to: Address, value: bigint): Call
  /** Uses up a nonce and does nothing else. */
  nothing(self: Address): Call
}
