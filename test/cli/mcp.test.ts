/** `clearbatch mcp` as a process, with the official client. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { TradeGuard } from '../../cli/mcp/guard.ts'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../api/support/exchange-fixture.ts'

interface Session {
  readonly client: Client
  log(): string
}

describe('clearbatch mcp', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-mcp-'))
  const sessions: Client[] = []
  let exchange: ExchangeFixture
  let alice: User
  let connection: string[]
  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '5000')
    await exchange.project()
    await exchange.api.app.listen({ port: 0 })
    const { port } = exchange.api.app.server.address() as AddressInfo
    const [wallet, key] = [join(folder, 'wallet'), join(folder, 'key')]
    writeFileSync(wallet, alice.wallet.privateKey, { mode: 0o600 })
    writeFileSync(key, alice.apiKey, { mode: 0o600 })
    connection = ['--url', `http://127.0.0.1:${port}`, '--key-file', wallet, '--api-key-file', key]
  })
  after(async () => {
    for (const client of sessions) await client.close()
    await exchange.stop()
    rmSync(folder, { recursive: true })
  })

  async function open(...flags: string[]): Promise<Session> {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: ['cli/main.ts', 'mcp', ...flags, ...connection],
      env: { ...process.env, CLEARBATCH_CONFIG_DIR: folder } as Record<string, string>,
      stderr: 'pipe',
    })
    let log = ''
    transport.stderr?.on('data', (chunk) => {
      log += String(chunk)
    })
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(transport)
    sessions.push(client)
    return { client, log: () => log }
  }

  async function call({ client }: Session, name: string, args: Record<string, unknown> = {}) {
    const { content, isError } = await client.callTool({ name, arguments: args })
    const [first] = content as readonly { text: string }[]
    return { isError: isError === true, answer: JSON.parse(first?.text as string) }
  }

  it('when no trading is granted, the tools only read, and every call is logged without secrets', async () => {
    const session = await open()
    const { tools } = await session.client.listTools()
    const names = tools.map(({ name }) => name)
    expect(names).to.include.members(['market_list', 'account_balance', 'order_explain', 'doctor'])
    expect(names).to.not.include.members(['order_place', 'order_cancel', 'account_deposit'])
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint)).to.equal(true)
    expect((await call(session, 'account_balance')).answer).to.include({ free: 5000 })
    const book = await call(session, 'market_book', { market: 'BTC-PERP', depth: '2' })
    expect([book.isError, book.answer]).to.deep.equal([false, []])
    const wrong = await call(session, 'market_book', { market: 'NONE' })
    expect([wrong.isError, wrong.answer.exit_code]).to.deep.equal([true, 2])
    const place = await call(session, 'order_place', { market: 'BTC-PERP' })
    expect([place.isError, place.answer.message]).to.deep.equal([
      true,
      'unknown tool order_place: tools/list has the names',
    ])
    expect(session.log()).to.include('"tool":"account_balance"')
    for (const secret of [alice.apiKey, alice.wallet.privateKey.slice(2)])
      expect(session.log()).to.not.include(secret)
  })

  it('when trading is granted, each order is validated, and markets and notional bound all orders together', async () => {
    const session = await open('--trade', '--max-notional', '250', '--markets', 'BTC-PERP')
    const order = { market: 'BTC-PERP', side: 'LONG', quantity: '1', price: '100' }
    const first = await call(session, 'order_place', order)
    expect([first.isError, first.answer.order.status, first.answer.notional_used]).to.deep.equal([
      false,
      'OPEN',
      '100',
    ])
    expect((await call(session, 'order_place', order)).answer.notional_used).to.equal('200')
    const third = await call(session, 'order_place', order)
    expect([third.isError, third.answer.message]).to.deep.equal([
      true,
      "the order's notional of at most 100 USDM is above what is left of --max-notional: 50 of 250",
    ])
    const other = await call(session, 'order_place', { ...order, market: '2', price: '50', quantity: '1' })
    expect(other.answer.message).to.include('this server may trade in BTC-PERP')
    const band = await call(session, 'order_place', { ...order, quantity: '0.1', price: '106' })
    expect([band.isError, band.answer.details.code]).to.deep.equal([true, 'PRICE_BAND'])
    expect((await call(session, 'order_place', { ...order, secret: 'x' })).answer.message).to.include(
      'unknown argument secret',
    )
    expect((await call(session, 'order_cancel', { all: true })).answer).to.have.length(2)
  })

  it('when an order was certainly not placed, its notional is given back, and only once', () => {
    const guard = new TradeGuard({ maxNotional: '100', markets: [] })
    const e18 = 10n ** 18n
    const release = guard.reserve(e18, 60n * e18)
    expect(() => guard.reserve(e18, 60n * e18)).to.throw('40 of 100')
    release()
    release()
    expect(guard.used).to.equal('0')
    guard.reserve(e18, 100n * e18)
    expect(guard.used).to.equal('100')
  })
})
