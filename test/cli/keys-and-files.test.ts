/** `clearbatch` commands on named API keys, and files of the account's rows. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../api/support/exchange-fixture.ts'
import { runCli } from './support/run-cli.ts'

describe('clearbatch on keys and files of an account', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-keys-'))
  const [walletFile, keyFile] = [join(folder, 'wallet'), join(folder, 'api-key')]
  const env = { CLEARBATCH_CONFIG_DIR: join(folder, 'config'), CLEARBATCH_STATE_DIR: join(folder, 'state') }
  let exchange: ExchangeFixture
  let alice: User
  let connection: string[]

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '250.5')
    await exchange.project()
    await exchange.api.app.listen({ port: 0 })
    const url = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    writeFileSync(walletFile, `${alice.wallet.privateKey}\n`, { mode: 0o600 })
    writeFileSync(keyFile, `${alice.apiKey}\n`, { mode: 0o600 })
    connection = ['--key-file', walletFile, '--api-key-file', keyFile, '--url', url]
  })
  after(async () => {
    await exchange.stop()
    rmSync(folder, { recursive: true })
  })

  const own = (...args: string[]) => runCli([...args, ...connection], { env })

  it('when fills are printed as CSV, the output is the file of the exchange', async () => {
    const { code, out } = await own('account', 'fills', '--csv')
    expect(code).to.equal(0)
    const path = `/v0/fills/by-user/${alice.userId}`
    const file = await exchange.send(alice, 'GET', path, undefined, { accept: 'text/csv' })
    expect(out.trim()).to.equal(file.body.trim().replaceAll('\r\n', out.includes('\r\n') ? '\r\n' : '\n'))
    expect(out).to.match(/^fill_id,order_id,/)
  })

  it('when a named key is created, it is stored in a new file, listed and revoked, and the current key stays', async () => {
    const file = join(folder, 'dashboard.key')
    const create = ['auth', 'api-keys', 'create', 'dashboard', '--scope', 'read']
    expect((await own(...create)).err).to.include('--new-api-key-file')
    const created = await own(...create, '--new-api-key-file', file, '--json')
    expect([created.code, created.err]).to.deep.equal([0, ''])
    expect(JSON.parse(created.out)).to.include({ api_key_file: file, name: 'dashboard', scope: 'read' })
    const apiKey = readFileSync(file, 'utf8').trim()
    expect(created.out).to.not.include(apiKey)
    expect(statSync(file).mode & 0o777).to.equal(0o600)
    const dashboard = { ...alice, apiKey }
    expect((await exchange.get(dashboard, '/v0/me')).body.api_key_name).to.equal('dashboard')
    expect((await own(...create, '--new-api-key-file', file)).err).to.include('expected a new file')
    const listed = JSON.parse((await own('auth', 'api-keys', 'list', '--json')).out)
    expect(listed.map(({ name }: { name: string }) => name)).to.deep.equal(['dashboard', 'default'])
    expect((await own('auth', 'api-keys', 'revoke', 'dashboard')).code).to.equal(0)
    expect((await exchange.get(dashboard, '/v0/me')).status).to.equal(401)
    const again = await own('auth', 'api-keys', 'revoke', 'dashboard')
    expect([again.code === 0, again.err.includes('API_KEY_NOT_FOUND')]).to.deep.equal([false, true])
    expect((await exchange.get(alice, '/v0/me')).status).to.equal(200)
  })
})
