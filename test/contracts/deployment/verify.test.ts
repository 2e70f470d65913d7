/** The data that `ignition verify` sends to an explorer rebuilds every deployed contract to the last byte. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { JsonRpcProvider } from 'ethers'
import { createHardhatRuntimeEnvironment } from 'hardhat/hre'
import config from '../../../hardhat.config.ts'
import { folderOf, readDeployment } from '../../../ignition/deployment.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { useAnvil } from '../../support/anvil.ts'
import { type Explorer, startExplorer } from '../support/explorer.ts'
import { type HardhatConfig, runTask } from '../support/tasks.ts'

/** First account of the well-known test mnemonic. */
const KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'

describe('verifying the sources of a deployment', function () {
  this.timeout(600_000)
  const chain = useAnvil({ chainId: 6343 })
  const deploymentId = `test-verify-${process.pid}`
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-verify-'))
  let explorer: Explorer

  before(async () => {
    process.env.MEGAETH_TESTNET_RPC_URL = chain.url
    process.env.MEGAETH_TESTNET_KEY = KEY
    process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT = 'false'
    const parameters = join(folder, 'parameters.json')
    writeFileSync(parameters, readFileSync('ignition/parameters/local.json'))
    const network = 'megaethTestnet'
    const modulePath = 'ignition/modules/test-exchange.ts'
    await runTask({ network }, ['ignition', 'deploy'], { modulePath, parameters, deploymentId })
    const market = 'ignition/markets/local/btc-perp.json'
    await runTask({ network }, 'deploy-market', { market, deploymentId, parameters })
    const provider = new JsonRpcProvider(chain.url)
    explorer = await startExplorer(provider)
    provider.destroy()
  })

  after(async () => {
    await explorer?.stop()
    delete process.env.MEGAETH_TESTNET_RPC_URL
    delete process.env.MEGAETH_TESTNET_KEY
    delete process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT
    rmSync(folder, { recursive: true })
    rmSync(folderOf(deploymentId), { recursive: true, force: true })
  })

  const latchOf = async (bank: string): Promise<string> => {
    const provider = new JsonRpcProvider(chain.url)
    const latch = await MarginBank__factory.connect(bank, provider).pauseLatch()
    provider.destroy()
    return latch
  }

  it('compiles with the same settings for production as for tests', async () => {
    const { config: resolved } = await createHardhatRuntimeEnvironment(config)
    const { default: tested, production } = resolved.solidity.profiles
    expect(JSON.stringify(production)).to.equal(JSON.stringify(tested))
  })

  it('rebuilds every contract and library from its own sources and constructor arguments', async () => {
    const { url } = explorer
    const chainDescriptors = {
      6343: { name: 'stub', blockExplorers: { blockscout: { url, apiUrl: `${url}/api` } } },
    }
    const withExplorer = { ...config, chainDescriptors } as unknown as HardhatConfig
    await runTask({ network: 'megaethTestnet', config: withExplorer }, ['ignition', 'verify'], {
      deploymentId,
    })
    const { contracts, markets } = readDeployment(deploymentId)
    const latch = await latchOf(contracts.MarginBank ?? '')
    await runTask({ network: 'megaethTestnet', config: withExplorer }, ['verify', 'blockscout'], {
      address: latch,
      contract: 'contracts/PauseLatch.sol:PauseLatch',
      constructorArgs: [],
    })
    expect(explorer.submissions.filter(({ match }) => match === 'none')).to.deep.equal([])
    expect(explorer.submissions.map(({ address }) => address.toLowerCase()).sort()).to.deep.equal(
      [...Object.values(contracts), ...markets.values(), latch].map((each) => each.toLowerCase()).sort(),
    )
    expect(process.exitCode ?? 0).to.equal(0)
  })
})
