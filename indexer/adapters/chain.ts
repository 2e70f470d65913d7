/** Reads the chain from a node over JSON-RPC. It only polls: it needs no filters on the node, and a lost connection loses no data. */
import { FetchRequest, JsonRpcProvider, Network, toQuantity } from 'ethers'
import { foldMargin } from '../../domain/positions/position.ts'
import type { Address, FundingIndex, Quote, Steps } from '../../domain/units.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import type { Chain, ChainBlock, ChainLog } from '../ports.ts'

interface RpcBlock {
  readonly number: string
  readonly hash: string | null
  readonly parentHash: string
  readonly timestamp: string
  readonly transactions: readonly string[]
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
  const send = <Answer>(method: string, params: unknown[]): Promise<Answer> => provider.send(method, params)

  const block = async (tag: string): Promise<ChainBlock | null> => {
    const answer = await send<RpcBlock | null>('eth_getBlockByNumber', [tag, false])
    // A block without a hash is still pending.
    return answer === null || answer.hash === null ? null : toBlock(answer, answer.hash)
  }
  const logs = async (filter: object): Promise<ChainLog[]> =>
    (await send<RpcLog[]>('eth_getLogs', [filter])).filter(({ removed }) => removed !== true).map(toLog)

  return {
    chainId: async () => Number(await send<string>('eth_chainId', [])),
    head: async () => {
      const head = await block('latest')
      if (head === null) throw new Error('the node returned no latest block')
      return head
    },
    block: (number) => block(toQuantity(number)),
    logsOf: (blockHash, address) => logs({ blockHash, address }),
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
