/** The chain over JSON-RPC: signs calls, sends transactions, reads receipts. */
import { Interface, Transaction } from 'ethers'
import { windowEndOf } from '../../domain/risk/wind-down.ts'
import type { Culprit } from '../../domain/settlement/void-batch.ts'
import { type Address, type Millis, maxOf, type Seconds } from '../../domain/units.ts'
import { createSend, RpcError, type Send } from '../../service/json-rpc.ts'
import type { KeySource } from '../../service/keys/key-source.ts'
import { signTransaction } from '../../service/transaction-bytes.ts'
import { AccountManager__factory } from '../../typechain-types/factories/AccountManager__factory.ts'
import { Forwarder__factory } from '../../typechain-types/factories/Forwarder__factory.ts'
import { IIsolatedTrader__factory } from '../../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'
import { IMarginBank__factory } from '../../typechain-types/factories/interfaces/IMarginBank__factory.ts'
import { ISignedPriceOracle__factory } from '../../typechain-types/factories/interfaces/ISignedPriceOracle__factory.ts'
import type { Call, Chain, Fee, Receipt, SendResult, Signer } from '../ports.ts'

const TRADER = IIsolatedTrader__factory.createInterface()
const BANK = IMarginBank__factory.createInterface()
const ORACLE = ISignedPriceOracle__factory.createInterface()
const FREEZE_REQUESTED = TRADER.getEvent('FreezeRequested').topicHash

/** The chain of the node. */
export const readChainId = async (url: string, timeoutMs: number): Promise<number> =>
  Number(await createSend(url, timeoutMs)<string>('eth_chainId', []))

const quantity = (value: number | bigint): string => `0x${value.toString(16)}`

// ---------------------------------------------------------------------- sending

/** The pool contains the transaction, or another transaction with its nonce. */
const KNOWN = /already known|known transaction|already imported|underpriced/i
/** The transaction, or another transaction with its nonce, is mined. */
const NONCE_USED = /nonce too low|already been used/i
/** The transaction cannot have entered the pool. */
const REJECTED =
  /insufficient funds|intrinsic gas|exceeds? (the )?(block )?gas limit|oversized|less than block base fee|invalid sender|chain ?id|decode/i
const NO_SUCH_METHOD = -32601
/** The call itself failed, not the request to the node. */
const REVERTED = /revert/i

/** In order of preference: the first two respond with the receipt. */
const SENDERS = [
  'eth_sendRawTransactionSync',
  'realtime_sendRawTransaction',
  'eth_sendRawTransaction',
] as const

interface RpcReceipt {
  readonly transactionHash: string
  readonly blockNumber: string | null
  readonly blockHash: string | null
  readonly status: string
  readonly gasUsed?: string
}

const toReceipt = ({ transactionHash, blockNumber, blockHash, status, gasUsed }: RpcReceipt): Receipt => ({
  hash: transactionHash,
  block: blockNumber === null || blockHash === null ? null : Number(blockNumber),
  succeeded: status === '0x1',
  gasUsed: gasUsed === undefined ? null : BigInt(gasUsed),
})

const isReceipt = (answer: unknown): answer is RpcReceipt =>
  typeof answer === 'object' && answer !== null && 'status' in answer

export function classify(error: unknown): SendResult {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof RpcError)) return { kind: 'unknown', error: message }
  if (NONCE_USED.test(message)) return { kind: 'nonce_used', error: message }
  if (KNOWN.test(message)) return { kind: 'known', error: message }
  return { kind: REJECTED.test(message) ? 'rejected' : 'unknown', error: message }
}

/** Sends by the first method that the node supports, and keeps that method. */
function createSender(request: Send, timeoutMs: number): Chain['send'] {
  let method = 0
  return async (raw) => {
    for (;;) {
      try {
        const answer = await request<unknown>(SENDERS[method] as string, [raw], timeoutMs)
        return isReceipt(answer) ? { kind: 'receipt', receipt: toReceipt(answer) } : { kind: 'sent' }
      } catch (error) {
        const isMissing = error instanceof RpcError && error.code === NO_SUCH_METHOD
        if (!isMissing || method === SENDERS.length - 1) return classify(error)
        method++
      }
    }
  }
}

// ---------------------------------------------------------------------- reverts

const ERRORS = new Interface(
  [
    ...[...IIsolatedTrader__factory.abi, ...IMarginBank__factory.abi, ...ISignedPriceOracle__factory.abi],
    ...[...AccountManager__factory.abi, ...Forwarder__factory.abi],
  ].filter(({ type }) => type === 'error'),
)

/** Errors without an account or an order whose cause is known. */
const KNOWN_CAUSES: Readonly<Record<string, 'late' | 'early'>> = {
  AsOfStale: 'late',
  AsOfAhead: 'early',
}

/** Custom errors start with their culprit: an order's maker and salt, or an account. */
export function culpritOf(data: string): Culprit {
  const found = data.length < 10 ? null : ERRORS.parseError(data)
  if (found === null) return { kind: 'unnamed', error: data.slice(0, 10) }
  const { name, args, fragment } = found
  const error = `${name}(${args.map(String).join(', ')})`
  const [first, second] = fragment.inputs.map((input) => input.name)
  if (first === undefined) return { kind: KNOWN_CAUSES[name] ?? 'unnamed', error }
  const maker = String(args[0]).toLowerCase() as Address
  if (first === 'maker' && second === 'salt') return { kind: 'order', maker, salt: BigInt(args[1]), error }
  if (first === 'account') return { kind: 'account', maker, error }
  return { kind: KNOWN_CAUSES[name] ?? 'unnamed', error }
}

/** Nodes nest the revert data at different depths. */
function errorData(error: RpcError): string {
  const { data } = error
  if (typeof data === 'string') return data
  const inner = (data as { data?: unknown } | undefined)?.data
  return typeof inner === 'string' ? inner : '0x'
}

/**
 * Revert data of a mined transaction, traced at its place in its block; null without a trace, because gateways reject
 * the method in many ways. The next call reports a node that is down.
 */
async function tracedRevert(request: Send, hash: string): Promise<string | null> {
  try {
    const options = { tracer: 'callTracer', tracerConfig: { onlyTopCall: true } }
    const { error, output } = await request<{ error?: string; output?: string }>('debug_traceTransaction', [
      hash,
      options,
    ])
    return error === undefined ? null : (output ?? '0x')
  } catch {
    return null
  }
}

/** Without a trace, a later transaction of the same block can hide the culprit: the call runs on the state after the block. */
async function findCulprit(request: Send, raw: `0x${string}`, block: number): Promise<Culprit> {
  const { hash, from, to, data, gasLimit, value } = Transaction.from(raw)
  const traced = await tracedRevert(request, hash as string)
  if (traced !== null) return culpritOf(traced)
  const call = { from, to, data, gas: quantity(gasLimit), value: quantity(value) }
  try {
    await request('eth_call', [call, quantity(block)])
    return { kind: 'unnamed', error: 'no revert in the simulation' }
  } catch (error) {
    if (!(error instanceof RpcError)) throw error
    return culpritOf(errorData(error))
  }
}

// ---------------------------------------------------------------------- chain

export interface ChainOptions {
  readonly url: string
  readonly chainId: number
  readonly requestTimeoutMs: number
  readonly sendTimeoutMs: number
}

export function createChain({ url, chainId, requestTimeoutMs, sendTimeoutMs }: ChainOptions): Chain {
  const request = createSend(url, requestTimeoutMs)

  /** The struct that a view of a market without arguments returns. */
  async function view(
    trader: string,
    name: 'clock' | 'windDown' | 'parameters',
  ): Promise<Record<string, bigint>> {
    const data = TRADER.encodeFunctionData(name as 'clock')
    const answer = await request<string>('eth_call', [{ to: trader, data }, 'latest'])
    return TRADER.decodeFunctionResult(name as 'clock', answer)[0]
  }

  async function read(contract: Interface, to: string, name: string): Promise<unknown> {
    const answer = await request<string>('eth_call', [
      { to, data: contract.encodeFunctionData(name) },
      'latest',
    ])
    return contract.decodeFunctionResult(name, answer)[0]
  }

  return {
    chainId,
    send: createSender(request, sendTimeoutMs),
    async head() {
      type Block = { number: string; timestamp: string; baseFeePerGas?: string }
      const block = await request<Block>('eth_getBlockByNumber', ['latest', false])
      return {
        block: Number(block.number),
        time: (Number(block.timestamp) * 1000) as Millis,
        baseFee: BigInt(block.baseFeePerGas ?? 0),
      }
    },
    async receipt(hash) {
      const receipt = await request<RpcReceipt | null>('eth_getTransactionReceipt', [hash])
      return receipt === null ? null : toReceipt(receipt)
    },
    transactionCount: async (address, block) =>
      Number(
        await request('eth_getTransactionCount', [address, block === undefined ? 'latest' : quantity(block)]),
      ),
    balance: async (address) => BigInt(await request<string>('eth_getBalance', [address, 'latest'])),
    findCulprit: (raw, block) => findCulprit(request, raw, block),
    async dryRun({ to, data, value, gas }, from) {
      try {
        const call = { from, to, data, gas: quantity(gas), value: quantity(value) }
        await request('eth_call', [call, 'latest'])
        return null
      } catch (error) {
        if (!(error instanceof RpcError) || !REVERTED.test(error.message)) throw error
        return culpritOf(errorData(error)).error
      }
    },
    async lastActionId(trader) {
      const { actionId } = await view(trader, 'clock')
      return Number(actionId)
    },
    async liveness(trader) {
      const { asOf = 0n } = await view(trader, 'clock')
      const { heartbeatAt = 0n, requestedAt = 0n, endedAt = 0n } = await view(trader, 'windDown')
      const aliveAt = maxOf(asOf, heartbeatAt)
      return {
        aliveAt: Number(aliveAt) as Millis,
        isRequested: endedAt === 0n && requestedAt > 0n && requestedAt >= aliveAt,
        requestedAt: Number(requestedAt) as Millis,
        isEnded: endedAt > 0n,
      }
    },
    async freezeRequests(traders, from, to) {
      const range = { fromBlock: quantity(from), toBlock: quantity(to) }
      const logs = await request<{ address: string }[]>('eth_getLogs', [
        { address: traders, topics: [FREEZE_REQUESTED], ...range },
      ])
      return new Set(logs.map(({ address }) => address.toLowerCase() as Address))
    },
    async windDown(trader) {
      const { endedAt = 0n, haircutFixed } = await view(trader, 'windDown')
      const bank = (await read(TRADER, trader, 'bank')) as string
      const { endsAt } = (await read(BANK, bank, 'lastPause')) as { endsAt: bigint }
      const ended = Number(endedAt) as Millis
      return {
        endedAt: ended,
        windowEnd: windowEndOf(ended, Boolean(haircutFixed), Number(endsAt) as Seconds),
      }
    },
    async isBankPaused(trader) {
      const bank = (await read(TRADER, trader, 'bank')) as string
      return (await read(BANK, bank, 'isPaused')) as boolean
    },
    async feedSigners(oracle, feedId, observedAt) {
      const data = ORACLE.encodeFunctionData('feedAt', [feedId, observedAt])
      const answer = await request<string>('eth_call', [{ to: oracle, data }, 'latest'])
      const [signers, threshold] = ORACLE.decodeFunctionResult('feedAt', answer) as unknown as [
        string[],
        bigint,
      ]
      return {
        signers: new Set(signers.map((each) => each.toLowerCase() as Address)),
        threshold: Number(threshold),
      }
    },
    async reportRules(trader) {
      const { reportMaxAge, moveBase = 0n, moveSlope = 0n, moveWindow } = await view(trader, 'parameters')
      return {
        ...{ maxAge: Number(reportMaxAge) as Millis, moveBase, moveSlope },
        moveWindow: Number(moveWindow) as Millis,
      }
    },
  }
}

export function createSigner(chainId: number, key: KeySource): Signer {
  return {
    address: key.address,
    place: key.place,
    ready: () => key.ready(),
    sign: (call: Call, nonce: number, fee: Fee) =>
      signTransaction({ ...call, ...fee, chainId, nonce }, key.sign),
    replace(raw, fee) {
      const { nonce, to, data, value, gasLimit } = Transaction.from(raw)
      return signTransaction(
        { chainId, nonce, to: to as string, data, value, gas: gasLimit, ...fee },
        key.sign,
      )
    },
    feeOf(raw) {
      const { maxFeePerGas, maxPriorityFeePerGas } = Transaction.from(raw)
      return { maxFeePerGas: maxFeePerGas ?? 0n, maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n }
    },
  }
}
