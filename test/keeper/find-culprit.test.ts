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

  it('when a later transaction of the block removes the cause, it finds the culprit where the transaction reverted', async () => {
    const wallet = HDNodeWallet.fromPhrase('test test test test test test test test test test test junk')
    const nonce = await provider.getTransactionCount(wallet.address)
    const send = async (at: number, value: bigint) => {
      const raw = await wallet.signTransaction({
        ...{ type: 2, chainId: CHAIN_ID, nonce: nonce + at, to: CONTRACT, value, gasLimit: 100_000n },
        ...{ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n },
      })
      await provider.send('eth_sendRawTransaction', [raw])
      return raw as `0x${string}`
    }
    const reverted = await send(0, 0n)
    await send(1, 1n)
    await provider.send('evm_mine', [])
    const block = await provider.getBlockNumber()
    const mined = (await provider.getBlock(block))?.transactions ?? []
    const receipts = await Promise.all(mined.map((hash) => provider.getTransactionReceipt(hash)))
    expect(receipts.map((receipt) => receipt?.status)).to.deep.equal([0, 1])

    const timeouts = { requestTimeoutMs: 5_000, sendTimeoutMs: 5_000 }
    const chain = createChain({ url: anvil.url, chainId: CHAIN_ID, ...timeouts })
    expect(await chain.findCulprit(reverted, block)).to.include({ kind: 'account', maker: MAKER })
  })
})
