/** `doctor` on a healthy exchange and on broken ones: every check is broken once. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { after, before, beforeEach, describe, it } from 'mocha'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  type User,
} from '../api/support/exchange-fixture.ts'
import { runCli } from './support/run-cli.ts'

interface Check {
  readonly check: string
  readonly result: string
  readonly finding: string
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port
const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

describe('clearbatch doctor', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-doctor-'))
  const [walletFile, keyFile] = [join(folder, 'wallet'), join(folder, 'key')]
  let exchange: ExchangeFixture
  let alice: User
  let origin: string
  /** Answers of a node, by method; a test replaces some. */
  let chain: Record<string, string>
  /** Changes answers of the exchange on their way. */
  let change: (path: string, body: unknown) => unknown
  const servers: Server[] = []
  let url: string
  let rpc: string

  async function listen(
    handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  ): Promise<string> {
    const server = createServer((request, response) => void handler(request, response))
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${portOf(server)}`
  }

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice', '250')
    await exchange.project()
    await exchange.api.app.listen({ port: 0 })
    origin = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    writeFileSync(walletFile, alice.wallet.privateKey, { mode: 0o600 })
    writeFileSync(keyFile, alice.apiKey, { mode: 0o600 })
    rpc = await listen(async (request, response) => {
      const { id, method } = JSON.parse(await bodyOf(request))
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: chain[method] }))
    })
    url = await listen(async (request, response) => {
      const path = request.url ?? ''
      const headers = { authorization: request.headers.authorization ?? '' }
      const answer = await fetch(`${origin}${path}`, headers.authorization === '' ? {} : { headers })
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(change(path, await answer.json())))
    })
    // The live feed goes to the exchange itself.
    servers.at(-1)?.on('upgrade', (_request, socket) => socket.destroy())
  })
  after(async () => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
    await exchange.stop()
    rmSync(folder, { recursive: true })
  })
  beforeEach(async () => {
    const { body } = await exchange.get(null, '/v0/contracts/shared')
    chain = {
      eth_chainId: `0x${Number(body.chain_id).toString(16)}`,
      eth_getCode: '0x60',
      eth_getBalance: `0x${(10n ** 18n).toString(16)}`,
    }
    change = (_path, answer) => answer
  })

  async function doctor(at: string, seconds = '5'): Promise<{ code: number; checks: Map<string, Check> }> {
    const own = ['--url', at, '--rpc-url', rpc, '--key-file', walletFile, '--api-key-file', keyFile]
    const { code, out, err } = await runCli(['doctor', '--json', '--timeout', seconds, ...own], {
      env: { CLEARBATCH_CONFIG_DIR: folder },
    })
    const checks = (code === 0 ? JSON.parse(out) : JSON.parse(err).details.checks) as Check[]
    return { code, checks: new Map(checks.map((check) => [check.check, check])) }
  }

  /** The remedy of the only failed checks. */
  async function broken(names: readonly string[], remedy: string, at = url): Promise<void> {
    const { code, checks } = await doctor(at)
    const failed = [...checks.values()].filter(({ result }) => result === 'failed')
    // The proxy has no live feed.
    const expected = at === url ? [...names, 'feed'] : names
    expect(failed.map(({ check }) => check).toSorted(), JSON.stringify(failed)).to.deep.equal(
      expected.toSorted(),
    )
    expect(code).to.equal(1)
    expect(failed.map(({ finding }) => finding).join('\n')).to.include(remedy)
  }

  it('when everything works, every check is ok and it exits with 0', async () => {
    const { code, checks } = await doctor(origin, '30')
    expect([...checks.values()].filter(({ result }) => result !== 'ok')).to.deep.equal([])
    expect([code, checks.size]).to.deep.equal([0, 10])
  })

  it('when the exchange does not answer, it says so, and dependent checks are skipped', async () => {
    const { checks } = await doctor('http://127.0.0.1:4')
    expect(checks.get('api')?.finding).to.include('ECONNREFUSED')
    expect(checks.get('contracts')?.result).to.equal('skipped')
  })

  it('when the clock is off, it names the offset', () => {
    change = (path, answer) =>
      path === '/v0/time' ? { ...(answer as object), unix_ms: Date.now() - 60_000 } : answer
    return broken(['clock'], 'synchronize it')
  })

  it('when the live feed is blocked, it names the path to let through', () => broken([], '/v0/ws'))

  it('when the key may only read, it names the command that creates another', () => {
    change = (path, answer) => (path === '/v0/me' ? { ...(answer as object), scope: 'read' } : answer)
    return broken(['key'], 'clearbatch auth keys create --scope trade')
  })

  it('when a limit is used up, it names the wait', () => {
    const limits = [{ bucket: 'orders', limit: 10, window_seconds: 1, remaining: 0, reset_seconds: 7 }]
    change = (path, answer) => (path === '/v0/me/limits' ? { limits } : answer)
    return broken(['limits'], 'wait 7 s')
  })

  it('when the key file is neither the account nor a session key, it names the command that registers one', async () => {
    const original = alice.wallet.privateKey
    writeFileSync(walletFile, Wallet.createRandom().privateKey, { mode: 0o600 })
    await broken(['session keys'], 'clearbatch auth keys register', origin)
    writeFileSync(walletFile, original, { mode: 0o600 })
  })

  it('when a session key expires soon, it names its time', async () => {
    const key = Wallet.createRandom()
    const soon = new Date(Date.now() + 60_000).toISOString()
    const session_keys = [{ session_public_address: key.address, expires_at: soon }]
    change = (path, answer) => (path.startsWith('/v0/session-keys') ? { session_keys } : answer)
    writeFileSync(walletFile, key.privateKey, { mode: 0o600 })
    await broken(['session keys'], `expires at ${soon}`)
    writeFileSync(walletFile, alice.wallet.privateKey, { mode: 0o600 })
  })

  it('when the node is of another chain, it names the right one', () => {
    chain.eth_chainId = '0x1'
    return broken(['rpc'], 'pass a node of chain', origin)
  })

  it('when the contracts are missing on the chain, it names their address', () => {
    chain.eth_getCode = '0x'
    return broken(['contracts'], 'has no code', origin)
  })

  it('when the account has no gas, it names the faucet', () => {
    chain.eth_getBalance = '0x0'
    return broken(['gas'], 'clearbatch account faucet', origin)
  })
})
