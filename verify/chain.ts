/** Reads the settlements of a batch from a node. */
import { JsonRpcProvider, type Log, type TransactionReceipt, toBeHex } from 'ethers'
import type { BatchStatement } from '../domain/proof/batch-statement.ts'
import type { BatchProof, MinedPart } from '../domain/proof/verify.ts'
import { differences } from '../domain/proof/wire.ts'
import { decodeSettleBatch } from '../domain/settlement/decode-settlement.ts'
import { ACTION_LIFETIME } from '../domain/settlement/durations.ts'
import type { BatchSettled } from '../domain/settlement/settlement.ts'
import { BATCH_SETTLED_TOPIC, decodeBatchSettled } from '../domain/settlement/settlement-codec.ts'
import type { Address } from '../domain/units.ts'
import { IIsolatedTrader__factory } from '../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'

const MARKET = IIsolatedTrader__factory.createInterface()
/** Most blocks of one request for events. */
const RANGE = 1_000
/** By how much the clock of the exchange can be ahead of the time of blocks. */
const SLACK_MS = 60_000
/** A part that was mined so shortly before the proof was read may be missing in it. */
const LAG_MS = 10_000
const KINDS = ['perpetual', 'future', 'binary_future']

export interface ChainState {
  /** By transaction hash: the settlements that the chain has. */
  readonly mined: ReadonlyMap<string, MinedPart>
  /** Where the stated grid differs from that of the market's contract, and parts that the chain has and the proof denies. */
  readonly differences: readonly string[]
}

export interface ChainInput {
  readonly url: string
  /** When the proof was read; null: not known, since it is from a file. */
  readonly readAt: number | null
}

export async function readChain(
  { url, readAt }: ChainInput,
  { parts }: BatchProof,
  statement: BatchStatement,
): Promise<ChainState> {
  const { market } = statement
  const provider = new JsonRpcProvider(url, undefined, { staticNetwork: true, batchMaxCount: 1 })
  try {
    const { chainId } = await provider.getNetwork()
    const mined = new Map<string, MinedPart>()
    for (const { transaction_hash: hash } of parts) {
      if (hash === null) continue
      const [sent, receipt] = [
        await provider.getTransaction(hash),
        await provider.getTransactionReceipt(hash),
      ]
      const call = sent === null ? null : MARKET.parseTransaction({ data: sent.data })
      if (receipt === null || call?.name !== 'settleBatch') continue
      mined.set(hash, {
        chainId: Number(chainId),
        to: String(receipt.to).toLowerCase() as Address,
        sent: decodeSettleBatch(String(call.args.part), market.marketId),
        settled: settledOf(receipt, market),
      })
    }
    const { marketId, kind, tick, step } = await IIsolatedTrader__factory.connect(market.trader, {
      provider,
    }).grid()
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
    const isUnmined = parts.some(({ status }) => status !== 'settled')
    const settled = isUnmined ? await settledParts(provider, statement, readAt) : []
    return {
      mined,
      differences: [...differences('statement.market', stated, grid), ...deniedParts(parts, settled)],
    }
  } finally {
    provider.destroy()
  }
}

/** Null if the transaction was reverted. */
function settledOf({ logs, to }: TransactionReceipt, market: BatchStatement['market']): BatchSettled | null {
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

/** The event of a part names its batch, and the contract refuses a part whose block is later than its lifetime allows. */
async function settledParts(
  provider: JsonRpcProvider,
  { market, batchId, asOf }: BatchStatement,
  readAt: number | null,
): Promise<readonly SettledPart[]> {
  const last = Math.min(asOf + ACTION_LIFETIME, (readAt ?? Number.POSITIVE_INFINITY) - LAG_MS)
  const first = await firstBlockAfter(provider, asOf - SLACK_MS)
  const end = await firstBlockAfter(provider, last)
  const found: SettledPart[] = []
  for (let fromBlock = first; fromBlock < end; fromBlock += RANGE) {
    const logs = await provider.getLogs({
      address: market.trader,
      topics: [BATCH_SETTLED_TOPIC, null, toBeHex(batchId, 32)],
      fromBlock,
      toBlock: Math.min(fromBlock + RANGE, end) - 1,
    })
    for (const log of logs) {
      const at = await timeOf(provider, log.blockNumber)
      found.push({ part: decodeLog(log, market).part, transactionHash: log.transactionHash, at })
    }
  }
  return found
}

async function timeOf(provider: JsonRpcProvider, number: number): Promise<number> {
  const block = await provider.getBlock(number)
  if (block === null) throw new Error(`the node has no block ${number}, which is not above its head`)
  return block.timestamp * 1000
}

/** The first block whose time is above `time`; the block after the head if none is. */
async function firstBlockAfter(provider: JsonRpcProvider, time: number): Promise<number> {
  let [low, high] = [0, (await provider.getBlockNumber()) + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((await timeOf(provider, middle)) > time) high = middle
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
