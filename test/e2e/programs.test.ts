/** Programs for traders on one running exchange: the npm package as its README says, from the tarball to a filled order and a market maker for a minute, the Python client, and the CCXT class. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { hasCcxt, MISSING_CCXT } from '../../ccxt/build.ts'
import { approveAddress } from '../../client/sign-in.ts'
import { privateKeySigner } from '../../client/signers/private-key-signer.ts'
import { tradeWithCcxt } from '../ccxt/trade.ts'
import { type CliOptions, runCli } from '../cli/support/run-cli.ts'
import { type InstalledPackage, packAndInstall } from '../package/support/installed.ts'
import { findPython, MISSING_PYTHON, runUnittest } from '../python/python.ts'
import { waitFor } from '../support/patience.ts'
import { skipBecause } from './support/guide.ts'
import { nearOracle, useStack } from './support/stack.ts'

const MINUTE_MS = 60_000
const TWO_MINUTES_MS = 120_000

/** The commands of `A first order` in the README of the package, without `npx clearbatch`. */
function commandsOfReadme(stackFile: string): string[][] {
  const section = readFileSync('package/README.md', 'utf8').split('## A first order')[1] ?? ''
  const block = /```sh\n([\s\S]*?)```/.exec(section)?.[1] ?? ''
  const lines = block.trim().split('\n')
  expect(lines.filter((line) => !line.startsWith('npx clearbatch '))).to.deep.equal([])
  return lines.map((line) => {
    const [command = ''] = line.replace('npx clearbatch ', '').split(' #')
    return command.replace('path/to/stack.json', stackFile).trim().split(/\s+/)
  })
}

describe('programs of traders on the complete stack', function () {
  this.timeout(5 * MINUTE_MS)
  const exchange = useStack()
  let installed: InstalledPackage
  let installMs = 0
  let stackFile: string
  before(async () => {
    const start = Date.now()
    installed = await packAndInstall()
    installMs = Date.now() - start
    stackFile = join(dirname(exchange.stack.pricesFile), 'stack.json')
  })
  after(() => rmSync(dirname(installed.source), { recursive: true }))

  function clearbatch(...args: string[]) {
    const env = {
      ...process.env,
      CLEARBATCH_CONFIG_DIR: join(installed.folder, 'config'),
      CLEARBATCH_STATE_DIR: join(installed.folder, 'state'),
    }
    const bin = join(installed.folder, 'node_modules/.bin/clearbatch')
    const { status, stdout, stderr } = spawnSync(bin, args, { cwd: installed.folder, env, encoding: 'utf8' })
    return { status, stdout, stderr }
  }

  it('when the commands of the README are run after the installation, an order fills within two minutes of it', async () => {
    const start = Date.now()
    const seller = exchange.trader(1)
    const price = await nearOracle(seller, 1)
    await seller.orders.place({ marketId: 1, side: 'SHORT', price, quantity: '0.05', leverage: 2 })
    const [login, list, place, positions, close, ...others] = commandsOfReadme(stackFile)
    expect(others).to.deep.equal([])
    for (const words of [login, list]) expect(clearbatch(...(words ?? []))).to.include({ status: 0 })
    // Without a terminal there is no question, so the answer is a flag.
    const placed = clearbatch(...(place ?? []), '--yes', '--json')
    expect(placed.status, placed.stderr).to.equal(0)
    const { order_id } = JSON.parse(placed.stdout)
    let explained = ''
    while (!explained.includes('is FILLED')) {
      explained = clearbatch('order', 'explain', order_id).stdout
      expect(Date.now() - start + installMs).to.be.below(TWO_MINUTES_MS)
    }
    expect(clearbatch(...(positions ?? [])).stdout).to.include('0.01')
    expect(clearbatch('doctor').status).to.equal(0)
    expect(clearbatch(...(close ?? [])).status).to.equal(0)
    await seller.orders.cancelAll()
    const verified = clearbatch('batch', 'verify', 'BTC-PERP', '1')
    expect([verified.status, verified.stdout.includes('the proof holds')], verified.stderr).to.deep.equal([
      0,
      true,
    ])
  })

  /** A command in this process for account 6 of the stack, which `stopping` ends as SIGINT does. */
  const command = (args: readonly string[], options: Pick<CliOptions, 'stopping' | 'onOutput'> = {}) =>
    runCli([...args, '--stack', stackFile, '--account', '6', '--json'], {
      env: { CLEARBATCH_CONFIG_DIR: installed.folder, CLEARBATCH_STATE_DIR: installed.folder },
      ...options,
    })

  it('when twap is interrupted and crashes between sending and noting it, the same command continues and doubles no slice', async () => {
    const state = join(installed.folder, 'twap.json')
    const seller = exchange.trader(7)
    const trader = exchange.trader(6)
    await seller.orders.place({
      marketId: 1,
      side: 'SHORT',
      price: await nearOracle(seller, 1, 1),
      quantity: '0.1',
    })
    const words = ['twap', '--market', 'BTC-PERP', '--side', 'LONG', '--quantity', '0.03', '--slices', '3']
    const args = [...words, '--interval', '3', '--yes', '--state', state]
    const stopping = new AbortController()
    const first = command(args, { stopping: stopping.signal })
    const read = () => (existsSync(state) ? JSON.parse(readFileSync(state, 'utf8')) : { slices: [] })
    while (read().slices[0]?.status !== 'ended') await delay(100)
    stopping.abort()
    const { code, err } = await first
    expect(code, err).to.equal(1)
    expect(JSON.parse(err.trim().split('\n').at(-1) ?? '').message).to.include('the same command continues')

    const { slices, ...plan } = read()
    const [sent, ...others] = slices
    writeFileSync(
      state,
      JSON.stringify({ ...plan, slices: [{ ...sent, status: 'signed', filled: '0' }, ...others] }),
    )
    const second = await command(args)
    expect(second.code, second.err).to.equal(0)
    expect(JSON.parse(second.out)).to.include({ quantity: '0.03', filled: '0.03' })
    expect(existsSync(state)).to.equal(false)
    expect((await trader.orders.list({ marketId: 1 })).length).to.equal(3)
    await seller.orders.cancelAll()
  })

  it('when a market is watched in a pipe, each change is a line of JSON, until it is interrupted', async () => {
    const stopping = new AbortController()
    const linesOf = (text: string) =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line))
    let printed = ''
    const onOutput = (text: string) => {
      printed = text
    }
    const watching = command(['watch', 'BTC-PERP'], { stopping: stopping.signal, onOutput })
    const bid = await exchange.trader(7).orders.place({
      marketId: 1,
      side: 'LONG',
      price: await nearOracle(exchange.trader(7), 1, -20_000),
      quantity: '0.01',
    })
    const bidLevel = [bid.order.price, 0.01]
    const levels = async (): Promise<number[][]> => linesOf(printed).at(-1)?.bids ?? []
    await waitFor(levels, (shown) => shown.some((level) => level.join() === bidLevel.join()))
    stopping.abort()
    const { code, out, err } = await watching
    await exchange.trader(7).orders.cancel(bid.order.order_hash)
    expect(code, err).to.equal(0)
    const last = linesOf(out).at(-1)
    expect(last).to.include({ symbol: 'BTC-PERP' })
    expect(last.bids).to.deep.include(bidLevel)
  })

  it('when a person signs in elsewhere, the browser returns the code to the command, which stores a token that the exchange accepts', async () => {
    const { base_url, issuer_url, accounts } = exchange.stack.file
    const bin = join(installed.folder, 'node_modules/.bin/clearbatch')
    const args = ['auth', 'login', '--profile', 'elsewhere', '--url', base_url, '--issuer-url', issuer_url]
    const child = spawn(bin, args, {
      cwd: installed.folder,
      env: {
        ...process.env,
        CLEARBATCH_CONFIG_DIR: join(installed.folder, 'config'),
        CLEARBATCH_NO_BROWSER: '1',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const ended = once(child, 'close')
    let printed = ''
    child.stdout.on('data', (chunk) => {
      printed += String(chunk)
    })
    const address = await new Promise<string>((resolve, reject) => {
      let notes = ''
      child.stderr.on('data', (chunk) => {
        notes += String(chunk)
        const shown = /^http\S+code_challenge_method=S256$/m.exec(notes)?.[0]
        if (shown !== undefined) resolve(shown)
      })
      child.once('close', () => reject(new Error(`no address was shown: ${notes}`)))
    })
    const wallet = privateKeySigner(accounts[8]?.private_key as string)
    const returned = await approveAddress(address, { issuerUrl: issuer_url, wallet })
    expect((await fetch(new URL('/callback?state=other&code=1', returned))).status).to.equal(404)
    expect((await fetch(returned)).status).to.equal(200)
    expect((await ended)[0]).to.equal(0)
    expect(printed.toLowerCase()).to.include(wallet.address.toLowerCase()).and.to.include('identity_token')
    expect(clearbatch('auth', 'whoami', '--profile', 'elsewhere').status).to.equal(0)
  })

  it('when the quickstart bot runs for a minute, it quotes, resumes after a lost connection, and stops without live orders', async () => {
    const bot = spawn(
      process.execPath,
      ['node_modules/clearbatch/examples/quickstart.mjs', stackFile, 'BTC-PERP', '90'],
      {
        cwd: installed.folder,
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    let printed = ''
    for (const stream of [bot.stdout, bot.stderr])
      stream.on('data', (chunk) => {
        printed += String(chunk)
      })
    const ended = once(bot, 'close')
    await new Promise((resolve) => setTimeout(resolve, MINUTE_MS))
    const trader = exchange.trader(0)
    // The bot's writes are another client's: a read shows them once the read model has them.
    const openOrders = (count: number) =>
      waitFor(
        () => trader.orders.list({ status: 'OPEN', marketId: 1 }),
        ({ length }) => length === count,
      )
    await openOrders(2)
    expect((await trader.orders.cancelSwitch()).armed).to.equal(true)
    bot.kill('SIGINT')
    expect((await ended)[0], printed).to.equal(0)
    expect(printed).to.match(
      /stopped: \d+ rounds, \d+ orders cancelled, \d+ fills, feed current, interrupted true/,
    )
    await openOrders(0)
    expect((await trader.orders.cancelSwitch()).armed).to.equal(false)
  })

  it('when the Python client trades, orders fill, topics resume, and its dead-man switch cancels', async function () {
    const python = findPython()
    if (python === undefined) return skipBecause(this, MISSING_PYTHON)
    const env = { STACK: stackFile, ACCOUNTS: '2,3' }
    const { code, output } = await runUnittest(python, ['tests.live_trading'], env)
    expect(code, output).to.equal(0)
    expect(output).to.not.include('skipped')
  })

  it('when the CCXT class trades, orders fill, positions get margin, and everything is cancelled and closed', async function () {
    if (!hasCcxt()) return skipBecause(this, MISSING_CCXT)
    await tradeWithCcxt(exchange.stack.file, [4, 5])
  })
})
