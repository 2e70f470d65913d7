/**
 * Sends the signed transactions of one relayer key until each nonce is used. It replaces stuck transactions at a higher
 * fee; without the private key it only sends stored bytes again.
 */

import type { Fence } from '../../db/fence.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain, Fee, Metrics, Receipt, SendResult, SignedTransaction, Signer } from '../ports.ts'
import { type FeePolicy, raiseFee } from './fee.ts'
import { restoreNonces } from './nonces.ts'
import type { RelayerLane, RelayerStore, StoredTransaction } from './ports.ts'
import { byNonce, isForgettable, NOOP_PURPOSE } from './stored-transaction.ts'
import type { TransactionSpans } from './transaction-spans.ts'

export interface DeliveryPolicy extends FeePolicy {
  /** A transaction without a response of the node is sent again after this time. */
  readonly resendAfterMs: number
  /** The transaction with the lowest open nonce is replaced if it is not mined within this time. */
  readonly stuckAfterMs: number
}

export interface KeyDeliveryPorts {
  readonly relayers: RelayerStore
  readonly chain: Chain
  /** Null for a former key of the lane that the keeper no longer has. */
  readonly signer: Signer | null
  readonly calls: Calls
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-broadcast'>
  readonly metrics: Metrics
  readonly logger: Logger
  readonly policy: DeliveryPolicy
  /** Absent or null: no spans. */
  readonly transactionSpans?: TransactionSpans | null
  /** Blocks on top of a foreign transaction before its nonce counts as used. */
  readonly confirmations: number
  readonly fee: () => Fee
  /** The state of a transaction has changed. */
  readonly onChange: () => void
  /** A transaction that does more than use its nonce has a receipt. */
  readonly onEnded?: (succeeded: boolean) => void
}

/** True if the transactions of the nonce could only revert, so that a no-op replaces them. */
export type IsDead = (nonce: Pick<StoredTransaction, 'relayer' | 'nonce'>) => boolean

/** Interval of the comparison with the chain's nonces while no transaction is open. */
const IDLE_RECOVERY_MS = 5000

/** The transaction of the nonce that the receipt is of. */
const mined = (own: readonly StoredTransaction[], { hash }: Receipt): StoredTransaction =>
  own.find((transaction) => transaction.hash === hash) ?? (own[0] as StoredTransaction)

export class KeyDelivery {
  readonly #ports: KeyDeliveryPorts
  readonly #lane: RelayerLane
  readonly #sending = new Map<string, Promise<void>>()
  #recoveredAt = Number.NEGATIVE_INFINITY
  /** The node has responded that a nonce is used, and the nonces have not been compared since. */
  #isNonceUsed = false

  constructor(ports: KeyDeliveryPorts, lane: RelayerLane) {
    this.#ports = ports
    this.#lane = lane
  }

  /** Sends in the background. The response is recorded when it arrives. */
  start(transaction: StoredTransaction): void {
    const { hash } = transaction
    if (this.#sending.has(hash)) return
    const sending = this.#send(transaction)
      .catch((error: unknown) =>
        this.#ports.logger.error(
          { tx_hash: hash, err: error },
          'recording the response to a transaction failed',
        ),
      )
      .finally(() => {
        this.#sending.delete(hash)
        this.#ports.onChange()
      })
    this.#sending.set(hash, sending)
  }

  /** Resolves when the response to every send in flight is recorded. */
  async settled(): Promise<void> {
    await Promise.all(this.#sending.values())
  }

  /** Compares the lane's nonces with the chain's, and sends what has left the chain or fills a nonce. */
  async recover(fence: Fence): Promise<void> {
    this.#recoveredAt = this.#ports.clock.now()
    this.#isNonceUsed = false
    for (const transaction of await restoreNonces(this.#ports, this.#lane, fence)) this.start(transaction)
  }

  /** At once if a nonce was used unexpectedly, else at an interval. `isPending`: transactions wait for the chain. */
  isRecoveryDue(isPending: boolean): boolean {
    const { clock, policy } = this.#ports
    const interval = isPending ? policy.resendAfterMs : IDLE_RECOVERY_MS
    return this.#isNonceUsed || elapsed(clock, this.#recoveredAt) >= interval
  }

  /** Fetches receipts of open transactions that have no send in flight; resends or replaces those without a receipt. */
  async check(fence: Fence, open: readonly StoredTransaction[], isDead: IsDead): Promise<void> {
    for (const [nonce, all] of byNonce(open)) {
      const idle = all.filter(({ hash }) => !this.#sending.has(hash))
      if (idle.length === 0) continue
      const receipt = await this.#findReceipt(idle)
      if (receipt !== null) await this.#record(mined(idle, receipt), receipt)
      else if (idle.length === all.length && (await this.#isForeign(nonce, all)))
        await this.#giveUp(nonce, all)
      else await this.#resendOrReplace(fence, idle, isDead(idle[0] as StoredTransaction))
    }
  }

  /**
   * Fetches the receipt again and stores a changed one: a preconfirmed receipt has no block, and a fork changes
   * results. Null unless a block has the transaction with the stored result.
   */
  async refresh({ nonce, hash, status, block }: StoredTransaction): Promise<Receipt | null> {
    const { relayers, chain } = this.#ports
    const receipt = await chain.receipt(hash)
    // The transaction has left the chain and is open again.
    if (receipt === null) await relayers.reopen(this.#lane, [nonce])
    if (receipt === null || receipt.block === null) return null
    const isSame = receipt.succeeded === (status === 'MINED')
    if (!isSame || receipt.block !== block) await relayers.noteReceipt(this.#lane, nonce, receipt)
    return isSame ? receipt : null
  }

  async #send(transaction: StoredTransaction): Promise<void> {
    const spans = this.#ports.transactionSpans
    const startedAt = spans?.now() ?? 0
    const result = await this.#ports.chain.send(transaction.raw)
    spans?.sent(transaction, startedAt, result.kind)
    this.#ports.killPoint('after-broadcast')
    await this.#note(transaction, result)
  }

  async #note(transaction: StoredTransaction, result: SendResult): Promise<void> {
    const { hash, nonce } = transaction
    const { relayers, clock, logger } = this.#ports
    if (result.kind === 'receipt') {
      await this.#record(transaction, result.receipt)
      return
    }
    const error = result.kind === 'sent' ? null : result.error
    if (result.kind === 'nonce_used') this.#isNonceUsed = true
    await relayers.noteSend(hash, clock.now(), error)
    const details = { lane: this.#lane.name, tx_hash: hash, nonce, error }
    if (result.kind === 'rejected') logger.error(details, 'transaction rejected by the node')
    else if (result.kind === 'unknown') logger.warn(details, 'transaction sent, result unknown; will retry')
  }

  async #record(transaction: StoredTransaction, receipt: Receipt): Promise<void> {
    const { nonce, purpose, signedAt } = transaction
    const { relayers, clock, metrics, logger, transactionSpans } = this.#ports
    await relayers.noteReceipt(this.#lane, nonce, receipt)
    transactionSpans?.mined(transaction, receipt)
    const { hash, block, succeeded } = receipt
    metrics.stage('signed_to_mined', (clock.now() - signedAt) / 1000)
    metrics.transactionEnded(succeeded ? 'mined' : 'reverted')
    if (purpose !== NOOP_PURPOSE) this.#ports.onEnded?.(succeeded)
    logger.info({ lane: this.#lane.name, tx_hash: hash, nonce, block, succeeded }, 'receipt recorded')
    this.#ports.onChange()
  }

  /**
   * True if a transaction that is not stored has used the nonce, in a confirmed block. Receipts are fetched after the
   * count, so that own transactions mined in between are found.
   */
  async #isForeign(nonce: number, own: readonly StoredTransaction[]): Promise<boolean> {
    if (own.every(({ error }) => error === null)) return false
    const { chain, confirmations } = this.#ports
    const { block } = await chain.head()
    const used = await chain.transactionCount(this.#lane.relayer, Math.max(0, block - confirmations))
    return used > nonce && (await this.#findReceipt(own)) === null
  }

  async #giveUp(nonce: number, own: readonly StoredTransaction[]): Promise<void> {
    const { relayers, logger, onChange } = this.#ports
    const tx_hashes = own.map(({ hash }) => hash)
    logger.error({ lane: this.#lane.name, nonce, tx_hashes }, 'nonce used by a foreign transaction')
    await relayers.noteForeign(this.#lane, nonce)
    onChange()
  }

  /** Stops sending what can have no effect any more, so that a key that is gone holds nothing up. Its receipt no longer matters. */
  async #forget(nonce: number, own: readonly StoredTransaction[]): Promise<void> {
    const { relayers, logger, onChange } = this.#ports
    const tx_hashes = own.map(({ hash }) => hash)
    const details = { lane: this.#lane.name, relayer: this.#lane.relayer, nonce, tx_hashes }
    logger.warn(details, 'transactions of a former relayer key given up')
    await relayers.noteForeign(this.#lane, nonce)
    onChange()
  }

  async #findReceipt(hashes: readonly StoredTransaction[]): Promise<Receipt | null> {
    for (const { hash } of hashes) {
      const receipt = await this.#ports.chain.receipt(hash)
      if (receipt !== null) return receipt
    }
    return null
  }

  /** `hashes`: all open transactions of one nonce, the oldest first. */
  async #resendOrReplace(fence: Fence, hashes: readonly StoredTransaction[], isDead: boolean): Promise<void> {
    const newest = hashes.at(-1) as StoredTransaction
    const { clock, policy } = this.#ports
    const { signedAt, broadcastAt, status, nonce } = newest
    if (this.#ports.signer === null && isForgettable(hashes, isDead, clock)) {
      await this.#forget(nonce, hashes)
      return
    }
    const isStuck = this.#ports.signer !== null && elapsed(clock, signedAt) >= policy.stuckAfterMs
    if (isStuck && (await this.#isNext(nonce))) {
      await this.#replace(fence, newest, isDead)
      return
    }
    const isDue = status === 'SIGNED' || elapsed(clock, broadcastAt ?? signedAt) >= policy.resendAfterMs
    if (isDue) this.start(newest)
  }

  async #isNext(nonce: number): Promise<boolean> {
    return (await this.#ports.chain.transactionCount(this.#lane.relayer)) === nonce
  }

  async #replace(fence: Fence, old: StoredTransaction, isDead: boolean): Promise<void> {
    const { calls, relayers, clock, logger, policy } = this.#ports
    const signer = this.#ports.signer as Signer
    const fee = raiseFee(signer.feeOf(old.raw), this.#ports.fee())
    const details = { lane: this.#lane.name, tx_hash: old.hash, nonce: old.nonce }
    if (fee.maxFeePerGas > policy.feeCap) {
      logger.error(details, 'transaction stuck and its fee at FEE_CAP; sending it again')
      this.start(old)
      return
    }
    const isNoop = isDead && old.purpose !== NOOP_PURPOSE
    const signed: SignedTransaction = isNoop
      ? await signer.sign(calls.noop(this.#lane.relayer), old.nonce, fee)
      : await signer.replace(old.raw, fee)
    const purpose = isNoop ? NOOP_PURPOSE : old.purpose
    const { relayer } = this.#lane
    const transaction = { ...signed, relayer, nonce: old.nonce, purpose, signedAt: clock.now() }
    await relayers.addSigned(fence, this.#lane, transaction)
    logger.warn({ ...details, replacement: signed.hash, purpose }, 'stuck transaction replaced')
    this.start({ ...transaction, status: 'SIGNED', block: null, error: null, broadcastAt: null })
  }
}
