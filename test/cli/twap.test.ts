/** `twap` is killed at every step of a slice: the same command continues, and each slice is one order. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createUser, type ExchangeFixture, startExchange } from '../api/support/exchange-fixture.ts'

/** When the process is killed while its first order is on its way. */
type Loss = 'before the exchange receives it' | 'before its answer arrives'

interface Plan {
  readonly address: string
  readonly args: readonly string[]
  readonly state: string
  readonly env: Readonly<Record<string, string>>
}

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

describe('clearbatch twap, killed while it trades', function () {
  this.timeout(120_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-twap-'))
  let exchange: ExchangeFixture
  let origin: string
  let server: Server
  let url: string
  let child: ChildProcess | null = null
  let loss: Loss | null = null
  /** Reads show no order before the next placement. */
  let isBehind = false
  /** Signatures of the orders sent. */
  let sent: string[] = []
  let plans = 0

  before(async () => {
    exchange = await startExchange()
    await exchange.api.app.listen({ port: 0 })
    origin = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    server = createServer((request, response) => void answer(request, response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await exchange.stop()
    rmSync(folder, { recursive: true })
  })

  async function forward(
    request: IncomingMessage,
    body: string,
  ): Promise<{ status: number; answer: string }> {
    const { method = 'GET', url: path = '/', headers } = request
    const { authorization = '' } = headers
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: { authorization, ...(body === '' ? {} : { 'content-type': 'application/json' }) },
      ...(body === '' ? {} : { body }),
    })
    return { status: response.status, answer: await response.text() }
  }

  /** The exchange, whose orders are filled at once; requests may kill the command. */
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const isPlacement = request.method === 'POST' && request.url === '/v0/orders'
    if (isPlacement) {
      sent.push(JSON.parse(body).signature)
      isBehind = false
      if (loss === 'before the exchange receives it') return kill()
    } else if (!isBehind) await exchange.project()
    const forwarded = await forward(request, body)
    if (isPlacement && loss !== null) return kill()
    response.writeHead(forwarded.status, { 'content-type': 'application/json' })
    response.end(request.url?.includes('/by-hash/') ? filled(forwarded.answer) : forwarded.answer)
  }

  function kill(): void {
    loss = null
    child?.kill('SIGKILL')
  }

  function filled(answer: string): string {
    const order = JSON.parse(answer)
    if (order.status !== 'OPEN') return answer
    return JSON.stringify({ ...order, status: 'FILLED', filled_quantity_e18_raw: order.quantity_e18_raw })
  }

  /** Two slices for an account of their own. */
  async function newPlan(): Promise<Plan> {
    const at = join(folder, String(++plans))
    mkdirSync(at)
    const user = await createUser(exchange.db, `twap ${plans}`)
    await exchange.project()
    const [wallet, key, state] = [join(at, 'wallet'), join(at, 'key'), join(at, 'twap.json')]
    writeFileSync(wallet, user.wallet.privateKey, { mode: 0o600 })
    writeFileSync(key, user.apiKey, { mode: 0o600 })
    sent = []
    const size = [
      '--market',
      'BTC-PERP',
      '--side',
      'LONG',
      '--quantity',
      '3',
      '--slices',
      '2',
      '--interval',
      '1',
    ]
    const connection = ['--url', url, '--key-file', wallet, '--api-key-file', key, '--state', state]
    const env = { CLEARBATCH_CONFIG_DIR: at, CLEARBATCH_STATE_DIR: at }
    return { address: user.address, args: ['twap', ...size, ...connection, '--yes', '--json'], state, env }
  }

  async function run({ args, env }: Plan, crash: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const preload = new URL('support/crash-at-write.ts', import.meta.url).href
    const started = spawn(process.execPath, ['--import', preload, 'cli/main.ts', ...args], {
      env: { ...process.env, ...env, ...crash },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    const [out, err, [code, signal]] = await Promise.all([
      text(started.stdout),
      text(started.stderr),
      once(started, 'close'),
    ])
    return { code, signal, out, err }
  }

  /** The same command once more, without a crash. */
  async function finish(plan: Plan, signatures = 2): Promise<void> {
    const { code, out, err } = await run(plan)
    expect(code, err).to.equal(0)
    expect(JSON.parse(out)).to.include({ quantity: '3', filled: '3' })
    expect([existsSync(plan.state), existsSync(`${plan.state}.lock`)]).to.deep.equal([false, false])
    expect(await ordersOf(plan)).to.have.length(2)
    expect(new Set(sent).size, 'signatures sent').to.equal(signatures)
  }

  const ordersOf = ({ address }: Plan) =>
    exchange.db.selectFrom('orders').select('hash').where('maker', '=', address).execute()

  // Writes of the first slice: 1 the plan, 2 signed, 3 placed, 4 ended.
  for (const crash of ['before 2', 'after 2', 'before 3', 'after 3', 'before 4', 'after 4'])
    it(`when it is killed ${crash.replace(' ', ' write ')} of its state, no slice is doubled`, async () => {
      const plan = await newPlan()
      expect((await run(plan, { CRASH_AT: crash })).signal).to.equal('SIGKILL')
      await finish(plan)
    })

  for (const lost of ['before the exchange receives it', 'before its answer arrives'] as const)
    it(`when it has sent an order and is killed ${lost}, the same signed order is sent again`, async () => {
      const plan = await newPlan()
      loss = lost
      expect((await run(plan)).signal).to.equal('SIGKILL')
      expect(JSON.parse(readFileSync(plan.state, 'utf8')).slices[0].status).to.equal('signed')
      await finish(plan)
    })

  it('when reads are behind and the clock says that the order has expired, the order that was placed is found all the same', async () => {
    const plan = await newPlan()
    loss = 'before its answer arrives'
    await run(plan)
    isBehind = true
    const behind = await run(plan, { CLOCK_AHEAD_MS: '90000', CRASH_AT: 'after 2' })
    expect(behind.signal, behind.err).to.equal('SIGKILL')
    expect(JSON.parse(readFileSync(plan.state, 'utf8')).slices[0].status).to.equal('placed')
    expect(sent).to.have.length(2)
    await finish(plan)
  })

  for (const [lost, signatures] of [
    ['before the exchange receives it', 3],
    ['before its answer arrives', 2],
  ] as const)
    it(`when it has sent an order, is killed ${lost}, and continues after the order has expired, no slice is doubled`, async () => {
      const plan = await newPlan()
      loss = lost
      // The order expires 3 s after it is signed.
      await run(plan, { CLOCK_AHEAD_MS: '-57000' })
      await delay(4_000)
      isBehind = true
      await finish(plan, signatures)
    })

  it('when another process works on the plan, the command refuses to run it too', async () => {
    const plan = await newPlan()
    writeFileSync(`${plan.state}.lock`, String(process.pid))
    const { code, err } = await run(plan)
    expect([code, JSON.parse(err).message]).to.deep.equal([
      1,
      `process ${process.pid} already runs the plan of ${plan.state}: end it first, or name another file by --state`,
    ])
    expect(sent).to.deep.equal([])
  })
})
