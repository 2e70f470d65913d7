/**
 * Brings one relayer's signed transactions onto the chain. What was signed is sent until its nonce is used, in its own words or,
 * where it is stuck or dead, replaced at a higher fee; every hash of a nonce is kept, and any of them may win.
 */

import type { Fence } from '../../db/fence.ts'
import { type Millis, maxOf } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Fee, Metrics, Receipt, SendResult, SignedTransaction, Signer } from '../ports.ts'
import type { RelayerLane, RelayerStore, StoredTransaction } from './ports.ts'

export interface DeliveryPolicy {
  /** A transaction that no node has answered for is sent again after this long. */
  readonly resendAfterMs: number
  /** The next transaction in line is replaced where it is not mined after this long. */
  readonly stuckAfterMs: number
  readonly feeCap: bigint
  readonly priorityFee: bigint
}

export interface DeliveryPorts {
  readonly relayers: RelayerStore
  readonly chain: Chain
  readonly signer: Signer
  readonly calls: Calls
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-broadcast'>
  readonly metrics: Metrics
  readonly logger: Logger
  readonly policy: DeliveryPolicy
  readonly fee: () => Fee
  /** Something has happened to a transaction. */
  readonly onNews: () => void
}

/** A nonce whose transaction is to be replaced by nothing, because it could only fail. */
export type IsDead = (nonce: number) => boolean

export const NOTHING = 'nothing'

export class Delivery {
  readonly #ports: DeliveryPorts
  readonly #lane: RelayerLane
  readonly #sending = new Map<string, Promise<void>>()
  #recoveredAt = Number.NEGATIVE_INFINITY

  constructor(ports: DeliveryPorts, lane: RelayerLane) {
    this.#ports = ports
    this.#lane = lane
  }

  /** Sends without waiting for an answer. The answer is recorded when it comes. */
  start(transaction: StoredTransaction): void {
    const { hash } = transaction
    if (this.#sending.has(hash)) return
    const sending = this.#send(transaction)
      .catch((error: unknown) =>
        this.#ports.logger.error({ tx_hash: hash, err: error }, 'the answer was not recorded'),
      )
      .finally(() => {
        this.#sending.delete(hash)
        this.#ports.onNews()
      })
    this.#sending.set(hash, sending)
  }

  /** Resolves when every answer that is under way has come and is recorded. */
  async settled(): Promise<void> {
    await Promise.all(this.#sending.values())
  }

  /** Sends everything again whose nonce the chain does not know as used, in order of nonces, whatever is believed of it. */
  async recover(): Promise<void> {
    const { chain, relayers, clock, logger } = this.#ports
    this.#recoveredAt = clock.now()
    const count = await chain.transactionCount(this.#lane.relayer)
    const unused = await relayers.from(this.#lane, count)
    const lost = unused.filter(({ status }) => status === 'MINED' || status === 'REVERTED')
    if (lost.length > 0) {
      logger.warn(
        { lane: this.#lane.name, tx_hashes: lost.map(({ hash }) => hash) },
        'blocks have left the chain: sending again',
      )
      await relayers.reopen(this.#lane, [...new Set(lost.map(({ nonce }) => nonce))])
    }
    for (const transaction of newestPerNonce(unused)) this.start(transaction)
  }

  /** The same, but not more often than a transaction is sent again. */
  async recoverNowAndThen(): Promise<void> {
    const { clock, policy } = this.#ports
    if (clock.now() - this.#recoveredAt >= policy.resendAfterMs) await this.recover()
  }

  /** Looks after transactions that nobody waits for. */
  async check(fence: Fence, open: readonly StoredTransaction[], isDead: IsDead): Promise<void> {
    const idle = open.filter(({ hash }) => !this.#sending.has(hash))
    if (idle.length === 0) return
    for (const [nonce, hashes] of byNonce(idle)) {
      const receipt = await this.#findReceipt(hashes)
      if (receipt !== null) await this.#record(nonce, receipt, (hashes[0] as StoredTransaction).signedAt)
      else await this.#nudge(fence, hashes, isDead(nonce))
    }
  }

  async #send(transaction: StoredTransaction): Promise<void> {
    const result = await this.#ports.chain.send(transaction.raw)
    this.#ports.killPoint('after-broadcast')
    await this.#note(transaction, result)
  }

  async #note({ hash, nonce, signedAt }: StoredTransaction, result: SendResult): Promise<void> {
    const { relayers, clock, logger } = this.#ports
    if (result.kind === 'receipt') {
      await this.#record(nonce, result.receipt, signedAt)
      return
    }
    const error = result.kind === 'sent' ? null : result.error
    await relayers.noteSend(hash, clock.now(), error)
    const details = { lane: this.#lane.name, tx_hash: hash, nonce, error }
    if (result.kind === 'rejected') logger.error(details, 'a transaction was rejected')
    else if (result.kind === 'unknown')
      logger.warn(details, 'it is not known whether a transaction was taken')
  }

  async #record(nonce: number, receipt: Receipt, signedAt: Millis): Promise<void> {
    const { relayers, clock, metrics, logger } = this.#ports
    await relayers.noteReceipt(this.#lane, nonce, receipt)
    const { hash, block, succeeded } = receipt
    metrics.stage('signed_to_mined', (clock.now() - signedAt) / 1000)
    metrics.transactionEnded(succeeded ? 'mined' : 'reverted')
    logger.info({ lane: this.#lane.name, tx_hash: hash, nonce, block, succeeded }, 'receipt')
    this.#ports.onNews()
  }

  async #findReceipt(hashes: readonly StoredTransaction[]): Promise<Receipt | null> {
    for (const { hash } of hashes) {
      const receipt = await this.#ports.chain.receipt(hash)
      if (receipt !== null) return receipt
    }
    return null
  }

  /** `hashes`: all open transactions of one nonce, the oldest first. */
  async #nudge(fence: Fence, hashes: readonly StoredTransaction[], isDead: boolean): Promise<void> {
    const newest = hashes.at(-1) as StoredTransaction
    const now = this.#ports.clock.now()
    const { resendAfterMs, stuckAfterMs } = this.#ports.policy
    const since = (at: Millis | null): number => now - (at ?? newest.signedAt)
    if (since(newest.signedAt) >= stuckAfterMs && (await this.#isNext(newest.nonce))) {
      await this.#replace(fence, newest, isDead)
    } else if (since(newest.broadcastAt) >= resendAfterMs || newest.status === 'SIGNED') this.start(newest)
  }

  async #isNext(nonce: number): Promise<boolean> {
    return (await this.#ports.chain.transactionCount(this.#lane.relayer)) === nonce
  }

  async #replace(fence: Fence, old: StoredTransaction, isDead: boolean): Promise<void> {
    const { signer, calls, relayers, clock, logger, policy } = this.#ports
    const fee = raised(signer.feeOf(old.raw), this.#ports.fee())
    const details = { lane: this.#lane.name, tx_hash: old.hash, nonce: old.nonce }
    if (fee.maxFeePerGas > policy.feeCap) {
      logger.error(details, 'a transaction is stuck and its fee at the cap')
      this.start(old)
      return
    }
    const empties = isDead && old.purpose !== NOTHING
    const signed: SignedTransaction = empties
      ? signer.sign(calls.nothing(this.#lane.relayer), old.nonce, fee)
      : signer.replace(old.raw, fee)
    const purpose = empties ? NOTHING : old.purpose
    const transaction = { ...signed, nonce: old.nonce, purpose, signedAt: clock.now() }
    await relayers.addReplacement(fence, this.#lane, transaction)
    logger.warn({ ...details, replacement: signed.hash, purpose }, 'a stuck transaction is replaced')
    this.start({ ...transaction, status: 'SIGNED', block: null, error: null, broadcastAt: null })
  }
}

/** Nodes take a replacement whose both fees are a tenth higher; an eighth leaves room for rounding. */
function raised(old: Fee, now: Fee): Fee {
  const eighthMore = (fee: bigint): bigint => fee + fee / 8n + 1n
  return {
    maxFeePerGas: maxOf(eighthMore(old.maxFeePerGas), now.maxFeePerGas),
    maxPriorityFeePerGas: maxOf(eighthMore(old.maxPriorityFeePerGas), now.maxPriorityFeePerGas),
  }
}

function byNonce(transactions: readonly StoredTransaction[]): Map<number, StoredTransaction[]> {
  const groups = new Map<number, StoredTransaction[]>()
  for (const transaction of transactions) {
    const group = groups.get(transaction.nonce)
    if (group === undefined) groups.set(transaction.nonce, [transaction])
    else group.push(transaction)
  }
  return groups
}

const newestPerNonce = (transactions: readonly StoredTransaction[]): StoredTransaction[] =>
  [...byNonce(transactions).values()].map((group) => group.at(-1) as StoredTransaction)
