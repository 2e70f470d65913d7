/** An exchange on Debian's Postgres under Patroni and Redis under Sentinel, of which servers are lost under load. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import pg from 'pg'
import { type Cluster, startCluster } from '../../stack/cluster/cluster.ts'
import {
  addressOf,
  bridgeOf,
  DATA_HOSTS,
  type DataHost,
  endpoint,
  type HostName,
  type Layout,
  PORTS,
} from '../../stack/cluster/layout.ts'
import { findPrograms, missingPackages } from '../../stack/cluster/packages.ts'
import { acceptsCommits, postgresNodes, primaryOf } from '../../stack/cluster/patroni.ts'
import { type ClusterState, storedState } from '../../stack/cluster/state.ts'
import { clusterStatus, type ServiceStatus } from '../../stack/cluster/status.ts'
import { PATIENCE, waitFor } from '../support/patience.ts'
import { AcknowledgedOrders } from './support/acknowledged-orders.ts'
import { skipBecause } from './support/guide.ts'
import { differencesOf, nearOracle, trade, traderOn } from './support/stack.ts'

const START_LIMIT_MS = 600_000
/** The bound of a quiet machine for orders to be accepted again. */
const RECOVERY_MS = 20_000
const TRADERS = [2, 3, 4, 5]

describe('a cluster', function () {
  this.timeout(600_000)
  const dir = mkdtempSync(join(tmpdir(), 'clearbatch-cluster-'))
  const programs = findPrograms()
  let cluster: Cluster | undefined

  before(async function () {
    this.timeout(START_LIMIT_MS)
    if (!('paths' in programs)) return skipBecause(this, missingPackages(programs))
    cluster = await startCluster({ dir, port: 8080, fresh: false, bots: false, backstop: false }, () => {})
  })
  after(async function () {
    this.timeout(START_LIMIT_MS)
    await cluster?.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const running = (): Cluster => cluster as Cluster
  const statuses = async (): Promise<readonly ServiceStatus[]> => {
    const state = storedState(dir)
    if (state === null) throw new Error('the cluster has stored no state')
    return clusterStatus(state)
  }
  const areUp = (found: readonly ServiceStatus[]): boolean => found.every(({ state }) => state === 'up')
  const rolesOf = (found: readonly ServiceStatus[], service: string): string[] =>
    found
      .filter((each) => each.service === service)
      .map(({ role }) => role)
      .sort()

  async function primary(): Promise<DataHost> {
    const nodes = await waitFor(() => postgresNodes(running().layout), acceptsCommits, { budgetMs: 60_000 })
    return primaryOf(nodes) as DataHost
  }

  async function tradesAndAgrees(): Promise<void> {
    const [alice, bob] = [traderOn(running(), 0), traderOn(running(), 1)]
    const price = await nearOracle(alice, 1)
    const { buy, sell } = await trade(alice, bob, { marketId: 1, price, quantity: '0.01' })
    expect([buy.status, sell.status]).to.deep.equal(['FILLED', 'FILLED'])
    expect(await differencesOf(running())).to.deep.equal([])
  }

  /** Loses something under load. Returns how long no order was accepted. */
  async function underLoad(lose: () => void | Promise<void>): Promise<number> {
    const traders = TRADERS.map((index) => ({
      once: traderOn(running(), index, 0),
      patient: traderOn(running(), index),
    }))
    const price = await nearOracle(traderOn(running(), 0), 1, -20_000)
    const load = new AcknowledgedOrders(traders, { marketId: 1, price, quantity: '0.001' })
    try {
      await waitFor(
        async () => load.count,
        (count) => count > 100,
      )
      const lost = Date.now()
      await lose()
      await waitFor(
        async () => load.recovery(lost + 1_000),
        (recovery) => recovery !== null,
        { budgetMs: 3 * RECOVERY_MS },
      )
      const before = load.count
      await waitFor(
        async () => load.count,
        (count) => count > before + 100,
      )
      return load.longestGap(lost)
    } finally {
      await load.stop()
      expect(await load.missing(), 'acknowledged commands that are lost').to.deep.equal([])
      for (const { patient } of traders) await patient.orders.cancelAll()
    }
  }

  it('when it has started, every service is up with its role, and orders fill and settle', async () => {
    const found = await waitFor(statuses, areUp, { budgetMs: 30_000 })
    expect(rolesOf(found, 'postgres')).to.deep.equal(['primary', 'standby', 'synchronous standby'])
    expect(rolesOf(found, 'redis')).to.deep.equal(['primary', 'replica', 'replica'])
    expect(rolesOf(found, 'engine')).to.deep.equal(['follower', 'owner'])
    await tradesAndAgrees()
  })

  it('when a client connects without TLS, no server answers it', async () => {
    const { layout } = running()
    const { secrets } = storedState(dir) as ClusterState
    const plain = new pg.Client(
      `postgres://clearbatch:${secrets.database}@${endpoint(layout, 'app1', 'database')}/clearbatch`,
    )
    const refused = await plain.connect().catch((error: Error) => error.message)
    expect(refused).to.include('no encryption')
    for (const host of DATA_HOSTS)
      for (const port of ['redis', 'sentinel', 'etcdClient', 'etcdPeer', 'patroni'] as const)
        expect(isRefusal(await answerTo('PING\r\n\r\n', layout, host, port)), `${host} ${port}`).to.equal(
          true,
        )
    for (const port of [
      'engine',
      'engineHealth',
      'keeperHealth',
      'indexerHealth',
      'api',
      'apiHealth',
    ] as const)
      expect(isRefusal(await answerTo('GET / HTTP/1.0\r\n\r\n', layout, 'app1', port)), port).to.equal(true)
    expect(isRefusal(await answerTo('GET / HTTP/1.0\r\n\r\n', layout, 'oracle1', 'signer'))).to.equal(true)
  })

  it('when the Postgres primary is killed under load, no acknowledged command is lost, and orders are accepted within 20 s', async function () {
    const killed = await primary()
    const gapMs = await underLoad(() => running().servers.killPostgres(killed))
    noteFigure(this, `no order for ${gapMs} ms`)
    expect(gapMs).to.be.below(RECOVERY_MS * PATIENCE)
    await tradesAndAgrees()
  })

  it('when the host of the primary is lost with its etcd, Redis and Sentinel, no acknowledged command is lost, and the host returns as a standby', async function () {
    const lost = await primary()
    const gapMs = await underLoad(() => running().servers.lose(lost))
    noteFigure(this, `no order for ${gapMs} ms`)
    expect(gapMs).to.be.below(RECOVERY_MS * PATIENCE)
    const down = (await statuses()).filter(({ state }) => state === 'down')
    expect(new Set(down.map(({ host }) => host))).to.deep.equal(new Set([lost]))

    await running().servers.restore(lost)
    // Redis starts as a primary, and a Sentinel makes it a replica some seconds later.
    const hasRejoined = (found: Awaited<ReturnType<typeof statuses>>): boolean =>
      areUp(found) && rolesOf(found, 'redis').filter((role) => role === 'primary').length === 1
    const found = await waitFor(statuses, hasRejoined, { budgetMs: 60_000 })
    expect(rolesOf(found, 'postgres')).to.deep.equal(['primary', 'standby', 'synchronous standby'])
    expect(rolesOf(found, 'redis')).to.deep.equal(['primary', 'replica', 'replica'])
    await tradesAndAgrees()
  })

  it('when it is stopped, no process and no network of it is left', async () => {
    const bridge = bridgeOf(running().layout)
    await running().stop()
    cluster = undefined
    const processes = execFileSync('ps', ['-e', '-o', 'args='], { encoding: 'utf8' })
    expect(processes.split('\n').filter((line) => line.includes(dir))).to.deep.equal([])
    const networks = execFileSync('ip', ['-o', 'link'], { encoding: 'utf8' })
    expect(networks).not.to.include(`${bridge}:`)
  })
})

/** The title of the running test gets a measured figure. */
function noteFigure({ test }: Mocha.Context, figure: string): void {
  if (test) test.title += ` (${figure})`
}

/** The end of the connection, an alert of TLS, or the error by which Go's server names the missing TLS; never an answer. */
const isRefusal = (received: string): boolean =>
  received === '' ||
  received.charCodeAt(0) === TLS_ALERT ||
  received.includes('Client sent an HTTP request to an HTTPS server')
const TLS_ALERT = 0x15

/** The bytes that a server sends to a client without TLS before it ends the connection, or within five seconds. */
const answerTo = (text: string, layout: Layout, host: HostName, port: keyof typeof PORTS): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect({ host: addressOf(layout, host), port: PORTS[port], timeout: 5_000 })
    let received = ''
    socket.setEncoding('latin1')
    socket.on('data', (bytes) => {
      received += bytes
    })
    socket.once('timeout', () => socket.destroy())
    socket.once('error', () => {})
    socket.once('close', () => resolve(received))
    socket.write(text)
  })
