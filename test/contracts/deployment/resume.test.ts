/** A deployment that is killed several times resumes from its journal and ends in the same state as an uninterrupted one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { JsonRpcProvider } from 'ethers'
import { folderOf, readDeployment } from '../../../ignition/deployment.ts'
import { useAnvil } from '../../support/anvil.ts'
import { runTask } from '../support/tasks.ts'

/** First account of the well-known test mnemonic, with its address. */
const KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const DEPLOYER = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
const MARKET = 'ignition/markets/local/btc-perp.json'
const PARAMETERS = 'ignition/parameters/local.json'

describe('an interrupted deployment', function () {
  this.timeout(300_000)
  const chain = useAnvil({ chainId: 6343 })
  const deploymentId = `test-resume-${process.pid}`
  const journal = `${folderOf(deploymentId)}/journal.jsonl`
  const environment = () => ({
    MEGAETH_TESTNET_RPC_URL: chain.url,
    MEGAETH_TESTNET_KEY: KEY,
    HARDHAT_IGNITION_CONFIRM_DEPLOYMENT: 'false',
  })

  before(() => Object.assign(process.env, environment()))
  after(() => {
    for (const name of Object.keys(environment())) delete process.env[name]
    rmSync(folderOf(deploymentId), { recursive: true, force: true })
  })

  const linesOf = (): number => (existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').length : 0)

  const command = (words: readonly string[]): ChildProcess =>
    spawn(process.execPath, ['node_modules/.bin/hardhat', '--network', 'megaethTestnet', ...words], {
      env: { ...process.env, ...environment() },
      stdio: ['ignore', 'pipe', 'pipe'],
    })

  /** Runs the command and kills it after its journal has grown by `lines`; returns whether it was still running then. */
  async function killAfter(lines: number, words: readonly string[]): Promise<boolean> {
    const from = linesOf()
    const child = command(words)
    const ended = once(child, 'exit')
    while (child.exitCode === null && linesOf() < from + lines) await sleep(2)
    const wasRunning = child.exitCode === null
    child.kill('SIGKILL')
    await ended
    return wasRunning
  }

  async function finish(words: readonly string[]): Promise<void> {
    const child = command(words)
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (said += text))
    const [code] = await once(child, 'close')
    expect(code, said).to.equal(0)
  }

  const EXCHANGE = [
    ...['ignition', 'deploy', 'ignition/modules/test-exchange.ts'],
    ...['--parameters', PARAMETERS, '--deployment-id', deploymentId],
  ]
  const MARKET_WORDS = [
    'deploy-market',
    ...['--market', MARKET, '--parameters', PARAMETERS, '--deployment-id', deploymentId],
  ]

  it('when run again after each kill, it completes and sends no transaction twice', async () => {
    // In sequence: in the middle of a deployment, between two of them, and among the calls that grant roles.
    const kills: boolean[] = []
    const recover = () => finish(['recover-deployment', '--deployment-id', deploymentId])
    for (const lines of [60, 23, 40]) {
      kills.push(await killAfter(lines, EXCHANGE))
      await recover()
    }
    await finish(EXCHANGE)
    for (const lines of [14, 15]) {
      kills.push(await killAfter(lines, MARKET_WORDS))
      await recover()
    }
    await finish(MARKET_WORDS)
    expect(kills).to.deep.equal([true, true, true, true, true])

    const text = await runTask({ network: 'megaethTestnet' }, 'check-deployment', {
      deploymentId,
      parameters: PARAMETERS,
      markets: '',
      handedOver: false,
    })
    expect(text).to.match(/\d{2,} as meant, 0 not$/)
    const provider = new JsonRpcProvider(chain.url)
    const confirmed = readFileSync(journal, 'utf8').match(/"type":"TRANSACTION_CONFIRM"/g) ?? []
    expect(await provider.getTransactionCount(DEPLOYER)).to.equal(confirmed.length)
    provider.destroy()
    expect([...readDeployment(deploymentId).markets.keys()]).to.deep.equal([1])
  })
})
