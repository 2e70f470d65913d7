/** Reads the settlements of a batch from a node. */
import { toHex } from '../../domain/hex.ts'
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import type { BatchProof, MinedPart } from '../../domain/proof/verify.ts'
import { differences } from '../../domain/proof/wire.ts'
import { decodeSettleBatch } from '../../domain/settlement/decode-settlement.ts'
import { ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
import type { BatchSettled } from '../../domain/settlement/settlement.ts'
import { BATCH_SETTLED_TOPIC, decodeBatchSettled } from '../../domain/settlement/settlement-codec.ts'
import type { Address } from '../../domain/units.ts'
import { encodeCall } from '../chain/calls.ts'
import { Rpc } from '../chain/rpc.ts'
import { wordOf } from '../typed-data.ts'

/** Maximum blocks per event request. */
const RANGE = 1_000
/** Maximum lead of the exchange's clock over block time. */
const SLACK_MS = 60_000
/** A part mined within this time before the proof was read may be missing from the proof. */
const LAG_MS = 10_000
const KINDS = ['perpetual', 'future', 'binary_future']
const SETTLE_BATCH = encodeCall('settleBatch(bytes)')
const WORD_DIGITS = 64

export interface ChainState {
  /** Settlements on chain, by transaction hash. */
  readonly mined: ReadonlyMap<string, MinedPart>
  /**
   * Differences between the stated grid and the market contract, and parts on chain that the proof denies.
   */
  readonly differences: readonly string[]
}

export interface ChainInput {
  readonly url: string
  /** Time of reading the proof; null if unknown, for example for a file. */
  readonly readAt: number | null
  /** Sends the requests to the node; by default the program's own fetch. */
  readonly fetch?: typeof fetch
}

interface Log {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly transactionHash: string
  readonly blockNumber: string
}

interface MinedReceipt {
  readonly to: string | null
  readonly logs: readonly Log[]
}

export async function readSettlements(
  { url, readAt, fetch }: ChainInput,
  { parts }: BatchProof,
  statement: BatchStatement,
): Promise<ChainState> {
  const { market } = statement
  const rpc = new Rpc(url, fetch)
  const chainId = await rpc.chainId()
  const mined = new Map<string, MinedPart>()
  for (const { transaction_hash: hash } of parts) {
    if (hash === null) continue
    const sent = await rpc.call<{ input: string } | null>('eth_getTransactionByHash', hash)
    const receipt = await rpc.call<MinedReceipt | null>('eth_getTransactionReceipt', hash)
    const part = sent === null ? null : argumentOf(sent.input)
    if (receipt === null || part === null) continue
    mined.set(hash, {
      chainId,
      to: String(receipt.to).toLowerCase() as Address,
      sent: decodeSettleBatch(part, market.marketId),
      settled: settledOf(receipt, market),
    })
  }
  const isUnmined = parts.some(({ status }) => status !== 'settled')
  const settled = isUnmined ? await settledParts(rpc, statement, readAt) : []
  const grid = await gridDifferences(rpc, market)
  return { mined, differences: [...grid, ...deniedParts(parts, settled)] }
}

/** Argument bytes of a `settleBatch` call; null for every other call. */
function argumentOf(input: string): `0x${string}` | null {
  if (!input.startsWith(SETTLE_BATCH)) return null
  const words = input.slice(SETTLE_BATCH.length)
  const length = Number(BigInt(`0x${words.slice(WORD_DIGITS, 2 * WORD_DIGITS) || '0'}`))
  return `0x${words.slice(2 * WORD_DIGITS, 2 * WORD_DIGITS + 2 * length)}`
}

async function gridDifferences(rpc: Rpc, market: BatchStatement['market']): Promise<string[]> {
  const result = await rpc.read(market.trader, encodeCall('grid()'))
  const [marketId, kind, tick, step] = Array.from({ length: 4 }, (_, at) =>
    BigInt(`0x${result.slice(2 + at * WORD_DIGITS, 2 + (at + 1) * WORD_DIGITS) || '0'}`),
  )
  const grid = {
    market_id: Number(marketId),
    kind: KINDS[Number(kind)],
    tick: String(tick),
    step: String(step),
  }
  const stated = {
    market_id: market.marketId,
    kind: market.kind,
    tick: String(market.tick),
    step: String(market.step),
  }
  return differences('statement.market', stated, grid)
}

/** The settlement event; null if the transaction reverted. */
function settledOf({ logs, to }: MinedReceipt, market: BatchStatement['market']): BatchSettled | null {
  const log = logs.find(({ address, topics }) => topics[0] === BATCH_SETTLED_TOPIC && address === to)
  return log === undefined ? null : decodeLog(log, market)
}

const decodeLog = (log: Pick<Log, 'topics' | 'data'>, market: BatchStatement['market']): BatchSettled =>
  decodeBatchSettled(log.topics, log.data, { ...market, chainId: BigInt(market.chainId) })

// ---------------------------------------------------------------------- parts that the proof denies

interface SettledPart {
  readonly part: number
  readonly transactionHash: string
  /** Time of its block, ms. */
  readonly at: number
}

/**
 * Settled parts of the batch on chain. A part's event names its batch, and the contract refuses a part after its lifetime.
 */
async function settledParts(
  rpc: Rpc,
  { market, batchId, asOf }: BatchStatement,
  readAt: number | null,
): Promise<readonly SettledPart[]> {
  const last = Math.min(asOf + ACTION_LIFETIME, (readAt ?? Number.POSITIVE_INFINITY) - LAG_MS)
  const first = await firstBlockAfter(rpc, asOf - SLACK_MS)
  const end = await firstBlockAfter(rpc, last)
  const found: SettledPart[] = []
  for (let fromBlock = first; fromBlock < end; fromBlock += RANGE) {
    const logs = await rpc.call<readonly Log[]>('eth_getLogs', {
      address: market.trader,
      topics: [BATCH_SETTLED_TOPIC, null, toHex(wordOf(BigInt(batchId)))],
      fromBlock: hexOf(fromBlock),
      toBlock: hexOf(Math.min(fromBlock + RANGE, end) - 1),
    })
    for (const log of logs) {
      const at = await timeOf(rpc, Number(log.blockNumber))
      found.push({ part: decodeLog(log, market).part, transactionHash: log.transactionHash, at })
    }
  }
  return found
}

const hexOf = (number: number): string => `0x${number.toString(16)}`

async function timeOf(rpc: Rpc, number: number): Promise<number> {
  const block = await rpc.call<{ timestamp: string } | null>('eth_getBlockByNumber', hexOf(number), false)
  if (block === null) throw new Error(`the node has no block ${number}, which is not above its head`)
  return Number(block.timestamp) * 1000
}

/** First block with a time above `time`; the block after the head if there is none. */
async function firstBlockAfter(rpc: Rpc, time: number): Promise<number> {
  let [low, high] = [0, Number(await rpc.number('eth_blockNumber')) + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((await timeOf(rpc, middle)) > time) high = middle
    else low = middle + 1
  }
  return low
}

const deniedParts = (parts: BatchProof['parts'], settled: readonly SettledPart[]): string[] =>
  settled.flatMap(({ part: number, transactionHash, at }) => {
    const part = parts.find((each) => each.part === number)
    if (part?.status === 'settled') return []
    return [
      `part ${number} is ${part?.status ?? 'missing'} in the proof; transaction ${transactionHash} settled it at ${new Date(at).toISOString()}` +
        ' (a proof that was read earlier must be read again)',
    ]
  })
