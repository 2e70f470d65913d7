import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { HDNodeWallet, Interface, JsonRpcProvider } from 'ethers'
import { after, before, describe, it } from 'mocha'
import { createChain } from '../../keeper/adapters/chain.ts'
import { type Anvil, startAnvil } from '../../stack/anvil.ts'
import { IMarginBank__factory } from '../../typechain-types/factories/interfaces/IMarginBank__factory.ts'

const CHAIN_ID = 6343
const MAKER = `0x${'ab'.repeat(20)}`
const CONTRACT = `0x${'c0'.repeat(20)}`
const ERROR = new Interface(IMarginBank__factory.abi).encodeErrorResult('FreeBalanceInsufficient', [
  MAKER,
  1n,
  2n,
])
/** Code that reverts with the error while the contract has no balance: a jump over `codecopy; revert` if `selfbalance` is not 0. */
const REVERTS_WITHOUT_BALANCE = `0x4760105760646012600039606460${'00'}fd5b00${ERROR.slice(2)}`

/** How gateways refuse to trace, other than with an error of JSON-RPC. */
const REFUSALS: readonly (readonly [string, (response: ServerResponse) => void])[] = [
  ['answers a trace with a page', (response) => response.writeHead(403).end('<html>forbidden</html>')],
  ['answers a trace with null', (response) => response.end('{"jsonrpc":"2.0","id":1,"result":null}')],
  ['never answers a trace', () => {}],
]

describe('findCulprit', function () {
  this.timeout(60_000)
  let anvil: Anvil
  let provider: JsonRpcProvider
  before(async () => {
    anvil = await startAnvil({ blockTime: 1, mixedMining: true })
    provider = new JsonRpcProvider(anvil.url, CHAIN_ID, { staticNetwork: true, cacheTimeout: -1 })
    await provider.send('evm_setAutomine', [false])
    await provider.send('evm_setIntervalMining', [0])
    await provider.send('anvil_setCode', [CONTRACT, REVERTS_WITHOUT_BALANCE])
  })
  after(async () => {
    provider.destroy()
    await anvil.stop()
  })

  /** A transaction that reverts while the contract has no balance, mined with other transactions in one block. */
  async function mineReverted(others: readonly bigint[]): Promise<{ raw: `0x${string}`; block: number }> {
    const wallet = HDNodeWallet.fromPhrase('test test test test test test test test test test test junk')
    const nonce = await provider.getTransactionCount(wallet.address)
    const raws: `0x${string}`[] = []
    for (const [at, value] of [0n, ...others].entries()) {
      const raw = await wallet.signTransaction({
        ...{ type: 2, chainId: CHAIN_ID, nonce: nonce + at, to: CONTRACT, value, gasLimit: 100_000n },
        ...{ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n },
      })
      await provider.send('eth_sendRawTransaction', [raw])
      raws.push(raw as `0x${string}`)
    }
    await provider.send('evm_mine', [])
    return { raw: raws[0] as `0x${string}`, block: await provider.getBlockNumber() }
  }

  const findWith = (url: string, { raw, block }: { raw: `0x${string}`; block: number }) =>
    createChain({ url, chainId: CHAIN_ID, requestTimeoutMs: 1_000, sendTimeoutMs: 1_000 }).findCulprit(
      raw,
      block,
    )

  it('when a later transaction of the block removes the cause, it finds the culprit where the transaction reverted', async () => {
    const { raw, block } = await mineReverted([1n])
    const mined = (await provider.getBlock(block))?.transactions ?? []
    const receipts = await Promise.all(mined.map((hash) => provider.getTransactionReceipt(hash)))
    expect(receipts.map((receipt) => receipt?.status)).to.deep.equal([0, 1])

    expect(await findWith(anvil.url, { raw, block })).to.include({ kind: 'account', maker: MAKER })
  })

  for (const [node, respond] of REFUSALS) {
    it(`when a gateway ${node}, the transaction is simulated`, async () => {
      await provider.send('anvil_setBalance', [CONTRACT, '0x0'])
      const reverted = await mineReverted([])
      const gateway = createServer((request, response) => {
        void text(request).then(async (body) => {
          if (JSON.parse(body).method === 'debug_traceTransaction') return respond(response)
          const headers = { 'content-type': 'application/json' }
          response.end(await (await fetch(anvil.url, { method: 'POST', headers, body })).text())
        })
      })
      gateway.listen(0, '127.0.0.1')
      await once(gateway, 'listening')
      const { port } = gateway.address() as AddressInfo
      try {
        const culprit = await findWith(`http://127.0.0.1:${port}`, reverted)
        expect(culprit).to.include({ kind: 'account', maker: MAKER })
      } finally {
        gateway.closeAllConnections()
        gateway.close()
      }
    })
  }
})
