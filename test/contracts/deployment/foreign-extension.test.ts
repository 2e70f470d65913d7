/** A market that delegates to a hostile extension: the gate before a listing and the check must refuse it. */
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { HDNodeWallet, JsonRpcProvider, Mnemonic, parseEther, zeroPadValue } from 'ethers'
import { contractOf, folderOf, readDeployment } from '../../../ignition/deployment.ts'
import { readMarketFile } from '../../../ignition/market-file.ts'
import { gridOf, parametersOf } from '../../../stack/deploy.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { TestUSDM__factory } from '../../../typechain-types/factories/TestUSDM__factory.ts'
import { useAnvil } from '../../support/anvil.ts'
import { deployCode, foreignExtension } from '../support/foreign-extension.ts'
import { runTask } from '../support/tasks.ts'

const MNEMONIC = Mnemonic.fromPhrase('test test test test test test test test test test test junk')
const walletAt = (index: number) => HDNodeWallet.fromMnemonic(MNEMONIC, `m/44'/60'/0'/0/${index}`)
const [deployer, operator, victim, thief] = [0, 7, 8, 9].map(walletAt) as [
  HDNodeWallet,
  HDNodeWallet,
  HDNodeWallet,
  HDNodeWallet,
]
const BTC = 'ignition/markets/local/btc-perp.json'
const PARAMETERS = 'ignition/parameters/local.json'
const MILLION = parseEther('1000000')

describe('a market that delegates to a foreign extension', function () {
  this.timeout(240_000)
  const chain = useAnvil({ chainId: 6343 })
  const deploymentId = `test-extension-${process.pid}`
  let provider: JsonRpcProvider
  let trader: string

  const at = (name: string): string => contractOf(readDeployment(deploymentId), name)
  const run = (name: string | string[], given: Record<string, unknown>): Promise<string> =>
    runTask({ network: 'megaethTestnet' }, name, { deploymentId, parameters: PARAMETERS, ...given })
  const complete = (by: HDNodeWallet): Promise<string> => {
    process.env.MEGAETH_TESTNET_KEY = by.privateKey
    return run('complete-market', { market: BTC, send: true })
  }

  before(async () => {
    process.env.MEGAETH_TESTNET_RPC_URL = chain.url
    process.env.MEGAETH_TESTNET_KEY = deployer.privateKey
    process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT = 'false'
    provider = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1 })
    await run(['ignition', 'deploy'], { modulePath: 'ignition/modules/test-exchange.ts' })
    trader = await deployForeign()
  })

  after(() => {
    provider?.destroy()
    for (const name of ['RPC_URL', 'KEY']) delete process.env[`MEGAETH_TESTNET_${name}`]
    delete process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT
    rmSync(folderOf(deploymentId), { recursive: true, force: true })
  })

  /** Deploys the market as `deploy-market` would, with another extension, and with the genuine one as its session feed. */
  async function deployForeign(): Promise<string> {
    const by = thief.connect(provider)
    const genuine = at('MarketExtension')
    const bank = at('MarginBank')
    const theft = { genuine, bank, victim: victim.address, thief: thief.address, amount: MILLION }
    const extension = await deployCode(by, foreignExtension(theft))
    const { spec, reports } = readMarketFile(BTC, 6343n)
    const market = await new IsolatedTrader__factory(by).deploy(
      { ...gridOf(spec), sessionFeedId: zeroPadValue(genuine, 32) },
      parametersOf(spec, reports),
      bank,
      at('AccountManager'),
      at('SignedPriceOracle'),
      at('Forwarder'),
      at('ExchangeAccess'),
      extension,
    )
    const address = await market.getAddress()
    const hash = market.deploymentTransaction()?.hash
    const receipt = {
      contractAddress: address,
      blockNumber: (await market.deploymentTransaction()?.wait())?.blockNumber,
    }
    const addresses = `${folderOf(deploymentId)}/deployed_addresses.json`
    const known = JSON.parse(readFileSync(addresses, 'utf8'))
    writeFileSync(addresses, JSON.stringify({ ...known, 'Market1#IsolatedTrader': address }))
    const entry = { type: 'TRANSACTION_CONFIRM', futureId: 'Market1#IsolatedTrader', hash, receipt }
    appendFileSync(`${folderOf(deploymentId)}/journal.jsonl`, `\n${JSON.stringify(entry)}`)
    return address
  }

  const refusal = (by: HDNodeWallet): Promise<string> =>
    complete(by).then(
      (text) => text,
      ({ message }) => message,
    )

  it('when complete-market should list it, it sends nothing and names the extension', async () => {
    const foreign = await IsolatedTrader__factory.connect(trader, provider).extension()
    const expected = `extension: expected ${at('MarketExtension')}, found ${foreign}`.toLowerCase()
    const before = await provider.getTransactionCount(deployer.address)
    for (let round = 0; round < 3; round++) {
      expect((await refusal(deployer)).toLowerCase()).to.equal(`nothing was sent: market 1: ${expected}`)
      expect((await refusal(operator)).toLowerCase()).to.equal(`nothing was sent: market 1: ${expected}`)
    }
    expect(await provider.getTransactionCount(deployer.address)).to.equal(before)
  })

  it('when it was listed by other means, one claim takes a deposit, and the check names every difference', async () => {
    await listAnyway()
    const bank = MarginBank__factory.connect(at('MarginBank'), provider)
    await depositMillion()
    await (await IsolatedTrader__factory.connect(trader, thief.connect(provider)).claim(thief.address)).wait()
    expect((await bank.account(victim.address)).free).to.equal(0n)
    expect((await bank.account(thief.address)).free).to.equal(MILLION)

    process.env.MEGAETH_TESTNET_KEY = deployer.privateKey
    const text = await run('check-deployment', { markets: BTC, handedOver: false })
    const { exitCode } = process
    process.exitCode = 0
    expect(exitCode).to.equal(1)
    const wrong = text.split('\n').filter((line) => line.startsWith('  WRONG'))
    const named = (words: string) => wrong.filter((line) => line.includes(words))
    expect(named('market 1: extension:'), text).to.have.length(1)
    expect(named('immutable MarketDelegator._EXTENSION:')).to.have.length(1)
    expect(named('immutable IsolatedTrader._SESSION_FEED_ID:')).to.have.length(1)
  })

  /** Lists it as a listing role would that does not check it. */
  async function listAnyway(): Promise<void> {
    const by = deployer.connect(provider)
    const market = IsolatedTrader__factory.connect(trader, by)
    await (await market.proposeOperator(operator.address)).wait()
    await (await market.connect(operator.connect(provider)).acceptOperator()).wait()
    const bank = MarginBank__factory.connect(at('MarginBank'), by)
    await (await bank.announceMarket(trader)).wait()
    await (await bank.listMarket(trader)).wait()
  }

  async function depositMillion(): Promise<void> {
    const by = victim.connect(provider)
    const usdm = TestUSDM__factory.connect(at('TestUSDM'), by)
    await (await usdm.mint(victim.address, MILLION)).wait()
    await (await usdm.approve(at('MarginBank'), MILLION)).wait()
    await (await MarginBank__factory.connect(at('MarginBank'), by).deposit(MILLION)).wait()
  }
})
