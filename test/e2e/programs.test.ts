/** Programs for traders on one running exchange: the npm package as its README says, from the tarball to a filled order and a market maker for a minute, the Python client, and the CCXT class. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { hasCcxt, MISSING_CCXT } from '../../ccxt/build.ts'
import { tradeWithCcxt } from '../ccxt/trade.ts'
import { type InstalledPackage, packAndInstall } from '../package/support/installed.ts'
import { findPython, MISSING_PYTHON, runUnittest } from '../python/python.ts'
import { skipBecause } from './support/guide.ts'
import { nearOracle, useStack } from './support/stack.ts'

const MINUTE_MS = 60_000
const TWO_MINUTES_MS = 120_000

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
    expect(clearbatch('auth', 'login', '--stack', stackFile)).to.include({ status: 0 })
    const seller = exchange.trader(1)
    const price = await nearOracle(seller, 1)
    await seller.orders.place({ marketId: 1, side: 'SHORT', price, quantity: '0.05', leverage: 2 })
    const placed = clearbatch(
      'order',
      'place',
      '--market',
      'BTC-PERP',
      '--side',
      'LONG',
      '--quantity',
      '0.01',
      '--yes',
      '--json',
    )
    expect(placed.status, placed.stderr).to.equal(0)
    const { order_id } = JSON.parse(placed.stdout)
    let explained = ''
    while (!explained.includes('is FILLED')) {
      explained = clearbatch('order', 'explain', order_id).stdout
      expect(Date.now() - start + installMs).to.be.below(TWO_MINUTES_MS)
    }
    expect(clearbatch('doctor').status).to.equal(0)
    expect(clearbatch('close', '--market', 'BTC-PERP', '--yes').status).to.equal(0)
    const verified = clearbatch('batch', 'verify', 'BTC-PERP', '1')
    expect([verified.status, verified.stdout.includes('the proof holds')], verified.stderr).to.deep.equal([
      0,
      true,
    ])
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
    expect((await trader.orders.list({ status: 'OPEN', marketId: 1 })).length, printed).to.equal(2)
    expect((await trader.orders.cancelSwitch()).armed).to.equal(true)
    bot.kill('SIGINT')
    expect((await ended)[0], printed).to.equal(0)
    expect(printed).to.match(
      /stopped: \d+ rounds, \d+ orders cancelled, \d+ fills, feed current, interrupted true/,
    )
    expect(await trader.orders.list({ status: 'OPEN', marketId: 1 })).to.deep.equal([])
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
