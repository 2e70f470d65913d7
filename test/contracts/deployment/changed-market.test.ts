/** A market that changes while its calls are sent: the gate before a listing checks it before each call. */
import { rmSync } from 'node:fs'
import { expect } from 'chai'
import { HDNodeWallet, JsonRpcProvider, Mnemonic } from 'ethers'
import { folderOf, readDeployment, traderOf } from '../../../ignition/deployment.ts'
import { useAnvil } from '../../support/anvil.ts'
import { type RpcProxy, startRespondingProxy } from '../../support/rpc-proxy.ts'
import { runTask, servedAt } from '../support/tasks.ts'

const MNEMONIC = Mnemonic.fromPhrase('test test test test test test test test test test test junk')
const deployer = HDNodeWallet.fromMnemonic(MNEMONIC, "m/44'/60'/0'/0/0")
const BTC = 'ignition/markets/local/btc-perp.json'
const PARAMETERS = 'ignition/parameters/local.json'

describe('a market that changes between two calls', function () {
  this.timeout(240_000)
  const chain = useAnvil({ chainId: 6343 })
  const deploymentId = `test-changed-${process.pid}`
  let provider: JsonRpcProvider
  let proxy: RpcProxy
  /** Called after the next call was sent. */
  let afterCall: (() => Promise<unknown>) | null = null

  const run = (name: string | string[], given: Record<string, unknown>): Promise<string> =>
    runTask({ network: 'megaethTestnet' }, name, { deploymentId, parameters: PARAMETERS, ...given })
  /** With the accounts of all roles. */
  const complete = (): Promise<string> => {
    const given = { market: BTC, send: true, deploymentId, parameters: PARAMETERS }
    const network = { network: 'served', config: servedAt(proxy.url) }
    return runTask(network, 'complete-market', given).catch(({ message }) => message)
  }
  const transactions = async (): Promise<number> => {
    const accounts: readonly string[] = await provider.send('eth_accounts', [])
    const counts = await Promise.all(accounts.map((account) => provider.getTransactionCount(account)))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  before(async () => {
    proxy = await startRespondingProxy(chain.url, async (request, forward) => {
      const response = await forward()
      const act = request.method === 'eth_sendTransaction' ? afterCall : null
      if (act !== null) {
        afterCall = null
        await act()
      }
      return response
    })
    process.env.MEGAETH_TESTNET_RPC_URL = proxy.url
    process.env.MEGAETH_TESTNET_KEY = deployer.privateKey
    process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT = 'false'
    provider = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1 })
    await run(['ignition', 'deploy'], { modulePath: 'ignition/modules/test-exchange.ts' })
    await run('deploy-market', { market: BTC })
  })

  after(async () => {
    provider?.destroy()
    await proxy?.close()
    for (const name of ['RPC_URL', 'KEY']) delete process.env[`MEGAETH_TESTNET_${name}`]
    delete process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT
    rmSync(folderOf(deploymentId), { recursive: true, force: true })
  })

  it('when its code is another one after the first call, no other call is sent, and the error names both', async () => {
    const trader = traderOf(readDeployment(deploymentId), 1)
    const code = await provider.getCode(trader)
    afterCall = () => provider.send('anvil_setCode', [trader, `${code.slice(0, -2)}00`])
    const before = await transactions()
    expect(await complete()).to.match(/^nothing further was sent after \w+\.\w+\(.*\): .*IsolatedTrader/)
    expect(await transactions()).to.equal(before + 1)
    expect(await complete()).to.match(/^nothing was sent: .*IsolatedTrader/)
    await provider.send('anvil_setCode', [trader, code])
    expect(await complete()).to.match(/ is live$/)
  })
})
