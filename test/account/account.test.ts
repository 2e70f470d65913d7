/** The commands of `npm run account` over a real api: what they print, and what they refuse. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { openSession } from '../../account/connect.ts'
import { runAccount } from '../../account/run.ts'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../api/support/exchange-fixture.ts'

describe('npm run account', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-account-'))
  const [walletFile, keyFile] = [join(folder, 'wallet'), join(folder, 'api-key')]
  let exchange: ExchangeFixture
  let alice: User
  let connection: string[]

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '250.5')
    await exchange.project()
    await exchange.api.app.listen({ port: 0 })
    const { port } = exchange.api.app.server.address() as AddressInfo
    writeFileSync(walletFile, `${alice.wallet.privateKey}\n`)
    writeFileSync(keyFile, `${alice.apiKey}\n`)
    connection = ['--wallet', walletFile, '--api-key-file', keyFile, '--url', `http://127.0.0.1:${port}`]
  })
  after(async () => {
    await exchange.stop()
    rmSync(folder, { recursive: true })
  })

  /** Captures what is printed. */
  async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const printed = { out: '', err: '' }
    const { log, error } = console
    const write = process.stdout.write
    console.log = (text: string) => {
      printed.out += `${text}\n`
    }
    console.error = (text: string) => {
      printed.err += `${text}\n`
    }
    process.stdout.write = ((text: string) => {
      printed.out += text
      return true
    }) as typeof write
    try {
      return { code: await runAccount(args, {}), ...printed }
    } finally {
      Object.assign(console, { log, error })
      process.stdout.write = write
    }
  }

  it('when a command reads, it prints lines for a person and JSON for a program', async () => {
    const { code, out, err } = await run('balance', ...connection)
    expect([code, err]).to.deep.equal([0, ''])
    expect(out).to.match(/^total +250\.5\n/)
    expect(out).to.not.include('e18_raw')
    const json = JSON.parse((await run('balance', '--json', ...connection)).out)
    expect(json).to.include({ free: 250.5, free_e18_raw: '250500000000000000000' })
    const { out: table } = await run('transactions', ...connection)
    expect(table).to.match(/^created_at +transaction_type +amount .*\n.* deposit +250\.5 /)
    const { out: csv } = await run('transactions', '--csv', '--type', 'deposit', ...connection)
    expect(csv).to.match(/^id,transaction_type,amount,.*\r\n.*,deposit,250\.5,250\.5,,USDM,,,0x,.*\r\n$/)
    expect((await run('withdraw', 'list', ...connection)).out).to.equal('none\n')
  })

  it('when arguments are wrong, it prints the usage and exits with 2 before anything is sent', async () => {
    const cases: [string[], string][] = [
      [[], 'expected a command; received nothing'],
      [['gift'], 'expected a command; received gift'],
      [['deposit'], 'expected <amount>; received none'],
      [['balance', 'x'], 'expected no argument; received x'],
      [['balance', '--private-key', '0x1'], "Unknown option '--private-key'"],
      [['transactions', '--type', 'gift'], '--type must be one of deposit'],
    ]
    for (const [args, problem] of cases) {
      const { code, out, err } = await run(...args)
      expect([code, out], args.join(' ')).to.deep.equal([2, ''])
      expect(err).to.include(problem)
      expect(err).to.match(/^usage: npm run account -- /m)
    }
    const { code, out } = await run('--help')
    expect(code).to.equal(0)
    for (const name of ['deposit <amount>', 'withdraw complete', 'add-margin <symbol> <amount>', 'faucet'])
      expect(out).to.include(name)
  })

  it('when the exchange refuses, it prints code and field, and exits with 1', async () => {
    const refused = await run('transactions', '--from', 'yesterday', ...connection)
    expect([refused.code, refused.out]).to.deep.equal([1, ''])
    expect(refused.err).to.match(/code: INVALID_FIELD\n {2}field: from\n {2}expected: a time/)
    const nothing = await run('withdraw', 'complete', ...connection)
    expect([nothing.code, nothing.err]).to.deep.equal([1, 'nothing is pending: request a withdrawal first\n'])
    const symbol = await run('add-margin', 'NONE', '1', ...connection)
    expect(symbol.err).to.match(/^the market must be one of BTC-PERP, .*; received NONE\n$/)
  })

  it('when a key is rotated, it is stored, the old one is refused, and me shows the new one', async () => {
    const rotated = await run('rotate-key', '--scope', 'read', '--json', ...connection)
    expect([rotated.code, rotated.err]).to.deep.equal([0, ''])
    const { api_key_file, prefix, scope, ...rest } = JSON.parse(rotated.out)
    expect([api_key_file, scope, 'api_key' in rest]).to.deep.equal([keyFile, 'read', false])
    expect(readFileSync(keyFile, 'utf8').startsWith(prefix)).to.equal(true)
    expect((await exchange.get(alice, '/v0/me')).status).to.equal(401)
    const me = JSON.parse((await run('me', '--json', ...connection)).out)
    expect(me.api_key).to.include({ prefix, scope: 'read' })
    const missing = await run('create-key', ...connection)
    expect(missing.err).to.include('--issuer-url')
    const refused = await run('faucet', ...connection)
    expect([refused.code, /code: (\w+)/.exec(refused.err)?.[1]]).to.deep.equal([1, 'READ_ONLY_KEY'])
    alice = { ...alice, apiKey: readFileSync(keyFile, 'utf8').trim() }
  })

  it('when a new API key is stored, only the owner can read its file, and the next command uses it', async () => {
    const file = join(folder, 'fresh-key')
    const values = {
      account: undefined,
      stack: undefined,
      json: false,
      'rpc-url': undefined,
      'issuer-url': undefined,
    }
    const session = await openSession(
      { ...values, wallet: walletFile, 'api-key-file': file, url: 'http://127.0.0.1:1' },
      {},
    )
    expect(session.authorization).to.equal(undefined)
    expect(session.storeKey(alice.apiKey)).to.equal(file)
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).to.deep.equal([
      `${alice.apiKey}\n`,
      0o600,
    ])
    const { code, out, err } = await run('balance', ...connection.with(3, file))
    expect(err).to.equal('')
    expect([code, out.startsWith('total')]).to.deep.equal([0, true])
  })
})
