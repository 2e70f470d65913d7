/** What the keeper's jobs need from the outside, in the words of the exchange. */

import type { Fence } from '../db/fence.ts'
import type { Plan } from '../domain/auction/batch-plan.ts'
import type { Backlog } from '../domain/auction/pipeline.ts'
import type { JournalRow } from '../domain/journal/journal-row.ts'
import type { MarketMode, MarketSpec } from '../domain/market/market.ts'
import type { OpenOrder } from '../domain/orders/open-order.ts'
import type { Funds } from '../domain/orders/rebalance.ts'
import type { Position } from '../domain/positions/position.ts'
import type { ReportRules, UsedReport } from '../domain/prices/report.ts'
import type { OracleReport, SettlementPart } from '../domain/settlement/settlement.ts'
import type { Culprit, VoidedBatch } from '../domain/settlement/void-batch.ts'
import type { Address, MarketId, Millis, Seq, Ticks, UserId } from '../domain/units.ts'
import type { QueueRule } from './queues.ts'

export interface Clock {
  now(): Millis
}

/** Tells where the process is; a kill test ends it there. */
export type Reached = (
  point: 'after-batch-commit' | 'after-signing' | 'after-broadcast' | 'after-switch-market',
) => void

export interface Metrics {
  /** A turn of a market that was not skipped. */
  turn(marketId: MarketId, seconds: number): void
  batch(marketId: MarketId, orders: number, parts: number): void
  /** Conditional orders that a mark has triggered. */
  triggered(marketId: MarketId, orders: number): void
  /** From one stage of a settlement to the next. */
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

export interface Logger {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

// ---------------------------------------------------------------------- auction

export interface JournalEntry {
  readonly seq: number
  readonly row: JournalRow
}

/** What can make a market's next turn differ from its last one. One cheap read, without a lock. */
export interface MarketSnapshot {
  readonly head: number
  readonly mode: MarketMode
  readonly lastBatchId: number
  readonly lastAsOf: Millis
  readonly lastPrice: { readonly price: Ticks; readonly at: Millis } | null
  readonly report: OracleReport | null
  /** The report of the last batch that settles or has settled. */
  readonly usedReport: UsedReport | null
  readonly backlog: Backlog
}

/** A market inside a transaction that holds its shard's lock and a valid lease. */
export interface MarketTransaction {
  readonly peek: MarketSnapshot
  /** Null where they are too many to be worth replaying. */
  rowsAfter(seq: number): Promise<readonly JournalEntry[] | null>
  /** All orders that are open or wait for a trigger, and the matched positions of all accounts that ever had one. */
  loadBook(): Promise<{
    readonly orders: readonly OpenOrder[]
    readonly positions: ReadonlyMap<UserId, Position>
  }>
  matchedPositions(accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Position>>
  lockFunds(accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Funds>>
  orders(orderIds: readonly string[]): Promise<ReadonlyMap<Seq, OpenOrder>>
  /** Every order of the accounts in this market that has not ended. */
  liveOrders(accounts: ReadonlySet<UserId>): Promise<readonly OpenOrder[]>
  /** Partial slots held by live orders, by account. */
  slots(accounts: ReadonlySet<UserId>): Promise<ReadonlyMap<UserId, Set<number>>>
  /** Writes everything of a turn. */
  save(plan: Plan): Promise<void>
}

export interface AuctionStore {
  peek(marketId: MarketId): Promise<MarketSnapshot>
  /** Runs `work` in one transaction; what it writes is committed with it or not at all. */
  turn<T>(marketId: MarketId, fence: Fence, work: (turn: MarketTransaction) => Promise<T>): Promise<T>
}

// ---------------------------------------------------------------------- dead-man switches

/** A dead-man switch that has fired: what the account had open at `firedAt` is to be cancelled. */
export interface FiredSwitch {
  readonly account: UserId
  readonly firedAt: Millis
}

export interface SwitchStore {
  /** Disarms every switch that is due and keeps it as fired. One that is armed anew meanwhile is not due. */
  fire(fence: Fence, now: Millis): Promise<void>
  /** Those that are not seen through, the oldest first, at most some hundreds. */
  fired(): Promise<readonly FiredSwitch[]>
  markets(): Promise<readonly MarketId[]>
  /** Cancels in one market what was accepted before each switch fired. Returns the number of orders. Safe to repeat. */
  cancel(fence: Fence, marketId: MarketId, fired: readonly FiredSwitch[], at: Millis): Promise<number>
  forget(fence: Fence, fired: readonly FiredSwitch[]): Promise<void>
  /** When the next armed switch is due; null where none is armed. */
  nextAt(): Promise<Millis | null>
}

// ---------------------------------------------------------------------- chain

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

// ---------------------------------------------------------------------- relayers

/** One key and its row of nonces. */
export interface RelayerLane {
  readonly name: string
  readonly relayer: Address
  readonly chainId: number
}

export type TransactionStatus = 'SIGNED' | 'BROADCAST' | 'MINED' | 'REVERTED' | 'REPLACED'

export interface StoredTransaction extends SignedTransaction {
  readonly nonce: number
  readonly purpose: string
  readonly status: TransactionStatus
  readonly block: number | null
  /** What the node last answered. */
  readonly error: string | null
  readonly signedAt: Millis
  readonly broadcastAt: Millis | null
}

export interface RelayerStore {
  /** Makes the lane known. `firstNonce` counts only where nothing was ever signed. */
  register(lane: RelayerLane, firstNonce: number): Promise<void>
  /** Not yet in a block, all hashes of a nonce, by nonce and time of signing. */
  open(lane: RelayerLane): Promise<readonly StoredTransaction[]>
  /** Everything signed with this nonce or a later one, whatever has become of it. */
  from(lane: RelayerLane, nonce: number): Promise<readonly StoredTransaction[]>
  /** Keeps another transaction with the nonce of an open one. */
  addReplacement(
    fence: Fence,
    lane: RelayerLane,
    transaction: Pick<StoredTransaction, 'hash' | 'raw' | 'nonce' | 'purpose' | 'signedAt'>,
  ): Promise<void>
  noteSend(hash: string, at: Millis, error: string | null): Promise<void>
  /** Records a receipt: the nonce is used, its other hashes are replaced. Wakes whoever follows the chain. */
  noteReceipt(lane: RelayerLane, nonce: number, receipt: Receipt): Promise<void>
  /** Their block left the chain: they wait for a receipt again. */
  reopen(lane: RelayerLane, nonces: readonly number[]): Promise<void>
}

// ---------------------------------------------------------------------- settlement

/** An action of a market that is not mined yet. */
export interface PendingAction {
  readonly queueNo: number
  readonly batchId: number
  readonly part: number
  readonly asOf: Millis
  readonly status: 'QUEUED' | 'SIGNED' | 'SUBMITTED'
  readonly nonce: number | null
}

export interface RelayerLaneView {
  /** By queue number. */
  readonly actions: readonly PendingAction[]
  /** Every transaction with a nonce of these actions. */
  readonly transactions: readonly StoredTransaction[]
}

/** Signs the part once its numbers are known. Must not wait: it runs inside the transaction that gives the numbers out. */
export type SignPart = (part: SettlementPart, nonce: number) => SignedTransaction

export interface SettlementStore {
  view(marketId: MarketId, lane: RelayerLane): Promise<RelayerLaneView>
  /** Gives the next queued action its number and nonce, signs it and keeps it: one transaction. Null where none is queued. */
  signNext(
    marketId: MarketId,
    lane: RelayerLane,
    fence: Fence,
    now: Millis,
    sign: SignPart,
  ): Promise<StoredTransaction | null>
  /** The part is on its way: tells the market's log. Does nothing the second time. */
  noteSubmitted(marketId: MarketId, fence: Fence, nonce: number, at: Millis): Promise<void>
}

/** A market inside a transaction that holds its shard's lock, a valid lease and its accounts' locks. */
export interface VoidTransaction {
  readonly batches: readonly VoidedBatch[]
  readonly orders: readonly OpenOrder[]
  readonly mined: ReadonlyMap<UserId, Position>
  readonly funds: ReadonlyMap<UserId, Funds>
  /** Whether the last action that reached the chain before these had also reverted without naming anyone. */
  readonly isAfterUnnamed: boolean
  save(voiding: Voided): Promise<void>
}

export interface Voided extends Pick<Plan, 'orders' | 'reserved' | 'rows'> {
  readonly error: string
  readonly isUnnamed: boolean
  /** Stops placements and batches. */
  readonly cancelOnly: boolean
}

export interface VoidStore {
  /** False, without `work` being run, while the indexer has not recorded everything before `fromQueueNo` as mined. */
  turn(
    marketId: MarketId,
    fence: Fence,
    fromQueueNo: number,
    work: (turn: VoidTransaction) => Promise<void>,
  ): Promise<boolean>
}

// ---------------------------------------------------------------------- relay requests

export interface FaucetRequest {
  readonly requestId: number
  readonly to: Address
  /** Test collateral and gas, wei; null where the request names none: the keeper's own amounts. */
  readonly collateral: bigint | null
  readonly gas: bigint | null
}

export interface FaucetStore {
  requested(limit: number): Promise<readonly FaucetRequest[]>
  /** Keeps the transactions of a request, the first of which is the one it is known by: one transaction. */
  sign(
    request: FaucetRequest,
    lane: RelayerLane,
    fence: Fence,
    now: Millis,
    sign: (firstNonce: number) => readonly SignedTransaction[],
  ): Promise<readonly StoredTransaction[]>
  /** Marks requests whose transactions are mined. */
  finish(lane: RelayerLane): Promise<void>
}
