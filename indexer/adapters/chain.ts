/** Reads the chain from a node over JSON-RPC. It only polls: it needs no filters on the node, and a lost connection loses no data. */
import { FetchRequest, JsonRpcProvider, Network, toQuantity } from 'ethers'
import { foldMargin } from '../../domain/positions/position.ts'
import type { Address, FundingIndex, Quote, Steps } from '../../domain/units.ts'
import { createSend, RpcError } from '../../service/json-rpc.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { InconsistentNodeError } from '../ingest/chain-record.ts'
import { mayHaveLogsOf } from '../ingest/log-bloom.ts'
import type { Chain, ChainBlock, ChainLog } from '../ports.ts'

interface RpcBlock {
  readonly number: string
  readonly hash: string | null
  readonly parentHash: string
  readonly timestamp: string
  readonly transactions: readonly string[]
  readonly logsBloom?: string
}

interface RpcLog {
  readonly blockNumber: string | null
  readonly blockHash: string | null
  readonly logIndex: string
  readonly transactionHash: string
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly removed?: boolean
}

export interface ChainOptions {
  readonly url: string
  readonly chainId: number
  readonly timeoutMs: number
}

export interface ChainClient extends Chain {
  close(): void
}

export function createChain({ url, chainId, timeoutMs }: ChainOptions): ChainClient {
  const request = new FetchRequest(url)
  request.timeout = timeoutMs
  const network = Network.from(chainId)
  const provider = new JsonRpcProvider(request, network, { staticNetwork: network, batchMaxCount: 1 })
  const send = createSend(url, timeoutMs)

  const block = async (tag: string): Promise<ChainBlock | null> => {
    const answer = await send<RpcBlock | null>('eth_getBlockByNumber', [tag, false])
    // A block without a hash is still pending.
    if (answer === null || answer.hash === null) return null
    rememberBloom(answer.hash, answer.logsBloom)
    return toBlock(answer, answer.hash)
  }
  const blooms = new Map<string, string>()
  function rememberBloom(hash: string, bloom: string | undefined): void {
    if (bloom === undefined) return
    blooms.set(hash, bloom)
    for (const oldest of blooms.keys()) {
      if (blooms.size <= MOST_BLOOMS) return
      blooms.delete(oldest)
    }
  }
  const logs = async (filter: object): Promise<ChainLog[]> =>
    (await send<RpcLog[]>('eth_getLogs', [filter])).filter(({ removed }) => removed !== true).map(toLog)

  /** A node behind a load balancer may have a block without its logs yet, and answers with none: a deposit would be lost for ever. */
  async function logsOf(blockHash: string, addresses: readonly string[]): Promise<ChainLog[]> {
    const found = await logs({ blockHash, address: addresses })
    const bloom = blooms.get(blockHash)
    if (bloom === undefined || !isSuspect(bloom, addresses, found)) return found
    const all = await logsOfReceipts(blockHash, addresses)
    if (all !== null && all > found.length)
      throw new InconsistentNodeError(
        `the node returned ${found.length} of ${all} logs of block ${blockHash}`,
      )
    return found
  }

  /** Their number by the block's receipts; null if the node does not have the method. */
  async function logsOfReceipts(blockHash: string, addresses: readonly string[]): Promise<number | null> {
    try {
      const receipts = await send<{ readonly logs: readonly RpcLog[] }[] | null>('eth_getBlockReceipts', [
        blockHash,
      ])
      if (receipts === null) throw new InconsistentNodeError(`the node has no receipts of block ${blockHash}`)
      const wanted = new Set(addresses.map((address) => address.toLowerCase()))
      return receipts
        .flatMap((receipt) => receipt.logs)
        .filter(({ address }) => wanted.has(address.toLowerCase())).length
    } catch (error) {
      if (isUnknownMethod(error)) return null
      throw error
    }
  }

  return {
    chainId: async () => Number(await send<string>('eth_chainId', [])),
    head: async () => {
      const head = await block('latest')
      if (head === null) throw new Error('the node returned no latest block')
      return head
    },
    block: (number) => block(toQuantity(number)),
    logsOf,
    logsBetween: (from, to, address) =>
      logs({ fromBlock: toQuantity(from), toBlock: toQuantity(to), address }),
    hasSucceeded: async (txHash) => {
      const receipt = await send<{ status: string } | null>('eth_getTransactionReceipt', [txHash])
      return receipt && Number(receipt.status) === 1
    },
    position: async (trader, account, at) => {
      const contract = IsolatedTrader__factory.connect(trader, provider)
      const overrides = { blockTag: at }
      const position = await contract.position(account, overrides)
      const { fundingIndex } = await contract.lastReference(overrides)
      const size = Number(position.size) as Steps
      return {
        size,
        entryNotional: position.entryNotional as Quote,
        foldedMargin: foldMargin(position.margin, size, fundingIndex as FundingIndex),
        leverage: Number(position.leverage),
      }
    },
    close: () => provider.destroy(),
  }
}

/** Blocks whose logs may still be asked for: the head, and blocks fetched ahead. */
const MOST_BLOOMS = 64
const METHOD_NOT_FOUND = -32601

/** The filter names an address of which there is no log. Of busy blocks it often does so without reason. */
function isSuspect(bloom: string, addresses: readonly string[], found: readonly ChainLog[]): boolean {
  const seen = new Set<string>(found.map(({ address }) => address))
  return addresses.some((address) => !seen.has(address.toLowerCase()) && mayHaveLogsOf(bloom, address))
}

const isUnknownMethod = (error: unknown): boolean =>
  error instanceof RpcError && error.code === METHOD_NOT_FOUND

const toBlock = ({ number, parentHash, timestamp, transactions }: RpcBlock, hash: string): ChainBlock => ({
  number: Number(number),
  hash,
  parentHash,
  timestamp: Number(timestamp),
  transactions,
})

function toLog(log: RpcLog): ChainLog {
  if (log.blockNumber === null || log.blockHash === null)
    throw new Error('the node returned a log without a block')
  return {
    block: Number(log.blockNumber),
    blockHash: log.blockHash,
    logIndex: Number(log.logIndex),
    txHash: log.transactionHash,
    address: log.address.toLowerCase() as Address,
    topics: log.topics,
    data: log.data,
  }
}
