import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { getCreateAddress } from 'ethers'
import { after, before, beforeEach, describe, it } from 'mocha'
import { localProvider } from '../../stack/accounts.ts'
import { type Anvil, startAnvil } from '../../stack/anvil.ts'
import { dataDirAt } from '../../stack/data-dir.ts'
import { type Deployment, ensureDeployment } from '../../stack/deployment.ts'
import { loadKeys } from '../../stack/keys.ts'

const CHAIN_ID = 6343

const addressAt = (from: string, nonce: number): string => getCreateAddress({ from, nonce })

describe('stack/deployment, in a data directory of an earlier start', function () {
  this.timeout(60_000)
  const dir = dataDirAt(mkdtempSync(join(tmpdir(), 'clearbatch-deployment-')))
  const keys = loadKeys(dir)
  let anvil: Anvil
  let provider: ReturnType<typeof localProvider>
  let deployment: Deployment
  let snapshot: string
  const ensure = () => ensureDeployment(dir, keys, provider, CHAIN_ID)
  const refusal = () =>
    ensure().then(
      () => expect.fail('it started'),
      (error: Error) => error.message,
    )

  before(async () => {
    anvil = await startAnvil()
    provider = localProvider(anvil.url, CHAIN_ID)
    deployment = await ensure()
  })
  beforeEach(async () => {
    writeFileSync(dir.deployment, JSON.stringify(deployment))
    snapshot = await provider.send('evm_snapshot', [])
  })
  after(async () => {
    provider?.destroy()
    await anvil?.stop()
    rmSync(dir.path, { recursive: true, force: true })
  })

  /** Replaces the last byte before the metadata of the code at the address. */
  async function changeCode(address: string): Promise<void> {
    const code = await provider.getCode(address)
    const at = code.lastIndexOf('a264697066735822') - 2
    const other = code.slice(at, at + 2) === '00' ? '01' : '00'
    await provider.send('anvil_setCode', [address, `${code.slice(0, at)}${other}${code.slice(at + 2)}`])
  }

  it('when every contract has the code of this version, it reuses the deployment', async () => {
    expect(await ensure()).to.deep.equal(deployment)
  })

  it('when a contract has other code, it refuses and names the contract, its code and --fresh', async () => {
    const { backstop } = deployment.contracts
    await changeCode(backstop)
    const message = await refusal()
    await provider.send('evm_revert', [snapshot])
    expect(message).to.include('deployed by another version').and.to.include('--fresh')
    expect(message).to.match(new RegExp(`Backstop at ${backstop} has code with hash 0x[0-9a-f]{64}`))
    expect(message).to.not.include('MarginBank')
  })

  it('when the contract of a market has other code, it refuses and names its address', async () => {
    const trader = deployment.traders['3'] ?? ''
    await changeCode(trader)
    const message = await refusal()
    await provider.send('evm_revert', [snapshot])
    expect(message).to.include(`IsolatedTrader at ${trader} has code`).and.to.include('--fresh')
  })

  it('when a linked library has other code, it refuses and names the library', async () => {
    const code = await provider.getCode(deployment.contracts.extension)
    const creations = await Promise.all(
      Array.from({ length: 40 }, (_, nonce) => provider.getCode(addressAt(keys.deployer.address, nonce))),
    )
    const libraries = creations.flatMap((deployed, nonce) => {
      const address = addressAt(keys.deployer.address, nonce)
      return deployed !== '0x' && code.includes(address.slice(2).toLowerCase()) ? [address] : []
    })
    expect(libraries.length).to.be.greaterThan(0)
    await changeCode(libraries[0] ?? '')
    const message = await refusal()
    await provider.send('evm_revert', [snapshot])
    expect(message).to.match(/\w+Lib at 0x[0-9a-f]{40} has code/)
  })

  for (const content of [
    '{}',
    '[]',
    '{"contracts":{}}',
    '{"contracts":{"marginBank":"0x12"},"traders":{}}',
    '{"contracts":null,"traders":null}',
  ])
    it(`when deployment.json contains ${content}, it refuses in one line that names the file and --fresh`, async () => {
      writeFileSync(dir.deployment, content)
      expect(await refusal())
        .to.include(dir.deployment)
        .and.to.include('--fresh')
        .and.not.include('\n')
    })

  it('when the deployment lacks a contract of this version, it refuses and names it', async () => {
    const { extension: _, ...contracts } = deployment.contracts
    writeFileSync(dir.deployment, JSON.stringify({ ...deployment, contracts }))
    expect(await refusal())
      .to.include('MarketExtension is not in deployment.json')
      .and.to.include('--fresh')
  })

  it('when a market has other terms than its seed, it refuses and names the term, both values and --fresh', async () => {
    const { 1: bitcoin = '', 2: apple = '', ...others } = deployment.traders
    const traders = { ...others, 1: apple, 2: bitcoin }
    writeFileSync(dir.deployment, JSON.stringify({ ...deployment, traders }))
    const message = await refusal()
    expect(message).to.match(new RegExp(`market BTC-PERP at ${apple} has marketId 2 instead of 1`))
    expect(message).to.include('tick').and.to.include('--fresh')
  })

  it('when the deployment lacks a seeded market, it refuses and names the market and --fresh', async () => {
    const { 4: _, ...traders } = deployment.traders
    writeFileSync(dir.deployment, JSON.stringify({ ...deployment, traders }))
    expect(await refusal())
      .to.match(/market \S+ is not in deployment.json/)
      .and.to.include('--fresh')
  })

  it('when the chain has none of the contracts, it refuses and names the reason and --fresh', async () => {
    const contracts = { ...deployment.contracts, marginBank: `0x${'77'.repeat(20)}` }
    writeFileSync(dir.deployment, JSON.stringify({ ...deployment, contracts }))
    expect(await refusal())
      .to.include('killed before the chain was saved')
      .and.to.include('--fresh')
  })
})
