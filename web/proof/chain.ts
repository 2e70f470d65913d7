/** Reads the settlements of a batch from a node of the visitor's choice: the calls, the events, and the contract's own grid. */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { toHex } from '../../domain/hex.ts'
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import type { BatchProof, MinedPart } from '../../domain/proof/verify.ts'
import { differences } from '../../domain/proof/wire.ts'
import { decodeSettleBatch } from '../../domain/settlement/decode-settlement.ts'
import { ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
import { BATCH_SETTLED_TOPIC, decodeBatchSettled } from '../../domain/settlement/settlement-codec.ts'
import type { Address } from '../../domain/units.ts'

/** Sends one request to the node. */
export type Rpc = (method: string, params: readonly unknown[]) => Promise<unknown>

interface Transaction {
  readonly input: string
}

interface Log {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly transactionHash: string
  readonly blockNumber: string
}

interface Receipt {
  readonly to: string | null
  readonly logs: readonly Log[]
}

interface Block {
  readonly timestamp: string
}

/** The node cannot decide: it serves another chain, is behind, or failed. Nothing is shown against the proof. */
export class NodeUnfit extends Error {
  override readonly name = 'NodeUnfit'
}

export interface ChainState {
  readonly mined: ReadonlyMap<string, MinedPart>
  readonly differences: readonly string[]
}

const KINDS = ['perpetual', 'future', 'binary_future']
const selector = (signature: string): string => toHex(keccak_256(utf8ToBytes(signature))).slice(0, 10)
const SETTLE_BATCH = selector('settleBatch(bytes)')
const GRID = selector('grid()')
/** Most blocks of one request for events. */
const RANGE = 1_000
/** The clock of the exchange can be ahead of the time of blocks by this much. */
const SLACK_MS = 60_000
/** A part that was mined so shortly before the proof was read may be missing in it. */
const LAG_MS = 10_000

const WORD = 64

/** The only parameter, `bytes`, of a call: offset, length, content. */
function bytesArgument(input: string): string | null {
  if (!input.toLowerCase().startsWith(SETTLE_BATCH)) return null
  const words = input.slice(10)
  const offset = Number(BigInt(`0x${words.slice(0, WORD)}`)) * 2
  const length = Number(BigInt(`0x${words.slice(offset, offset + WORD)}`)) * 2
  const content = words.slice(offset + WORD, offset + WORD + length)
  return content.length === length ? `0x${content}` : null
}

const hex = (value: number): string => `0x${value.toString(16)}`

async function minedPart(
  rpc: Rpc,
  hash: string,
  chainId: number,
  { market }: BatchStatement,
): Promise<MinedPart | null> {
  const [sent, receipt] = (await Promise.all([
    rpc('eth_getTransactionByHash', [hash]),
    rpc('eth_getTransactionReceipt', [hash]),
  ])) as [Transaction | null, Receipt | null]
  const part = sent === null ? null : bytesArgument(sent.input)
  if (receipt === null || receipt.to === null || part === null) return null
  const to = receipt.to.toLowerCase()
  const log = receipt.logs.find(
    ({ address, topics }) => topics[0] === BATCH_SETTLED_TOPIC && address.toLowerCase() === to,
  )
  return {
    chainId,
    to: to as Address,
    sent: decodeSettleBatch(part, market.marketId),
    settled: log === undefined ? null : decodeLog(log, market),
  }
}

const decodeLog = ({ topics, data }: Pick<Log, 'topics' | 'data'>, market: BatchStatement['market']) =>
  decodeBatchSettled(topics, data, { ...market, chainId: BigInt(market.chainId) })

/** The grid and the kind that the contract itself states. */
async function gridDifferences(rpc: Rpc, { market }: BatchStatement): Promise<string[]> {
  const answer = (await rpc('eth_call', [{ to: market.trader, data: GRID }, 'latest'])) as string
  const word = (at: number): bigint => BigInt(`0x${answer.slice(2 + at * WORD, 2 + (at + 1) * WORD) || '0'}`)
  const stated = {
    market_id: market.marketId,
    kind: market.kind,
    tick: String(market.tick),
    step: String(market.step),
  }
  return differences('statement.market', stated, {
    market_id: Number(word(0)),
    kind: KINDS[Number(word(1))],
    tick: String(word(2)),
    step: String(word(3)),
  })
}

/** Throws NodeUnfit, or the error of a request. `readAt`: when the proof was read. */
export async function readChain(
  rpc: Rpc,
  { parts }: BatchProof,
  statement: BatchStatement,
  readAt: number,
): Promise<ChainState> {
  const chainId = Number(BigInt((await rpc('eth_chainId', [])) as string))
  if (chainId !== statement.market.chainId)
    throw new NodeUnfit(
      `the node serves chain ${chainId}; the batch settles on chain ${statement.market.chainId}`,
    )
  const mined = new Map<string, MinedPart>()
  for (const { transaction_hash: hash } of parts) {
    if (hash === null) continue
    const part = await minedPart(rpc, hash, chainId, statement)
    if (part !== null) mined.set(hash, part)
    else await requireCurrent(rpc, statement)
  }
  const found = await gridDifferences(rpc, statement)
  const isUnmined = parts.some(({ status }) => status !== 'settled')
  if (isUnmined) found.push(...(await deniedParts(rpc, parts, statement, readAt)))
  return { mined, differences: found }
}

/** A node that has not reached the batch cannot know its transactions. */
async function requireCurrent(rpc: Rpc, { asOf }: BatchStatement): Promise<void> {
  const head = (await rpc('eth_getBlockByNumber', ['latest', false])) as Block
  if (Number(head.timestamp) * 1000 < asOf)
    throw new NodeUnfit('the node is behind: its newest block is older than the batch')
}

// ---------------------------------------------------------------------- parts that the proof denies

async function timeOf(rpc: Rpc, number: number): Promise<number> {
  const block = (await rpc('eth_getBlockByNumber', [hex(number), false])) as Block | null
  if (block === null) throw new NodeUnfit(`the node has no block ${number}, which is not above its head`)
  return Number(block.timestamp) * 1000
}

/** The first block whose time is above `time`; the block after the head if none is. */
async function firstBlockAfter(rpc: Rpc, time: number): Promise<number> {
  let [low, high] = [0, Number(await rpc('eth_blockNumber', [])) + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((await timeOf(rpc, middle)) > time) high = middle
    else low = middle + 1
  }
  return low
}

/** Events of parts that the proof does not show as settled. */
async function deniedParts(
  rpc: Rpc,
  parts: BatchProof['parts'],
  { market, batchId, asOf }: BatchStatement,
  readAt: number,
): Promise<string[]> {
  const first = await firstBlockAfter(rpc, asOf - SLACK_MS)
  const end = await firstBlockAfter(rpc, Math.min(asOf + ACTION_LIFETIME, readAt - LAG_MS))
  const found: string[] = []
  for (let from = first; from < end; from += RANGE) {
    const logs = (await rpc('eth_getLogs', [
      {
        address: market.trader,
        topics: [BATCH_SETTLED_TOPIC, null, `0x${batchId.toString(16).padStart(WORD, '0')}`],
        fromBlock: hex(from),
        toBlock: hex(Math.min(from + RANGE, end) - 1),
      },
    ])) as readonly Log[]
    for (const log of logs) {
      const { part } = decodeLog(log, market)
      const stated = parts.find((each) => each.part === part)
      if (stated?.status === 'settled') continue
      found.push(
        `part ${part} is ${stated?.status ?? 'missing'} in the proof; transaction ${log.transactionHash} has settled it`,
      )
    }
  }
  return found
}
