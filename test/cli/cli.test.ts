/** `clearbatch` over a real api: what it prints, and what it refuses. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { encryptKeystoreJsonSync, Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../api/support/exchange-fixture.ts'
import { startProxy } from './support/proxy.ts'
import { runCli } from './support/run-cli.ts'

describe('clearbatch, against an exchange', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-cli-'))
  const [walletFile, keyFile] = [join(folder, 'wallet'), join(folder, 'api-key')]
  const env = { CLEARBATCH_CONFIG_DIR: join(folder, 'config'), CLEARBATCH_STATE_DIR: join(folder, 'state') }
  let exchange: ExchangeFixture
  let alice: User
  let url: string
  let connection: string[]

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '250.5')
    await exchange.project()
    await exchange.api.app.listen({ port: 0 })
    url = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    writeFileSync(walletFile, `${alice.wallet.privateKey}\n`, { mode: 0o600 })
    writeFileSync(keyFile, `${alice.apiKey}\n`, { mode: 0o600 })
    connection = ['--key-file', walletFile, '--api-key-file', keyFile, '--url', url]
  })
  after(async () => {
    await exchange.stop()
    rmSync(folder, { recursive: true })
  })

  const cli = (...args: string[]) => runCli(args, { env })
  const own = (...args: string[]) => cli(...args, ...connection)

  it('when a command reads, it prints lines for a person and JSON for a program', async () => {
    const { code, out, err } = await own('account', 'balance')
    expect([code, err]).to.deep.equal([0, ''])
    expect(out).to.match(/^total +250\.5\n/)
    expect(out).to.not.include('e18_raw')
    const json = JSON.parse((await own('account', 'balance', '--json')).out)
    expect(json).to.include({ free: 250.5, free_e18_raw: '250500000000000000000' })
    const { out: table } = await own('account', 'transactions')
    expect(table).to.match(/^created_at +transaction_type +amount .*\n.* deposit +250\.5 /)
    const { out: csv } = await own('account', 'transactions', '--csv', '--type', 'deposit')
    expect(csv).to.match(/^id,transaction_type,amount,.*\r\n.*,deposit,250\.5,250\.5,,USDM,,,0x,.*\r\n$/)
    expect((await own('account', 'withdrawals')).out).to.equal('none\n')
    const rows = (await cli('market', 'list', '--jsonl', '--url', url)).out.trim().split('\n')
    expect(rows.map((row) => JSON.parse(row).symbol)).to.include('BTC-PERP')
  })

  it('when the command line is wrong, it names the nearest valid word in one line, and exits with 2', async () => {
    const cases: [string[], string][] = [
      [['balanc'], 'unknown command balanc.'],
      [['acount', 'balance'], 'Did you mean account?'],
      [['account', 'balanc'], 'unknown command balanc after account. Did you mean balance?'],
      [['account'], 'account needs one of: balance, positions'],
      [['account', 'deposit'], 'account deposit expects <amount>; received none'],
      [['account', 'balance', 'x'], 'account balance expects no argument; received x'],
      [['account', 'balance', '--private-key', '0x1'], 'unknown flag --private-key of account balance.'],
      [['account', 'fills', '--markte', 'X'], 'Did you mean --market?'],
      [['account', 'transactions', '--type', 'gift'], '--type must be one of deposit'],
      [['order', 'place', '--market', 'BTC-PERP'], '--side is required'],
      [['market', 'list', '--url', 'nowhere'], '--url must be an address'],
      [['market', 'list', '--profile', 'mainnet'], 'the profile mainnet has no address yet'],
      [
        [
          'data',
          'download',
          'gifts',
          '--market',
          'X',
          '--from',
          '2026-01-01',
          '--to',
          '2026-01-02',
          '-o',
          'x.csv',
        ],
        'expected one of fills',
      ],
    ]
    for (const [args, problem] of cases) {
      const { code, out, err } = await cli(...args)
      expect([code, out], args.join(' ')).to.deep.equal([2, ''])
      expect(err, args.join(' '))
        .to.include(problem)
        .and.to.match(/^[^\n]+\n$/)
    }
  })

  it('when help is requested, every command is listed with an example and exits with 0', async () => {
    const { code, out } = await cli('--help')
    expect(code).to.equal(0)
    for (const name of ['account deposit <amount>', 'order place', 'batch verify', 'mcp', 'start'])
      expect(out).to.include(name)
    const help = (await cli('order', 'place', '--help')).out
    expect(help).to.include('--side LONG|SHORT').and.to.include('example: clearbatch order place')
  })

  it('when an order is placed, its preview comes first, and --dry-run places nothing', async () => {
    const order = [
      'order',
      'place',
      '--market',
      'BTC-PERP',
      '--side',
      'LONG',
      '--quantity',
      '1',
      '--price',
      '100',
    ]
    const preview = JSON.parse((await own(...order, '--dry-run', '--json')).out)
    expect(preview).to.include({ status: 'OPEN', reserved_margin: 100.05 })
    expect(JSON.parse((await own('order', 'list', '--json')).out)).to.deep.equal([])
    const asks = await own(...order)
    expect([asks.code, asks.err]).to.deep.equal([
      2,
      `${asks.err.split('\n').slice(0, -2).join('\n')}\nthis command asks before it acts, and there is no terminal: pass --yes or --dry-run\n`,
    ])
    const placed = JSON.parse((await own(...order, '--yes', '--label', 'mine', '--json')).out)
    expect(placed).to.include({ status: 'OPEN', client_order_id: 'mine' })
    await exchange.project()
    for (const name of [placed.order_hash, placed.order_id, 'mine'])
      expect((await own('order', 'explain', name)).out).to.include('LONG 1 BTC-PERP LIMIT is OPEN')
    expect((await own('order', 'cancel', 'mine')).out).to.include('CANCELLED')
  })

  it('when a bracket or a ladder is placed, all of its orders are live, and closing without a position places none', async () => {
    const size = ['--market', 'BTC-PERP', '--side', 'LONG', '--quantity', '1']
    const bracket = await own(
      'bracket',
      ...size,
      '--price',
      '100',
      '--take-profit',
      '120',
      '--stop-loss',
      '90',
      '--yes',
      '--json',
    )
    expect(JSON.parse(bracket.out).map(({ order_type }: { order_type: string }) => order_type)).to.deep.equal(
      ['LIMIT', 'TAKE_PROFIT_MARKET', 'STOP_LOSS_MARKET'],
    )
    const scale = await own(
      'scale',
      ...size,
      '--from',
      '99',
      '--to',
      '97',
      '--count',
      '3',
      '--leverage',
      '2',
      '--yes',
      '--json',
    )
    expect(JSON.parse(scale.out).map(({ price }: { price: number }) => price)).to.deep.equal([99, 98, 97])
    expect((await own('close', '--all', '--yes')).out).to.equal('none\n')
    const swept = JSON.parse((await own('order', 'cancel', '--all', '--json')).out)
    expect(swept).to.have.length(6)
  })

  it('when the exchange refuses, it prints code and field, and exits with 1', async () => {
    const refused = await own('account', 'transactions', '--from', 'yesterday')
    expect([refused.code, refused.out]).to.deep.equal([1, ''])
    expect(refused.err).to.match(/code: INVALID_FIELD\n {2}field: from\n {2}expected: a time/)
    const asJson = await own('account', 'transactions', '--from', 'yesterday', '--json')
    expect(JSON.parse(asJson.err)).to.nested.include({
      'details.code': 'INVALID_FIELD',
      'details.field': 'from',
    })
    const nothing = await own('account', 'withdraw-complete')
    expect([
      nothing.code,
      nothing.err.startsWith('nothing is pending: request a withdrawal first'),
    ]).to.deep.equal([1, true])
    const symbol = await own('account', 'margin', '--market', 'NONE', '--yes', '1')
    expect(symbol.err).to.match(/^the market must be one of BTC-PERP, .*; received NONE\n$/)
  })

  it('when the exchange cannot be reached or the credential is refused, the exit codes are 5, 3 and 4', async () => {
    const nowhere = ['--url', 'http://127.0.0.1:4', '--timeout', '1']
    const silent = await cli('market', 'list', ...nowhere)
    expect([silent.code, silent.err.includes('ECONNREFUSED')]).to.deep.equal([5, true])
    expect(silent.err).to.not.match(/^\s+at /m)
    const noNode = await own('account', 'deposit', '5', '--yes', '--rpc-url', 'http://127.0.0.1:4/secret')
    expect(noNode.code, noNode.err).to.equal(5)
    expect(noNode.err).to.include('no answer from the node at http://127.0.0.1:4 (').and.not.include('secret')
    const wrong = join(folder, 'wrong')
    writeFileSync(wrong, 'cb_wrong\n', { mode: 0o600 })
    const refused = await cli('account', 'balance', '--url', url, '--api-key-file', wrong)
    expect([refused.code, refused.err.includes('clearbatch auth login')]).to.deep.equal([4, true])
    expect(refused.err).not.to.include('..')
    expect((await cli('account', 'balance', '--url', url)).code).to.equal(4)
    const lost = await cli('order', 'cancel', '--all', ...nowhere, '--api-key-file', keyFile)
    expect([lost.code, lost.err.includes('outcome: unknown')]).to.deep.equal([3, true])
    const unread = await cli('order', 'cancel', '1-1', ...nowhere, '--api-key-file', keyFile)
    expect([unread.code, unread.err.includes('outcome')]).to.deep.equal([5, false])
  })

  it('when a secret cannot be used, the file is named, and a file that others can read warns', async () => {
    const missing = await cli('order', 'list', '--url', url, '--api-key-file', join(folder, 'none'))
    expect([missing.code, missing.err]).to.deep.equal([
      1,
      `the API key in ${join(folder, 'none')} cannot be read (ENOENT): name a file that this user can read\n`,
    ])
    const open = join(folder, 'open')
    writeFileSync(open, `${alice.apiKey}\n`, { mode: 0o644 })
    const warned = await cli('account', 'balance', '--url', url, '--api-key-file', open)
    expect([warned.code, warned.err.includes(`chmod 600 ${open}`)]).to.deep.equal([0, true])
    const broken = join(folder, 'broken')
    writeFileSync(broken, 'no key\n', { mode: 0o600 })
    const sign = ['sign', '--market', 'BTC-PERP', '--side', 'LONG', '--quantity', '1', '--url', url]
    expect((await cli(...sign, '--key-file', broken)).err).to.include('neither a private key')
    const keystore = join(folder, 'keystore')
    writeFileSync(
      keystore,
      encryptKeystoreJsonSync(
        { address: alice.wallet.address, privateKey: alice.wallet.privateKey },
        'pass',
        { scrypt: { N: 1024 } },
      ),
      { mode: 0o600 },
    )
    const signed = await runCli([...sign, '--key-file', keystore], {
      env: { ...env, CLEARBATCH_PASSWORD: 'pass' },
    })
    expect(JSON.parse(signed.out)).to.include({ market_id: 1, side: 'LONG', order_type: 'MARKET' })
    const refused = await runCli([...sign, '--key-file', keystore], {
      env: { ...env, CLEARBATCH_PASSWORD: 'no' },
    })
    expect(refused.err).to.include('the password does not decrypt the keystore')
  })

  it('when a secret is passed by standard input, it is used, and a profile does not store it', async () => {
    const piped = async (...args: string[]) => {
      const child = spawn(process.execPath, ['cli/main.ts', ...args, '--url', url, '--api-key-file', '-'], {
        env: { ...process.env, ...env },
        stdio: ['pipe', 'pipe', 'pipe'],
      })
      child.stdin.end(`${alice.apiKey}\n`)
      const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      return { code: child.exitCode, out, err }
    }
    const { code, out, err } = await piped('auth', 'whoami', '--json')
    expect([code, err, JSON.parse(out).address]).to.deep.equal([0, '', alice.address])
    const login = await piped('auth', 'login', '--profile', 'custom')
    expect([login.code, login.err.includes('cannot name standard input')]).to.deep.equal([2, true])
  })

  it('when a profile is stored, the next command uses it, and another chain than its own is never signed for', async () => {
    const login = await cli('auth', 'login', '--profile', 'custom', ...connection, '--json')
    expect([login.code, JSON.parse(login.out).address]).to.deep.equal([0, alice.address])
    const config = join(folder, 'config', 'config.json')
    expect(statSync(config).mode & 0o777).to.equal(0o600)
    expect(readFileSync(config, 'utf8')).to.not.include(alice.apiKey)
    expect((await cli('auth', 'whoami', '--json')).code).to.equal(0)
    const { profiles } = JSON.parse(readFileSync(config, 'utf8'))
    const moved = { current: 'custom', profiles: { custom: { ...profiles.custom, chain_id: 1 } } }
    writeFileSync(config, JSON.stringify(moved))
    const place = await cli(
      'order',
      'place',
      '--market',
      'BTC-PERP',
      '--side',
      'LONG',
      '--quantity',
      '1',
      '--yes',
    )
    expect([place.code, place.err.includes('nothing was signed')]).to.deep.equal([1, true])
    const mainnet = { current: 'mainnet', profiles: { mainnet: profiles.custom } }
    writeFileSync(config, JSON.stringify(mainnet))
    expect((await cli('account', 'faucet')).err).to.include('the profile mainnet does not match chain')
    writeFileSync(config, '{')
    expect((await cli('auth', 'whoami')).err).to.include('cannot be read as JSON')
    rmSync(join(folder, 'config'), { recursive: true })
    mkdirSync(join(folder, 'config'))
  })

  it('when history is downloaded, the file has all rows, and an interrupted download continues', async () => {
    const file = join(folder, 'auctions.csv.gz')
    const args = [
      'data',
      'download',
      'auctions',
      '--market',
      'BTC-PERP',
      '--from',
      '2020-01-01',
      '--to',
      '2100-01-01',
      '-o',
      file,
      '--url',
      url,
    ]
    const stopping = AbortSignal.abort()
    const stopped = await runCli(args, { env, stopping })
    expect([stopped.code, stopped.err.includes('the same command continues')]).to.deep.equal([1, true])
    const done = await cli(...args, '--json')
    expect([done.code, JSON.parse(done.out).file]).to.deep.equal([0, file])
    expect((await cli(...args)).err).to.include('exists and is complete')
  })

  it('when a key is rotated, it is stored, and the old one is refused', async () => {
    const rotated = await own('auth', 'keys', 'rotate', '--scope', 'read', '--json')
    expect([rotated.code, rotated.err]).to.deep.equal([0, ''])
    const { api_key_file, prefix, scope, ...rest } = JSON.parse(rotated.out)
    expect([api_key_file, scope, 'api_key' in rest]).to.deep.equal([keyFile, 'read', false])
    expect(readFileSync(keyFile, 'utf8').startsWith(prefix)).to.equal(true)
    expect(statSync(keyFile).mode & 0o777).to.equal(0o600)
    expect((await exchange.get(alice, '/v0/me')).status).to.equal(401)
    expect((await own('auth', 'keys', 'create')).err).to.include('--issuer-url')
    const refused = await own('account', 'faucet')
    expect([refused.code, /code: (\w+)/.exec(refused.err)?.[1]]).to.deep.equal([4, 'READ_ONLY_KEY'])
  })

  it('when a session key is in the key file, orders are signed for its account', async () => {
    const bob = await createUser(exchange.db, 'bob', '500')
    const key = Wallet.createRandom()
    const values = { permissions: 1, registered_at: 0, expires_at: 4_000_000_000, revoked_at: null, block: 1 }
    await exchange.db
      .insertInto('session_keys')
      .values({ owner: bob.address, key: key.address.toLowerCase(), ...values })
      .execute()
    const [session, api] = [join(folder, 'session'), join(folder, 'bob')]
    writeFileSync(session, key.privateKey, { mode: 0o600 })
    writeFileSync(api, bob.apiKey, { mode: 0o600 })
    const order = [
      'order',
      'place',
      '--market',
      'BTC-PERP',
      '--side',
      'LONG',
      '--quantity',
      '1',
      '--price',
      '100',
      '--yes',
    ]
    const placed = await cli(...order, '--url', url, '--key-file', session, '--api-key-file', api)
    expect([placed.code, placed.err]).to.deep.equal([0, ''])
  })

  it('when HTTPS_PROXY is set, requests and the feed go through the proxy', async () => {
    const proxy = await startProxy(exchange.api.app.server.address() as AddressInfo)
    const args = ['cli/main.ts', 'doctor', '--api-key-file', keyFile, '--url', 'http://exchange.invalid']
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env, HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url, NO_PROXY: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [out] = await Promise.all([text(child.stdout), once(child, 'close')])
    proxy.stop()
    expect(out)
      .to.match(/^ok +api/m)
      .and.to.match(/^ok +feed/m)
    expect(proxy.connections).to.include('exchange.invalid:80')
  })
})
