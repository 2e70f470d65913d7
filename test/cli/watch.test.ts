/** `watch` on a terminal: what is drawn at first, after a change of the size, after a lost connection, and at the end. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
import { skipBecause } from '../e2e/support/guide.ts'
import { waitFor } from '../support/patience.ts'
import { runCli } from './support/run-cli.ts'
import { startSeverableProxy } from './support/severable-proxy.ts'
import { lastFrame, TestScreen } from './support/test-screen.ts'

const OPENED = '\x1b[?1049h\x1b[?25l'
const RESTORED = '\x1b[?25h\x1b[?1049l'

describe('clearbatch watch, on a terminal', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-watch-'))
  const keyFile = join(folder, 'api-key')
  const env = { CLEARBATCH_CONFIG_DIR: folder, CLEARBATCH_STATE_DIR: folder }
  let exchange: ExchangeFixture
  let alice: User
  let proxy: Awaited<ReturnType<typeof startSeverableProxy>>
  const args = () => ['watch', 'BTC-PERP', '--url', proxy.url, '--api-key-file', keyFile]

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '100000')
    for (let step = 0; step < 15; step++) await exchange.place(alice, { price: String(99 - step) })
    await exchange.project()
    await exchange.api.app.listen({ port: 0 })
    proxy = await startSeverableProxy((exchange.api.app.server.address() as AddressInfo).port)
    writeFileSync(keyFile, `${alice.apiKey}\n`, { mode: 0o600 })
  })
  after(async () => {
    proxy.stop()
    await exchange.stop()
    rmSync(folder, { recursive: true })
  })

  const linesWith = (lines: readonly string[], text: string) => lines.filter((line) => line.includes(text))
  const drawn = (read: () => readonly string[], holds: (lines: readonly string[]) => boolean) =>
    waitFor(async () => read(), holds)

  /** Runs the command on a terminal of this size until `use` has returned. */
  async function watching(rows: number, use: (screen: TestScreen) => Promise<void>) {
    const screen = new TestScreen(rows)
    const stopping = new AbortController()
    const running = runCli(args(), { env, screen, stopping: stopping.signal })
    try {
      await use(screen)
    } finally {
      stopping.abort()
    }
    return { screen, result: await running }
  }

  it('when it runs, book, fills and own orders fit the terminal, also after its size has changed', async () => {
    const { screen, result } = await watching(40, async (terminal) => {
      await drawn(
        () => terminal.frame,
        (lines) =>
          linesWith(lines, 'own orders: 15').length === 1 && linesWith(lines, 'connecting').length === 0,
      )
      expect(terminal.written.startsWith(OPENED)).to.equal(true)
      expect(linesWith(terminal.frame, 'BTC-PERP')).to.have.length(1)
      expect(terminal.frame.findIndex((line) => /^ +99 +1$/.test(line))).to.equal(3)
      const own = linesWith(terminal.frame, 'OPEN').length
      expect([own, terminal.frame.length <= 40]).to.deep.equal([8, true])
      // No message arrives between: the size alone changes the screen.
      terminal.resize(12)
      expect([linesWith(terminal.frame, 'OPEN').length, terminal.frame.length <= 12]).to.deep.equal([1, true])
    })
    expect([result.code, result.err]).to.deep.equal([0, ''])
    expect(screen.written.endsWith(RESTORED)).to.equal(true)
  })

  it('when an own order changes, it is redrawn', async () => {
    await watching(40, async (terminal) => {
      await drawn(
        () => terminal.frame,
        (lines) => linesWith(lines, 'own orders: 15').length === 1,
      )
      const { body } = await exchange.place(alice, { price: '84' })
      await exchange.project()
      await drawn(
        () => terminal.frame,
        (lines) => linesWith(lines, 'own orders: 16').length === 1,
      )
      await exchange.cancel(alice, body.order.order_hash)
      await exchange.project()
      await drawn(
        () => terminal.frame,
        (lines) => linesWith(lines, 'own orders: 15').length === 1,
      )
    })
  })

  it('when the connection is lost, it is shown with the last book, and no longer once the feed has resumed', async () => {
    const isConnecting = (lines: readonly string[]) => linesWith(lines, 'connecting').length === 1
    await watching(40, async (terminal) => {
      await drawn(
        () => terminal.frame,
        (lines) => linesWith(lines, 'own orders: 15').length === 1 && !isConnecting(lines),
      )
      proxy.sever()
      await drawn(() => terminal.frame, isConnecting)
      expect(linesWith(terminal.frame, 'OPEN')).to.have.length(8)
      proxy.restore()
      await drawn(
        () => terminal.frame,
        (lines) => !isConnecting(lines),
      )
    })
  })

  it('when it runs in a pseudo terminal, it follows the size of it, and Ctrl-C restores it and exits with 0', async function () {
    if (spawnSync('script', ['--version']).status !== 0)
      return skipBecause(this, 'script of util-linux is not installed')
    const device = join(folder, 'tty')
    const command = `tty > ${device}; stty rows 40 cols 100; exec node cli/main.ts ${args().join(' ')}`
    const child: ChildProcess = spawn('script', ['-qec', command, '/dev/null'], {
      env: { ...process.env, ...env, SHELL: '/bin/sh', TERM: 'xterm' },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let written = ''
    child.stdout?.on('data', (chunk) => {
      written += String(chunk)
    })
    const closed = once(child, 'close')
    try {
      await drawn(
        () => lastFrame(written),
        (lines) => linesWith(lines, 'own orders: 15').length === 1 && linesWith(lines, 'OPEN').length === 8,
      )
      spawnSync('stty', ['-F', readFileSync(device, 'utf8').trim(), 'rows', '12'])
      await drawn(
        () => lastFrame(written),
        (lines) => linesWith(lines, 'OPEN').length === 1 && lines.length <= 12,
      )
    } finally {
      child.stdin?.write('\x03')
    }
    expect((await closed)[0]).to.equal(0)
    expect(existsSync(device)).to.equal(true)
    expect(written).to.include(OPENED)
    expect(written.trimEnd().endsWith(RESTORED)).to.equal(true)
  })

  it('when the exchange refuses the credential of the feed, the screen is restored and it exits with 4', async () => {
    const screen = new TestScreen(40)
    const running = runCli(args(), { env, screen })
    await drawn(
      () => screen.frame,
      (lines) => linesWith(lines, 'own orders: 15').length === 1,
    )
    const wallet = join(folder, 'wallet')
    writeFileSync(wallet, alice.wallet.privateKey, { mode: 0o600 })
    const own = ['--key-file', wallet, ...args().slice(2)]
    const rotated = await runCli(['auth', 'keys', 'rotate', ...own], { env })
    expect(rotated.code, rotated.err).to.equal(0)
    proxy.sever()
    proxy.restore()
    const { code, err } = await running
    expect([code, screen.written.endsWith(RESTORED)]).to.deep.equal([4, true])
    expect(err).to.include('clearbatch auth login')
  })
})
