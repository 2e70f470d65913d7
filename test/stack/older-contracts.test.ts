/** A data directory that an earlier version wrote, whose contracts this version does not deploy. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { localProvider } from '../../stack/accounts.ts'
import { startAnvil } from '../../stack/anvil.ts'
import { dataDirAt } from '../../stack/data-dir.ts'
import { ensureDeployment } from '../../stack/deployment.ts'
import { loadKeys } from '../../stack/keys.ts'
import { StackError } from '../../stack/options.ts'
import { CHAIN_ID } from '../../stack/prepare.ts'
import { startStack } from '../../stack/stack.ts'

describe('npm start in a data directory with older contracts', function () {
  this.timeout(180_000)
  const dir = dataDirAt(mkdtempSync(join(tmpdir(), 'clearbatch-older-')))
  const start = (fresh: boolean) =>
    startStack({ port: 0, dataDir: dir.path, fresh, bots: false, backstop: false }, () => undefined)
  let bank = ''

  /** Deploys this version and replaces one byte of the bank, as if the bank had another source. */
  before(async () => {
    mkdirSync(dir.logs)
    const anvil = await startAnvil({ chainId: CHAIN_ID, stateFile: dir.chainState })
    const provider = localProvider(anvil.url, CHAIN_ID)
    bank = (await ensureDeployment(dir, loadKeys(dir), provider, CHAIN_ID)).contracts.marginBank
    const code = await provider.getCode(bank)
    const at = code.lastIndexOf('a264697066735822') - 2
    const other = code.slice(at, at + 2) === '00' ? '01' : '00'
    await provider.send('anvil_setCode', [bank, `${code.slice(0, at)}${other}${code.slice(at + 2)}`])
    provider.destroy()
    await anvil.stop()
  })
  after(() => rmSync(dir.path, { recursive: true, force: true }))

  it('when it starts without --fresh, it names the folder, the contract and --fresh, and keeps the folder', async () => {
    const [keys, deployment] = [dir.keys, dir.deployment].map((path) => readFileSync(path, 'utf8'))
    const error = await start(false).then(
      () => expect.fail('it started'),
      (thrown: Error) => thrown,
    )
    expect(error).to.be.instanceOf(StackError)
    expect(error.message).to.include(dir.path).and.to.include('--fresh')
    expect(error.message).to.include(`MarginBank at ${bank} has code with hash`)
    expect(readFileSync(dir.keys, 'utf8')).to.equal(keys)
    expect(readFileSync(dir.deployment, 'utf8')).to.equal(deployment)
    expect(existsSync(dir.stackFile)).to.equal(false)
    expect(existsSync(dir.lock)).to.equal(false)
  })

  it('when it starts with --fresh, it deploys this version and is ready', async () => {
    const stack = await start(true)
    const { contracts } = stack.file
    await stack.stop()
    expect(existsSync(dir.stackFile)).to.equal(true)
    expect(contracts.margin_bank).to.match(/^0x[0-9a-f]{40}$/)
  })
})
