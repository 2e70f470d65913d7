/** The walk of docs/deploy/README.md with mistakes and interruptions, on the anvil command of its section "Rehearsing". */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { HDNodeWallet, JsonRpcProvider, Mnemonic } from 'ethers'
import { contractOf, folderOf, readDeployment, traderOf } from '../../../ignition/deployment.ts'
import { readParameters, requireDelays } from '../../../ignition/handover.ts'
import { ROLES, type Role } from '../../../stack/access.ts'
import { anvilBinary } from '../../../stack/anvil.ts'
import { freePort } from '../../../stack/ports.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { type FaultyNode, startFaultyNode } from '../support/faulty-node.ts'
import { runTask, servedAt } from '../support/tasks.ts'

const MNEMONIC = Mnemonic.fromPhrase('test test test test test test test test test test test junk')
const walletAt = (index: number) => HDNodeWallet.fromMnemonic(MNEMONIC, `m/44'/60'/0'/0/${index}`)
const [deployer, withoutRole] = [walletAt(0), walletAt(9)]
const BTC = 'ignition/markets/local/btc-perp.json'
const PARAMETERS = 'ignition/parameters/local.json'
const ROLE_NAMES = Object.keys(ROLES) as Role[]

describe('the walk of docs/deploy/README.md', function () {
  this.timeout(300_000)
  const deploymentId = `test-walk-${process.pid}`
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-walk-'))
  let chain: ChildProcess
  let url: string
  let node: FaultyNode
  let provider: JsonRpcProvider

  /** Runs a task with one key, as on the networks of MegaETH. */
  /** The options that a task of the deployment has in every test. */
  function deploymentOf(name: string | string[]): Record<string, unknown> {
    if (name === 'show-market') return {}
    return name === 'accept-role' ? { deploymentId } : { deploymentId, parameters: PARAMETERS }
  }
  const runWithKey = (by: HDNodeWallet, name: string | string[], given: Record<string, unknown>) => {
    process.env.MEGAETH_TESTNET_KEY = by.privateKey
    return runTask({ network: 'megaethTestnet' }, name, { ...deploymentOf(name), ...given })
  }
  /** Runs a task with the accounts of the node, as `--network local`. */
  const runLocally = (name: string, given: Record<string, unknown>) =>
    runTask({ network: 'served', config: servedAt(node.url) }, name, { ...deploymentOf(name), ...given })
  const messageOf = (run: Promise<string>): Promise<string> =>
    run.then(
      (text) => `no error: ${text}`,
      ({ message }) => message,
    )

  /** Runs a command without a terminal; `input` is what a pipe sends. */
  async function command(words: readonly string[], environment: Record<string, string>, input?: string) {
    const child = spawn(process.execPath, ['node_modules/.bin/hardhat', ...words], {
      env: { PATH: process.env.PATH, HOME: folder, XDG_CONFIG_HOME: folder, ...environment },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (said += text))
    child.stdin?.end(input)
    const [code] = await once(child, 'close')
    return { code, said }
  }

  before(async () => {
    const [, words = ''] = /^npx anvil (.*)$/m.exec(readFileSync('docs/deploy/README.md', 'utf8')) ?? []
    expect(words, 'docs/deploy/README.md names the anvil command').to.contain('--base-fee')
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    chain = spawn(anvilBinary(), [...words.split(' '), '--port', `${port}`, '--quiet'], {
      stdio: 'ignore',
    })
    provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1 })
    while (!(await fetch(url, { method: 'POST' }).catch(() => null))) await sleep(50)
    node = await startFaultyNode(() => url)
    process.env.MEGAETH_TESTNET_RPC_URL = node.url
    process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT = 'false'
  })

  after(async () => {
    provider.destroy()
    await node?.stop()
    chain.kill()
    for (const name of ['RPC_URL', 'KEY']) delete process.env[`MEGAETH_TESTNET_${name}`]
    delete process.env.HARDHAT_IGNITION_CONFIRM_DEPLOYMENT
    rmSync(folder, { recursive: true })
    rmSync(folderOf(deploymentId), { recursive: true, force: true })
  })
  afterEach(() => node.heal())

  // -------------------------------------------------------------------- before the first transaction

  const modulePath = 'ignition/modules/test-exchange.ts'
  const edited = (change: (file: { Exchange: object; HandOver: object }) => void): string => {
    const path = join(folder, 'parameters.json')
    const file = JSON.parse(readFileSync(PARAMETERS, 'utf8'))
    change(file)
    writeFileSync(path, JSON.stringify(file))
    return path
  }
  const ZERO = `0x${'0'.repeat(40)}`

  it('when the parameters are missing or not edited, nothing is deployed', async () => {
    const deploy = (parameters?: string) =>
      messageOf(runWithKey(deployer, ['ignition', 'deploy'], { modulePath, parameters }))
    const unedited = 'ignition/parameters/megaeth-testnet.json'
    expect(await deploy(unedited)).to.contain(
      'Exchange.treasury must be an address other than zero; received "0x0000',
    )
    for (const role of ROLE_NAMES) {
      const path = edited(({ HandOver }) => Object.assign(HandOver, { [role]: ZERO }))
      expect(await deploy(path)).to.contain(`HandOver.${role} must be an address other than zero`)
    }
    expect(await deploy(undefined)).to.contain('--parameters must name a JSON file, such as')
    expect(await deploy(join(folder, 'absent.json'))).to.contain('absent.json (ENOENT)')
    expect(await deploy('README.md')).to.contain('README.md: expected JSON: ')
    expect(await provider.getTransactionCount(deployer.address)).to.equal(0)
  })

  it('when a delay is outside the bounds of the chain, it names the bounds', () => {
    const parameters = readParameters(PARAMETERS)
    expect(() => requireDelays(parameters, 'p.json', 6343n)).not.to.throw()
    expect(() => requireDelays(parameters, 'p.json', 4326n)).to.throw(
      'p.json: Exchange.roleDelay must be 86400 to 2592000 seconds on chain 4326; received 0',
    )
    const main = {
      ...parameters,
      exchange: { ...parameters.exchange, roleDelay: 172_800, oracleNotice: 86_400 },
    }
    expect(() => requireDelays(main, 'p.json', 4326n)).to.throw(
      'Exchange.listingDelay must be 604800 to 5184000',
    )
  })

  it('when a password or a confirmation is needed and there is no terminal, the error says what to do', async () => {
    const secret = await command(['keystore', 'set', 'MEGAETH_TESTNET_KEY'], {})
    expect(secret.code, secret.said).to.equal(1)
    expect(secret.said).to.contain('standard input is not a terminal').and.to.contain('environment variables')
    const words = [
      '--network',
      'megaethTestnet',
      'ignition',
      'deploy',
      modulePath,
      '--parameters',
      PARAMETERS,
    ]
    const environment = { MEGAETH_TESTNET_RPC_URL: url, MEGAETH_TESTNET_KEY: deployer.privateKey }
    const deploying = await command([...words, '--deployment-id', deploymentId], environment)
    expect(deploying.code, deploying.said).to.equal(1)
    expect(deploying.said).to.contain('set HARDHAT_IGNITION_CONFIRM_DEPLOYMENT=false')
    expect(await provider.getTransactionCount(deployer.address)).to.equal(0)
  })

  it('when a value comes from a pipe, it is stored', async () => {
    const stored = await command(['keystore', 'set', '--dev', 'MEGAETH_TESTNET_KEY'], {}, '0x01\n')
    expect(stored.code, stored.said).to.equal(0)
  })

  it('when --market is missing, the error names the option and an example', async () => {
    for (const [name, given] of [
      ['deploy-market', { market: '' }],
      ['complete-market', { market: '', send: false }],
    ] as const)
      expect(await messageOf(runLocally(name, given))).to.equal(
        '--market must name a JSON file, such as ignition/markets/local/btc-perp.json; received nothing',
      )
  })

  // -------------------------------------------------------------------- a deployment

  it('deploys the exchange and a market on the documented node', async () => {
    await runWithKey(deployer, ['ignition', 'deploy'], { modulePath })
    await runWithKey(deployer, 'deploy-market', { market: BTC })
    expect([...readDeployment(deploymentId).markets.keys()]).to.deep.equal([1])
  })

  it('when the key has none of the missing calls, complete-market --send names the callers', async () => {
    const said = await messageOf(runWithKey(withoutRole, 'complete-market', { market: BTC, send: true }))
    expect(said).to.match(
      new RegExp(
        `^nothing was sent: ${withoutRole.address} has none of the \\d+ missing calls; they are for: operator 0x`,
      ),
    )
  })

  it('when another key hands over or accepts, the error is decoded', async () => {
    const offering = await messageOf(runWithKey(withoutRole, 'hand-over', {}))
    const { treasury } = readParameters(PARAMETERS).holders
    expect(offering).to.equal(
      `offering the role treasury to ${treasury}: AccessManagerUnauthorizedAccount(msgsender ${withoutRole.address}, roleId 0)`,
    )
    expect(await messageOf(runWithKey(withoutRole, 'accept-role', { role: 'admin' }))).to.equal(
      `the role admin is not offered to ${withoutRole.address}: \`hand-over\` offers it to its holder, for a week`,
    )
  })

  it('when every run is interrupted after its first transaction, hand-over and accept-role continue', async () => {
    const interrupted = async (name: string, given: Record<string, unknown>): Promise<string> => {
      node.loseAfter(0)
      const said = await messageOf(runLocally(name, given))
      node.heal()
      return said
    }
    // Five offers, then a run that offers nothing.
    for (let run = 0; run < 5; run++)
      expect(await interrupted('hand-over', {})).to.match(/^offering the role \w+ to 0x\w+: .*lost/)
    expect(await interrupted('hand-over', {})).to.match(/run this again when the holders have accepted$/)
    for (const role of ROLE_NAMES) {
      expect(await interrupted('accept-role', { role })).to.match(/^accepting the role \w+ as 0x\w+: .*lost/)
      expect(await interrupted('accept-role', { role })).to.match(/ has the role \w+ already$/)
    }
    for (let run = 0; run < 5; run++)
      expect(await interrupted('hand-over', {})).to.match(/^renouncing the role \w+: .*lost/)
    expect(await runLocally('hand-over', {})).to.match(/all is handed over$/)

    const deployment = readDeployment(deploymentId)
    const access = ExchangeAccess__factory.connect(contractOf(deployment, 'ExchangeAccess'), provider)
    const { holders } = readParameters(PARAMETERS)
    for (const role of ROLE_NAMES) {
      expect((await access.hasRole(ROLES[role], holders[role]))[0], role).to.equal(true)
      expect((await access.hasRole(ROLES[role], deployer.address))[0], role).to.equal(false)
    }
  })

  it('when the network has the accounts of all roles, one complete-market --send makes the market live', async () => {
    expect(await runLocally('complete-market', { market: BTC, send: true })).to.match(/ is live$/)
  })

  it('when the node limits the blocks of a query, show-market still shows operators and roles', async () => {
    const trader = traderOf(readDeployment(deploymentId), 1)
    const whole = await runLocally('show-market', { trader })
    node.limitLogs(7)
    expect(await runLocally('show-market', { trader })).to.equal(whole)
    expect(whole).to.contain(`operator    ${walletAt(7).address}`)
  })
})
