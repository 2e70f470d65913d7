/** A market that changes while `complete-market` sends its calls: the check before the next call must refuse it. */
import { rmSync } from 'node:fs'
import { expect } from 'chai'
import { HDNodeWallet, JsonRpcProvider, Mnemonic } from 'ethers'
import { contractOf, folderOf, readDeployment, traderOf } from '../../../ignition/deployment.ts'
import { pinned } from '../../../ignition/pinned.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { useAnvil } from '../../support/anvil.ts'
import { type FaultyNode, startFaultyNode } from '../support/faulty-node.ts'
import { runTask, servedAt } from '../support/tasks.ts'

const MNEMONIC = Mnemonic.fromPhrase('test test test test test test test test test test test junk')
const deployer = HDNodeWallet.fromMnemonic(MNEMONIC, "m/44'/60'/0'/0/0")
const BTC = 'ignition/markets/local/btc-perp.json'
const PARAMETERS = 'ignition/parameters/local.json'
const FOREIGN = `0x${'fe'.repeat(20)}`

describe('a market that changes while its calls are sent', function () {
  this.timeout(240_000)
  const chain = useAnvil({ chainId: 6343 })
  const deploymentId = `test-changed-${process.pid}`
  let provider: JsonRpcProvider
  let node: FaultyNode
  let trader: string

  const at = (name: string): string => contractOf(readDeployment(deploymentId), name)
  const run = (name: string | string[], given: Record<string, unknown>): Promise<string> =>
    runTask({ network: 'served', config: servedAt(node.url) }, name, {
      deploymentId,
      parameters: PARAMETERS,
      ...given,
    })
  const complete = (): Promise<string> =>
    run('complete-market', { market: BTC, send: true }).then(
      (text) => `no error: ${text}`,
      ({ message }) => message,
    )
  const isListed = async (): Promise<boolean> =>
    (await MarginBank__factory.connect(at('MarginBank'), provider).market(trader)).openFrom > 0n

  before(async () => {
    process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT = 'false'
    provider = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1 })
    node = await startFaultyNode(() => chain.url)
    await run(['ignition', 'deploy'], { modulePath: 'ignition/modules/test-exchange.ts' })
    await run('deploy-market', { market: BTC })
    trader = traderOf(readDeployment(deploymentId), 1)
  })
  after(async () => {
    provider?.destroy()
    await node?.stop()
    delete process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT
    rmSync(folderOf(deploymentId), { recursive: true, force: true })
  })
  afterEach(() => node.heal())

  it('when its code changes after the first call, no further call is sent and the first is named', async () => {
    const genuine = await provider.getCode(trader)
    const extension = at('MarketExtension').slice(2).toLowerCase()
    const foreign = genuine.replaceAll(extension, FOREIGN.slice(2))
    expect(foreign).not.to.equal(genuine)
    const before = await sentCount()
    node.afterEachTransaction(() => provider.send('anvil_setCode', [trader, foreign]))
    const refusal = await complete()
    await provider.send('anvil_setCode', [trader, genuine])
    expect(refusal).to.match(/^nothing more was sent after IsolatedTrader\.acceptOperator\(\): /)
    expect((await sentCount()) - before).to.equal(1)
    expect(await isListed()).to.equal(false)
  })

  /** Transactions of all accounts of the node. */
  async function sentCount(): Promise<number> {
    const accounts: string[] = await provider.send('eth_accounts', [])
    const counts = await Promise.all(accounts.map((each) => provider.getTransactionCount(each)))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  it('when a read is pinned, it returns the state of that block, also after later blocks', async () => {
    const state = await pinned(provider)
    const [admin] = [deployer.connect(provider)]
    const market = IsolatedTrader__factory.connect(trader, { provider: state.provider })
    const statusBefore = await market.operatorStatus(FOREIGN)
    await (await IsolatedTrader__factory.connect(trader, admin).proposeOperator(FOREIGN)).wait()
    const code = await provider.getCode(trader)
    await provider.send('anvil_setCode', [trader, '0x00'])
    await provider.send('evm_mine', [])
    expect(await market.operatorStatus(FOREIGN)).to.equal(statusBefore)
    expect(await state.provider.getCode(trader)).to.equal(code)
    expect(await provider.getCode(trader)).to.equal('0x00')
    await state.requireUnchanged()
    await provider.send('anvil_setCode', [trader, code])
  })

  it('when another block replaces the pinned block, the check is refused', async () => {
    await provider.send('evm_mine', [])
    const state = await pinned(provider)
    await provider.send('anvil_rollback', [1])
    await provider.send('evm_increaseTime', [60])
    await provider.send('evm_mine', [])
    const message = await state.requireUnchanged().then(
      () => 'no error',
      (error: Error) => error.message,
    )
    expect(message).to.match(/^block \d+ was 0x[0-9a-f]{64} at the start of the check and is 0x/)
  })
})
