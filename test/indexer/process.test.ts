/** The indexer as a process: readiness, kills at critical points, restarts and an orderly end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { Address } from '../../domain/units.ts'
import { rebuild } from '../../indexer/project/rebuild.ts'
import { freePort } from '../../stack/ports.ts'
import { EngineCluster } from '../keeper/support/engine-process.ts'
import { useAnvil } from '../support/anvil.ts'
import { freeByAddress } from '../support/market-ending.ts'
import { loginOf } from '../support/postgres.ts'
import { chainProgress } from './support/audit.ts'
import type { TestDatabase } from './support/database.ts'
import { CHAIN_ID, catchUp, ExchangeFixture, projectAll } from './support/exchange-fixture.ts'
import { dumpReadModel } from './support/read-model.ts'

const WAIT_MS = 200_000
const KILL_POINTS = ['after-block-commit', 'before-projection', 'after-block-commit']

interface Running {
  readonly child: ChildProcess
  readonly base: string
  readonly output: () => string
}

describe('the indexer process', function () {
  this.timeout(600_000)
  const anvil = useAnvil({ chainId: CHAIN_ID })
  let exchange: ExchangeFixture
  let test: TestDatabase
  let engines: EngineCluster
  let running: Running[] = []

  before(async () => {
    exchange = await ExchangeFixture.deploy(anvil.url)
  })
  after(() => exchange.provider.destroy())
  beforeEach(async () => {
    test = await exchange.listed()
    engines = await EngineCluster.create(test.url)
    await engines.start({ ADDRESS_MARGIN_BANK: exchange.shared.marginBank })
  })
  afterEach(async () => {
    for (const { child } of running) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
    }
    running = []
    await engines.stop()
    await test.close()
  })

  async function start(env: Record<string, string> = {}): Promise<Running> {
    const port = await freePort()
    const child = spawn(process.execPath, ['indexer/main.ts'], {
      env: {
        ...{
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
          ...engines.environment,
          DATABASE_URL: await loginOf(test.url, 'indexer'),
          RPC_URL: anvil.url,
          CHAIN_ID: `${CHAIN_ID}`,
        },
        ...{ ADDRESS_MARGIN_BANK: exchange.shared.marginBank, INTERNAL_PORT: `${port}`, LOG_LEVEL: 'info' },
        ADDRESS_ACCOUNT_MANAGER: exchange.shared.accountManager,
        ...{ ADDRESS_FORWARDER: exchange.shared.forwarder, ...env },
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += String(data)))
    const started = { child, base: `http://127.0.0.1:${port}`, output: () => output }
    running.push(started)
    return started
  }

  const exitOf = async ({ child }: Running): Promise<unknown> => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    return child.signalCode ?? child.exitCode
  }

  async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + WAIT_MS
    while (!(await isTrue())) {
      if (Date.now() > end)
        throw new Error(`timed out waiting for ${what}; ${running.map(({ output }) => output()).join('\n')}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  const isReady =
    ({ base }: Running) =>
    async (): Promise<boolean> =>
      fetch(`${base}/health/ready`).then(
        ({ status }) => status === 200,
        () => false,
      )

  async function isUpToDate(): Promise<boolean> {
    const head = await exchange.provider.getBlockNumber()
    const progress = await test.db
      .selectFrom('chain_progress')
      .select(['next_block', 'head'])
      .executeTakeFirst()
    if (progress?.next_block !== head + 1 || progress.head !== head) return false
    const shards = await test.db
      .selectFrom('shards')
      .leftJoin('read.places as at', 'at.shard', 'shards.shard')
      .select(['shards.head', 'at.seq'])
      .execute()
    return shards.every((shard) => shard.head === shard.seq)
  }

  async function expectSameAsFreshRun(): Promise<void> {
    const fresh = await exchange.database()
    const chain = exchange.chain()
    await catchUp(exchange.follower(fresh, chain))
    await projectAll(fresh)
    expect(await chainProgress(test.db)).to.deep.equal(await chainProgress(fresh.db))
    expect(await dumpReadModel(test.db)).to.deep.equal(await dumpReadModel(fresh.db))
    chain.close()
    await fresh.close()
  }

  it('when a deposit is mined, it updates the read model, health and metrics', async () => {
    const indexer = await start()
    await until('readiness', isReady(indexer))
    const alice = await exchange.user('alice')
    await exchange.deposit(alice, '5')
    await until('the deposit', isUpToDate)
    const { free } = await test.db.selectFrom('read.balances').select('free').executeTakeFirstOrThrow()
    expect(free).to.equal((await exchange.bank.account(alice.address)).free)
    expect((await fetch(`${indexer.base}/health/live`)).status).to.equal(200)
    const metrics = await (await fetch(`${indexer.base}/metrics`)).text()
    expect(metrics).to.match(/^indexer_rows_projected_total\{shard="accounts"\} [1-9]/m)
    expect(metrics).to.match(/^indexer_facts_total [1-9]/m)
  })

  it('when it is killed after every block, each block is applied once', async () => {
    const bob = await exchange.user('bob')
    await exchange.deposit(bob, '1')
    await exchange.deposit(bob, '2')
    // One deposit takes three blocks: this includes kills in its second and third block. The engine may skip empty ones.
    const startBlock = (await exchange.provider.getBlockNumber()) - 4
    let recorded = startBlock
    for (let life = 0; life < 3; life++) {
      const env = { CLEARBATCH_KILL_AT: 'after-block-commit', START_BLOCK: `${startBlock}` }
      expect(await exitOf(await start(env))).to.equal('SIGKILL')
      const { next_block } = await test.db
        .selectFrom('chain_progress')
        .select('next_block')
        .executeTakeFirstOrThrow()
      expect(next_block).to.be.greaterThan(recorded)
      recorded = next_block
    }
    await start({ START_BLOCK: `${startBlock}` })
    await until('the head', isUpToDate)
    const { free } = await test.db.selectFrom('read.balances').select('free').executeTakeFirstOrThrow()
    expect(free).to.equal(3_000_000_000_000_000_000n)
  })

  it('when it is killed before a projection commits, the next process projects the rows once', async () => {
    const alice = await exchange.user('alice')
    const bob = await exchange.user('bob')
    await exchange.deposit(alice, '5')
    for (let life = 0; life < 2; life++) {
      expect(await exitOf(await start({ CLEARBATCH_KILL_AT: 'before-projection' }))).to.equal('SIGKILL')
    }
    await start()
    await until('the head', isUpToDate)
    const free = await freeByAddress(test.db)
    for (const { address } of [alice, bob])
      expect(free.get(address.toLowerCase() as Address)).to.equal((await exchange.bank.account(address)).free)
    await expectSameAsFreshRun()
  })

  it('when one of two processes is killed, the other follows the chain', async () => {
    const first = await start()
    await until('readiness', isReady(first))
    const second = await start()
    await until('readiness', isReady(second))
    first.child.kill('SIGKILL')
    await exchange.deposit(await exchange.user('carol'), '9')
    await until('the deposit', isUpToDate)
    expect(second.output()).to.include('this process follows the chain')
    await expectSameAsFreshRun()
  })

  it('when one of two processes is stopped without an end, the other follows the chain, and both agree once it continues', async () => {
    const first = await start()
    await until('readiness', isReady(first))
    const second = await start()
    await until('readiness', isReady(second))
    first.child.kill('SIGSTOP')
    await exchange.deposit(await exchange.user('heidi'), '9')
    await until('the deposit', isUpToDate)
    expect(second.output()).to.include('this process follows the chain')
    first.child.kill('SIGCONT')
    await exchange.deposit(await exchange.user('ivan'), '9')
    await until('the second deposit', isUpToDate)
    await until('readiness of the first', isReady(first))
    await expectSameAsFreshRun()
  })

  it('when two processes are killed in turn during deposits, each deposit is credited once', async () => {
    const users = await Promise.all(['erin', 'frank', 'grace'].map((name) => exchange.user(name)))
    const pair = [await start(), await start()]
    for (const indexer of pair) await until('readiness', isReady(indexer))
    for (const user of users) await exchange.deposit(user, '2')
    await until('the users', isUpToDate)
    for (let round = 0; round < 6; round++) {
      for (const user of users) await exchange.deposit(user, '2')
      // Both project and one follows: the kill does not wait for either.
      pair[round % 2]?.child.kill('SIGKILL')
      pair[round % 2] = await start(round < 3 ? { CLEARBATCH_KILL_AT: KILL_POINTS[round] as string } : {})
    }
    await until('the deposits', isUpToDate)
    const owners = users.map(({ address }) => address.toLowerCase())
    const accounts = await test.db
      .selectFrom('read.balances')
      .innerJoin('users', 'users.user_id', 'read.balances.user_id')
      .select('free')
      .where('address', 'in', owners)
      .execute()
    expect(accounts.map(({ free }) => free)).to.deep.equal(Array(3).fill(14_000_000_000_000_000_000n))
    await expectSameAsFreshRun()
  })

  it('when it receives SIGTERM, it drains and exits with 0', async () => {
    const indexer = await start()
    await until('readiness', isReady(indexer))
    indexer.child.kill('SIGTERM')
    expect(await exitOf(indexer)).to.equal(0)
    expect(indexer.output()).to.include('indexer stopped')
  })

  it('when the node is down, it is live and not ready, and recovers once the node is up', async () => {
    const port = await freePort()
    const indexer = await start({ RPC_URL: `http://127.0.0.1:${port}` })
    await until('liveness', () =>
      fetch(`${indexer.base}/health/live`).then(
        () => true,
        () => false,
      ),
    )
    const ready = await fetch(`${indexer.base}/health/ready`)
    expect(ready.status).to.equal(503)
    expect(await ready.json()).to.deep.include({
      status: 'unavailable',
      checks: { database: true, chain: 'head_never_reached', projection: true },
    })
    const back = createServer((socket) => {
      const node = connect(Number(new URL(anvil.url).port))
      socket.pipe(node).pipe(socket)
      for (const end of [socket, node]) end.on('error', () => {})
    }).listen(port, '127.0.0.1')
    await until('readiness', isReady(indexer))
    back.close()
  })

  it('when the database belongs to another chain, it exits with an error that names the genesis', async () => {
    await test.db
      .insertInto('chain_progress')
      .values({ chain_id: CHAIN_ID, genesis_hash: '0xother', next_block: 0, head: 0, completed_at: 0 })
      .execute()
    const indexer = await start()
    expect(await exitOf(indexer)).to.equal(1)
    expect(indexer.output()).to.include('this database follows chain 6343 with genesis 0xother')
  })

  it('when the database belongs to the exchange of another bank, it exits with an error that names both', async () => {
    const bank = `0x${'cc'.repeat(20)}`
    const indexer = await start({ ADDRESS_MARGIN_BANK: bank })
    expect(await exitOf(indexer)).to.equal(1)
    expect(indexer.output())
      .to.include(`with MarginBank ${exchange.shared.marginBank.toLowerCase()}`)
      .and.to.include(`ADDRESS_MARGIN_BANK is ${bank}`)
  })

  it('when a required variable is missing, it exits with an error that names it', async () => {
    const indexer = await start({ ADDRESS_MARGIN_BANK: '' })
    expect(await exitOf(indexer)).to.equal(1)
    expect(indexer.output()).to.include('ADDRESS_MARGIN_BANK is not set')
  })

  it('when the read model is rebuilt while it runs, it is equal under the next epoch', async () => {
    await exchange.deposit(await exchange.user('dave'), '4')
    const indexer = await start()
    await until('readiness', isReady(indexer))
    await until('the head', isUpToDate)
    const before = await dumpReadModel(test.db)
    await rebuild(test.db, { limit: 100, killPoint() {} })
    await until('the head', isUpToDate)
    expect(await dumpReadModel(test.db)).to.deep.equal(before)
    const epochs = await test.db.selectFrom('read.places').select('epoch').execute()
    expect(epochs.every(({ epoch }) => epoch === 2)).to.equal(true)
  })
})
