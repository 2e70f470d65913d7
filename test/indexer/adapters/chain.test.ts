/** The indexer reads from a node that answers without errors and not with the truth. */
import { expect } from 'chai'
import { JsonRpcProvider, type TransactionReceipt } from 'ethers'
import { afterEach, before, describe, it } from 'mocha'
import type { Address } from '../../../domain/units.ts'
import { type ChainClient, createChain } from '../../../indexer/adapters/chain.ts'
import { InconsistentNodeError } from '../../../indexer/ingest/chain-record.ts'
import { useAnvil } from '../../support/anvil.ts'
import { type Respond, type RpcProxy, startRespondingProxy } from '../../support/rpc-proxy.ts'

const CHAIN_ID = 31_337
/** Creation code that logs nothing but its address, twice. */
const TWO_LOGS = '0x60006000a060006000a000'
const SILENT_ADDRESS = `0x${'ab'.repeat(20)}` as Address

describe('the logs of a block', () => {
  const anvil = useAnvil({ chainId: CHAIN_ID })
  let receipt: TransactionReceipt
  let proxy: RpcProxy | undefined
  let chain: ChainClient | undefined

  before(async () => {
    const provider = new JsonRpcProvider(anvil.url, undefined, { staticNetwork: true })
    const signer = await provider.getSigner(0)
    receipt = (await (await signer.sendTransaction({ data: TWO_LOGS })).wait()) as TransactionReceipt
    provider.destroy()
  })
  afterEach(async () => {
    chain?.close()
    await proxy?.close()
  })

  /** The logs of the contract as the indexer reads them: the block first, then its logs. */
  async function read(respond: Respond) {
    proxy = await startRespondingProxy(anvil.url, respond)
    chain = createChain({ url: proxy.url, chainId: CHAIN_ID, timeoutMs: 5_000 })
    await chain.block(receipt.blockNumber)
    return chain.logsOf(receipt.blockHash, [receipt.contractAddress as Address, SILENT_ADDRESS])
  }
  const withLogs =
    (most: number): Respond =>
    async ({ method }, forward) => {
      const answer = await forward()
      return method === 'eth_getLogs'
        ? { ...answer, result: (answer.result as unknown[]).slice(0, most) }
        : answer
    }

  it('when the node has them all, they are returned', async () => {
    expect(await read((_, forward) => forward())).to.have.length(2)
  })

  it('when the node answers with none although its header has some, the block is read again later', async () => {
    const failure = await read(withLogs(0)).catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(InconsistentNodeError)
    expect(String(failure)).to.include(`returned 0 of 2 logs of block ${receipt.blockHash}`)
  })

  it('when the node does not have the receipts of a block, its logs are believed', async () => {
    const logs = await read(async (request, forward) => {
      const error = { code: -32_601, message: 'Method not found' }
      return request.method === 'eth_getBlockReceipts'
        ? { jsonrpc: '2.0', id: 3, error }
        : withLogs(0)(request, forward)
    })
    expect(logs).to.deep.equal([])
  })

  it('when the header names no followed address, no receipts are fetched', async () => {
    const methods: string[] = []
    proxy = await startRespondingProxy(anvil.url, ({ method }, forward) => {
      methods.push(method)
      return forward()
    })
    chain = createChain({ url: proxy.url, chainId: CHAIN_ID, timeoutMs: 5_000 })
    const block = await chain.block(0)
    expect(await chain.logsOf(block?.hash as string, [SILENT_ADDRESS])).to.deep.equal([])
    expect(methods).to.deep.equal(['eth_getBlockByNumber', 'eth_getLogs'])
  })
})
