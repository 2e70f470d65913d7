/** A full deployment with the tasks of docs/deploy/README.md, from the first transaction to the hand-over, checked at the end. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { HDNodeWallet, JsonRpcProvider, Mnemonic, parseEther, toBeHex } from 'ethers'
import { folderOf, readDeployment } from '../../../ignition/deployment.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { useAnvil } from '../../support/anvil.ts'
import { BACKDOORS, Planting } from '../support/backdoors.ts'
import { runTask } from '../support/tasks.ts'

/** A test vector of BIP-39: the keys of the node's own accounts are public, so the tasks refuse those accounts. */
const MNEMONIC = Mnemonic.fromPhrase(
  'legal winner thank year wave sausage worth useful legal winner thank yellow',
)
const walletAt = (index: number) => HDNodeWallet.fromMnemonic(MNEMONIC, `m/44'/60'/0'/0/${index}`)
const [deployer, treasury, governor, guardian] = [0, 1, 2, 3].map(walletAt) as [
  HDNodeWallet,
  HDNodeWallet,
  HDNodeWallet,
  HDNodeWallet,
]
const operator = walletAt(7)
/** An account with gas and no role. */
const withoutRole = walletAt(9)

const SIGNERS = [4, 5, 6].map(walletAt)
const EXAMPLES = 'ignition/markets/local'

/** A call in the form in which `complete-market` prints it. */
interface PrintedCall {
  /** The role that has to send the call, or `operator`. */
  readonly by: string
  readonly target: string
  readonly data: string
  readonly when: string
}

const CALL = /^\d+\. .*\n +by +(\w+) .*\n +target +(0x\w{40})\n +data +(0x\w+)\n +when +(.*)$/gm

const callsIn = (text: string): PrintedCall[] =>
  [...text.matchAll(CALL)].map(([, by = '', target = '', data = '', when = '']) => ({
    by,
    target,
    data,
    when,
  }))

/** Placeholder code at the address of the main network's collateral token, which no test calls. */
const SOME_CODE = '0x00'

interface Network {
  readonly name: string
  readonly prefix: string
  readonly chainId: number
  readonly module: string
  readonly parameters: string
  /** Whether backdoors are planted in this deployment. The check does the same on each network, and the main one matters most. */
  readonly hasBackdoors: boolean
}

const NETWORKS: readonly Network[] = [
  {
    name: 'megaethTestnet',
    prefix: 'MEGAETH_TESTNET',
    chainId: 6343,
    module: 'test-exchange',
    parameters: 'ignition/parameters/megaeth-testnet.json',
    hasBackdoors: false,
  },
  {
    name: 'megaeth',
    prefix: 'MEGAETH',
    chainId: 4326,
    module: 'exchange',
    parameters: 'ignition/parameters/megaeth.json',
    hasBackdoors: true,
  },
]

for (const network of NETWORKS) {
  describe(`deploying to chain ${network.chainId}`, function () {
    this.timeout(240_000)

    const chain = useAnvil({ chainId: network.chainId })
    const deploymentId = `test-${network.chainId}-${process.pid}`
    const folder = mkdtempSync(join(tmpdir(), 'clearbatch-deploy-'))
    const parameters = join(folder, 'parameters.json')
    const [BTC, RAIN] = ['btc-perp.json', 'rain-tomorrow.json'].map((name) => join(folder, name)) as [
      string,
      string,
    ]
    const eth = join(folder, 'eth-perp.json')
    /** Descriptions of all markets that are deployed. */
    const markets = [BTC, RAIN]

    /** Runs a task with this account's key, as from the command line; returns its output. */
    async function run(
      by: HDNodeWallet,
      name: string | string[],
      given: Record<string, unknown>,
    ): Promise<string> {
      process.env[`${network.prefix}_KEY`] = by.privateKey
      return runTask({ network: network.name }, name, given)
    }

    const complete = (by: HDNodeWallet, market: string, send = true): Promise<string> =>
      run(by, 'complete-market', { market, deploymentId, parameters, send })

    const pass = async (seconds: number): Promise<void> => {
      const provider = new JsonRpcProvider(chain.url)
      await provider.send('evm_increaseTime', [seconds])
      await provider.send('evm_mine', [])
      provider.destroy()
    }

    /** Sends a printed call as a role holder without this repository would: by schedule and execute from any wallet. */
    async function sendPrinted(holder: HDNodeWallet, call: PrintedCall, roleDelay: number): Promise<void> {
      const provider = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1 })
      const from = holder.connect(provider)
      const { target, data, by, when } = call
      if (by === 'operator') await (await from.sendTransaction({ to: target, data })).wait()
      else {
        const access = ExchangeAccess__factory.connect(
          readDeployment(deploymentId).contracts.ExchangeAccess as string,
          from,
        )
        await (await access.schedule(target, data, 0)).wait()
        await pass(roleDelay + 1)
        const earliest = Date.parse(when.replace('from ', '').replace(' UTC', 'Z')) / 1000
        const now = (await provider.getBlock('latest'))?.timestamp ?? 0
        if (earliest > now) await pass(earliest - now + 1)
        await (await access.execute(target, data)).wait()
      }
      provider.destroy()
    }

    async function check(handedOver: boolean): Promise<{ text: string; failed: boolean }> {
      const described = markets.join(',')
      const text = await run(deployer, 'check-deployment', {
        deploymentId,
        parameters,
        markets: described,
        handedOver,
      })
      const failed = process.exitCode === 1
      process.exitCode = 0
      return { text, failed }
    }

    before(async () => {
      process.env[`${network.prefix}_RPC_URL`] = chain.url
      process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT = 'false'
      for (const path of markets) {
        const market = JSON.parse(readFileSync(join(EXAMPLES, basename(path)), 'utf8'))
        market.operators = [operator.address]
        market.oracle.signers = SIGNERS.slice(0, market.oracle.signers.length).map(({ address }) => address)
        writeFileSync(path, JSON.stringify(market))
      }
      const file = JSON.parse(readFileSync(network.parameters, 'utf8'))
      file.Exchange.treasury = treasury.address
      file.HandOver = {
        admin: governor.address,
        listing: governor.address,
        parameters: governor.address,
        guardian: guardian.address,
        treasury: treasury.address,
      }
      const provider = new JsonRpcProvider(chain.url)
      for (const { address } of [deployer, treasury, governor, guardian, operator, withoutRole])
        await provider.send('anvil_setBalance', [address, toBeHex(parseEther('1000'))])
      if (file.Exchange.usdm !== undefined)
        await provider.send('anvil_setCode', [file.Exchange.usdm, SOME_CODE])
      provider.destroy()
      writeFileSync(parameters, JSON.stringify(file))
    })

    after(() => {
      for (const name of [`${network.prefix}_KEY`, `${network.prefix}_RPC_URL`]) delete process.env[name]
      delete process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT
      rmSync(folder, { recursive: true })
      rmSync(folderOf(deploymentId), { recursive: true, force: true })
    })

    it('deploys the exchange and its markets', async () => {
      await run(deployer, ['ignition', 'deploy'], {
        modulePath: `ignition/modules/${network.module}.ts`,
        parameters,
        deploymentId,
      })
      for (const market of [BTC, RAIN]) {
        await run(deployer, 'deploy-market', { market, deploymentId, parameters })
      }
      expect([...readDeployment(deploymentId).markets.keys()]).to.deep.equal([1, 2])
    })

    it('when nothing is handed over yet, the check reports only markets, signers and operators that are pending', async () => {
      const { text, failed } = await check(false)
      const wrong = text.split('\n').filter((line) => line.startsWith('  WRONG'))
      const pending = /WRONG market [12]: (listed|signers of feed|threshold of feed|operators)\b/
      expect(wrong.filter((line) => !pending.test(line))).to.deep.equal([])
      expect(wrong.filter((line) => line.includes(': listed'))).to.have.length(2)
      expect(failed).to.equal(true)
    })

    it('hands over every role and lists the announced markets after the delay', async () => {
      await run(deployer, 'hand-over', { deploymentId, parameters })
      for (const role of ['admin', 'listing', 'parameters'])
        await run(governor, 'accept-role', { role, deploymentId })
      await run(guardian, 'accept-role', { role: 'guardian', deploymentId })
      await run(treasury, 'accept-role', { role: 'treasury', deploymentId })
      const said = await run(deployer, 'hand-over', { deploymentId, parameters })
      expect(said).to.match(/all is handed over$/)

      for (const market of [BTC, RAIN]) {
        expect(await complete(operator, market)).to.match(/^done: IsolatedTrader\.acceptOperator\(\)\n/)
        expect(await complete(governor, market)).to.match(/^scheduled for .* UTC: MarginBank\.listMarket/)
      }
      const { listingDelay } = JSON.parse(readFileSync(parameters, 'utf8')).Exchange
      await pass(listingDelay + 120)
      for (const market of [BTC, RAIN]) expect(await complete(governor, market)).to.match(/ is live$/)
    })

    it('passes every check after the hand-over', async () => {
      const { text, failed } = await check(true)
      expect(text, text).not.to.contain('WRONG')
      expect(text).to.match(/\d{2,} as meant, 0 not$/)
      expect(failed).to.equal(false)
    })

    it('when a market is added later, it prints the missing calls, and the market is live once they are sent', async () => {
      const terms = { ...JSON.parse(readFileSync(BTC, 'utf8')), market_id: 3, symbol: 'ETH-PERP' }
      writeFileSync(eth, JSON.stringify(terms))
      const said = await run(withoutRole, 'deploy-market', { market: eth, deploymentId, parameters })
      expect(said).to.match(/market 3 \(ETH-PERP\) 0x\w{40} is live after 9 more calls:/)
      const other = join(folder, 'other.json')
      writeFileSync(other, JSON.stringify({ ...terms, taker_fee: '0.0004' }))
      await complete(governor, other).then(
        () => expect.fail('complete-market accepted a market with other terms'),
        ({ message }) => expect(message).to.match(/^nothing was sent: market 3: parameters: expected/),
      )
      const { roleDelay } = JSON.parse(readFileSync(parameters, 'utf8')).Exchange
      const holders: Record<string, HDNodeWallet> = {
        admin: governor,
        listing: governor,
        parameters: governor,
        treasury,
        operator,
      }

      for (let round = 0; round < 4; round++) {
        const asked = callsIn(await complete(withoutRole, eth, false)).filter(
          ({ when }) => !when.startsWith('when'),
        )
        for (const call of asked) await sendPrinted(holders[call.by] as HDNodeWallet, call, roleDelay)
      }
      expect(await complete(withoutRole, eth, false)).to.match(/^market 3 \(ETH-PERP\) 0x\w{40} is live$/)
      markets.push(eth)
      const { text } = await check(true)
      expect(text).to.match(/, 0 not$|as meant, 0 not/)
    })

    it('when a market has an unexpected operator, the check fails and names it', async () => {
      const file = JSON.parse(readFileSync(BTC, 'utf8'))
      const tampered = join(folder, 'tampered.json')
      writeFileSync(tampered, JSON.stringify({ ...file, operators: [guardian.address] }))
      const text = await run(deployer, 'check-deployment', {
        deploymentId,
        parameters,
        markets: [tampered, RAIN, eth].join(','),
        handedOver: true,
      })
      expect(process.exitCode).to.equal(1)
      process.exitCode = 0
      expect(text).to.contain('WRONG market 1: operators')
      expect(text).to.contain(', 1 not')
    })

    it('when ether is forced on the bank, the check fails until restoreLatch moves it to the latch', async () => {
      const provider = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1 })
      const from = withoutRole.connect(provider)
      const address = readDeployment(deploymentId).contracts.MarginBank ?? ''
      await (await from.sendTransaction({ data: `0x73${address.slice(2)}ff`, value: 1n })).wait()
      const { text, failed } = await check(true)
      await (await MarginBank__factory.connect(address, from).restoreLatch()).wait()
      provider.destroy()
      expect(text).to.match(/WRONG bank: ether, none while it is not paused .*\n/)
      expect(text).to.contain(', 1 not')
      expect(failed).to.equal(true)
      expect((await check(true)).failed).to.equal(false)
    })

    it('when the bank is paused or was unpaused early, the check passes', async () => {
      const provider = new JsonRpcProvider(chain.url, undefined, { cacheTimeout: -1 })
      const bank = MarginBank__factory.connect(
        readDeployment(deploymentId).contracts.MarginBank ?? '',
        guardian.connect(provider),
      )
      await (await bank.pause()).wait()
      const paused = await check(true)
      expect(await provider.getBalance(bank)).to.be.greaterThan(0n)
      await (await bank.unpause()).wait()
      provider.destroy()
      expect(paused.failed, paused.text).to.equal(false)
      expect((await check(true)).failed).to.equal(false)
    })

    if (network.hasBackdoors)
      describe('given one backdoor', () => {
        let planting: Planting
        let untouched: string

        before(() => {
          const { roleDelay, listingDelay } = JSON.parse(readFileSync(parameters, 'utf8')).Exchange
          const deployment = readDeployment(deploymentId)
          const roles = { roleDelay, listingDelay, governor, treasury, thief: withoutRole }
          planting = new Planting({ url: chain.url, deployment, ...roles })
        })
        beforeEach(async () => {
          untouched = await planting.provider.send('evm_snapshot', [])
        })
        afterEach(() => planting.provider.send('evm_revert', [untouched]))
        after(() => planting.provider.destroy())

        for (const backdoor of BACKDOORS)
          it(`when it is ${backdoor.name}, the check fails and cites its event, contract and block`, async () => {
            const block = await planting.provider.getBlockNumber()
            await backdoor.plant(planting)
            const { text, failed } = await check(true)
            expect(failed).to.equal(true)
            const line = text
              .split('\n')
              .find((each) => /^ +WRONG /.test(each) && each.includes(backdoor.line(planting)))
            expect(line, text).not.to.equal(undefined)
            if (backdoor.event === null) return
            const [event, contract] = backdoor.event
            const address = contract === 'IsolatedTrader' ? planting.market : planting.at(contract)
            const cited = new RegExp(`\\(${event} of ${contract} ${address}, block (\\d+)\\)`).exec(
              line ?? '',
            )
            expect(Number(cited?.[1]), line).to.be.greaterThan(block)
          })

        it('when an offer, an operation and an announcement have lapsed, the check passes', async () => {
          for (const name of ['an open offer of a role', 'a scheduled operation', 'an announced market'])
            await BACKDOORS.find((backdoor) => backdoor.name === name)?.plant(planting)
          await planting.pass(80 * 86_400)
          const { text, failed } = await check(true)
          expect(failed, text).to.equal(false)
        })
      })

    it('when the code at an address differs, the check fails and names the contract', async () => {
      const provider = new JsonRpcProvider(chain.url)
      const bank = readDeployment(deploymentId).contracts.MarginBank
      const code = await provider.getCode(bank ?? '')
      await provider.send('anvil_setCode', [bank, `${code.slice(0, -8)}00000000`])
      const { text, failed } = await check(true)
      await provider.send('anvil_setCode', [bank, code])
      provider.destroy()
      expect(text).to.match(/WRONG code of MarginBank .*differs from byte/)
      expect(failed).to.equal(true)
    })
  })
}
