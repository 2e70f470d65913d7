/** Sends contract calls from the trader's account sequentially, and waits for their receipts. */
import { ClearbatchError } from '../errors.ts'
import type { Signer } from '../signers/signer.ts'
import { type Rpc, RpcError } from './rpc.ts'
import { transactionHash } from './transaction.ts'

export interface Call {
  readonly to: string
  readonly data: string
  /** Name in error messages, for example `deposit`. */
  readonly name: string
}

/** Gas limit in per cent of the estimate, because the state can change until the transaction is mined. */
const GAS_MARGIN = 130n
const SEND_ATTEMPTS = 5

export class TransactionSender {
  readonly #rpc: Rpc
  readonly #signer: Signer
  readonly #chainId: number

  /** `chainId`: chain of the exchange. */
  constructor(rpc: Rpc, signer: Signer, chainId: number) {
    this.#rpc = rpc
    this.#signer = signer
    this.#chainId = chainId
  }

  /** Throws before signing if the node belongs to another chain. */
  async checkChain(): Promise<void> {
    const received = await this.#rpc.chainId()
    if (received !== this.#chainId)
      throw new Error(
        `rpcUrl is a node of chain ${received}; the exchange is on chain ${this.#chainId}: pass a node of that chain`,
      )
  }

  /** Returns the hash of the mined transaction. */
  async send(call: Call): Promise<string> {
    const { sendTransaction } = this.#signer
    const { to, data } = call
    const hash =
      sendTransaction === undefined
        ? await this.#sendRaw(call)
        : await sendTransaction.call(this.#signer, { chainId: this.#chainId, to, data })
    const { status } = await this.#rpc.receipt(hash)
    if (BigInt(status) === 1n) return hash
    throw new Error(`${call.name} was reverted: transaction ${hash} has changed nothing`)
  }

  async #sendRaw(call: Call): Promise<string> {
    const { signTransaction, address } = this.#signer
    if (signTransaction === undefined)
      throw new TypeError('this call needs a signer with signTransaction or sendTransaction')
    const rpc = this.#rpc
    const [nonce, gas, block, tip] = await Promise.all([
      rpc.number('eth_getTransactionCount', address, 'pending'),
      this.#estimate(call),
      rpc.call<{ baseFeePerGas?: string }>('eth_getBlockByNumber', 'latest', false),
      rpc.number('eth_maxPriorityFeePerGas').catch(() => 0n),
    ])
    const raw = await signTransaction.call(this.#signer, {
      chainId: this.#chainId,
      nonce: Number(nonce),
      maxPriorityFeePerGas: tip,
      maxFeePerGas: 2n * BigInt(block.baseFeePerGas ?? '0x0') + tip,
      gas: (gas * GAS_MARGIN) / 100n,
      to: call.to,
      data: call.data,
    })
    await this.#publish(raw)
    return transactionHash(raw)
  }

  async #estimate({ to, data, name }: Call): Promise<bigint> {
    try {
      return await this.#rpc.number('eth_estimateGas', { from: this.#signer.address, to, data })
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      throw new Error(
        `${name} would be reverted, so nothing was sent: ${error.message}${reasonOf(error.data)}`,
      )
    }
  }

  /**
   * Publishes a raw transaction. It is sent again after a lost response, because equal bytes are the same transaction.
   */
  async #publish(raw: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#rpc.call('eth_sendRawTransaction', raw)
        return
      } catch (error) {
        // After a lost response the node may know or have mined the transaction; its receipt decides.
        if (error instanceof RpcError && attempt > 1) return
        if (!(error instanceof ClearbatchError)) throw error
        if (attempt === SEND_ATTEMPTS) return
        await new Promise((resolve) => setTimeout(resolve, 200 * attempt))
      }
    }
  }
}

const reasonOf = (data: unknown): string => (typeof data === 'string' && data !== '0x' ? ` (${data})` : '')
