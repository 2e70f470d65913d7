/** The drill of docs/operate/backup.md on real servers: base backup, archived WAL, loss of the database, restore to a point in time. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { sql } from 'kysely'
import { after, before, describe, it } from 'mocha'
import type { Placement } from '../../client/responses.ts'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { isRestored } from '../../db/engine-identity.ts'
import { startPostgres } from '../../stack/postgres.ts'
import { ShadowRun } from '../../stack/shadow/shadow-run.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import { captureOps, type OpsResult } from '../ops/support/captured-ops.ts'
import { seriesValue } from '../support/alert-rules.ts'
import { waitFor } from '../support/patience.ts'
import { skipBecause } from './support/guide.ts'
import { differencesOf, nearOracle, trade, traderOn } from './support/stack.ts'

/** Client and server of one version: the embedded server is newer than Debian's `pg_basebackup`. */
const POSTGRES_BIN = '/usr/lib/postgresql/15/bin'
const MARKET = 1
const ARCHIVER = join(import.meta.dirname, '../../docs/operate/archive-wal.sh')

const errorCode = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: { readonly code?: string }) => error.code ?? String(error),
  )

describe('an exchange whose database is restored to a point in time', function () {
  this.timeout(180_000)
  const root = mkdtempSync(join(tmpdir(), 'clearbatch-restore-'))
  const dataDir = join(root, 'exchange')
  const backups = join(root, 'backups')
  const before_ = process.env.POSTGRES_BIN
  let stack: Stack | undefined
  let kept: Placement
  let cancelled: Placement
  let lost: Placement
  /** Matched before the point, settled on the chain after it. */
  let settledLater: readonly Placement[]
  let point = ''

  const start = async (): Promise<Stack> => {
    const archive = `sh ${ARCHIVER} "%p" "%f" ${backups}/wal`
    stack = await startStack(
      {
        port: 0,
        dataDir,
        fresh: false,
        bots: false,
        backstop: false,
        databaseSettings: ['archive_mode=on', `archive_command=${archive}`],
      },
      () => {},
    )
    return stack
  }
  const running = (): Stack => stack as Stack
  const backupOps = (...args: string[]) =>
    captureOps(['backup', ...args], { DATABASE_URL: running().postgres.url })
  /** Age of the newest backup as the keeper exports it, milliseconds. */
  const backupAge = async (): Promise<number> => {
    const metrics = await (await fetch(`${running().keeper.url}/metrics`)).text()
    return Date.now() - 1000 * (seriesValue(metrics, 'keeper_backup_timestamp_seconds') ?? 0)
  }
  const succeeded = ({ code, stderr }: OpsResult): void => {
    expect([code, stderr]).to.deep.equal([0, ''])
  }
  const settlementsOf = (db: Db) =>
    db
      .selectFrom('actions')
      .select('queue_no')
      .where('status', 'in', ['QUEUED', 'SIGNED', 'SUBMITTED'])
      .execute()

  before(async function () {
    if (!existsSync(join(POSTGRES_BIN, 'pg_basebackup')))
      return skipBecause(this, `${POSTGRES_BIN} has no pg_basebackup: install postgresql-15`)
    process.env.POSTGRES_BIN = POSTGRES_BIN
    mkdirSync(join(backups, 'wal'), { recursive: true })
    // The server archives and restores as another user.
    for (const path of [root, backups, join(backups, 'wal')]) chmodSync(path, 0o777)
    await start()
  })
  after(async () => {
    await stack?.stop()
    if (before_ === undefined) delete process.env.POSTGRES_BIN
    else process.env.POSTGRES_BIN = before_
    rmSync(root, { recursive: true, force: true })
  })

  it('when it trades, a verified base backup is taken, and the archive has the WAL behind it', async () => {
    const [alice, bob, carol] = [traderOn(running(), 0), traderOn(running(), 1), traderOn(running(), 2)]
    await trade(alice, bob, { marketId: MARKET, price: await nearOracle(alice, MARKET), quantity: '0.01' })
    expect(await backupAge()).to.be.greaterThan(26 * 3_600_000)
    succeeded(await backupOps('run', '--dir', backups))
    // The command of the runbook of BackupStale ends the alert.
    await waitFor(backupAge, (age) => age < 600_000)
    const price = await nearOracle(carol, MARKET, -20_000)
    const resting = { marketId: MARKET, side: 'LONG', price, quantity: '0.02' } as const
    kept = await carol.orders.place({ ...resting, clientOrderId: 'kept' })
    cancelled = await carol.orders.place({ ...resting, clientOrderId: 'cancelled-later' })
    await waitFor(
      () => settlementsOf(running().db),
      ({ length }) => length === 0,
    )

    const crossing = await nearOracle(alice, MARKET)
    const terms = { marketId: MARKET, price: crossing, quantity: '0.03', leverage: 2 }
    settledLater = await Promise.all([
      alice.orders.place({ ...terms, side: 'LONG' }),
      bob.orders.place({ ...terms, side: 'SHORT' }),
    ])
    // The tables follow the journal: the point is behind the match, and before or beside its settlement.
    const ids = settledLater.map(({ order }) => order.order_id)
    const matched = sql`
      select seq from journal cross join lateral json_array_elements(row -> 'fills') fill
      where row ->> 'kind' = 'batch_cleared' and fill ->> 'order_id' = any(${ids})
    `
    await waitFor(
      () => matched.execute(running().db),
      ({ rows }) => rows.length > 0,
      { everyMs: 5 },
    )
    const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(running().db)
    point = new Date(Number(rows[0]?.now) + 1).toISOString()
  })

  it('when trading goes on after the point, trades settle on the chain, and the archive gets them too', async () => {
    const [carol, dave, erin] = [traderOn(running(), 2), traderOn(running(), 3), traderOn(running(), 4)]
    for (let round = 0; round < 2; round++) {
      const price = await nearOracle(dave, MARKET)
      const { buy } = await trade(dave, erin, { marketId: MARKET, price, quantity: '0.05' })
      expect(buy.status).to.equal('FILLED')
    }
    await carol.orders.cancelByClientId('cancelled-later')
    const price = await nearOracle(carol, MARKET, -20_000)
    lost = await carol.orders.place({
      marketId: MARKET,
      side: 'LONG',
      price,
      quantity: '0.02',
      clientOrderId: 'lost',
    })
    expect(await differencesOf(running())).to.deep.equal([])
    const { rows } = await sql<{ name: string }>`select pg_walfile_name(pg_switch_wal()) as name`.execute(
      running().db,
    )
    const name = rows[0]?.name as string
    await waitFor(
      async () => existsSync(join(backups, 'wal', name)),
      (isArchived) => isArchived,
    )
    succeeded(await backupOps('check'))
  })

  it('when the database is destroyed and restored to the point, it is a primary with a new incarnation', async () => {
    await running().stop()
    stack = undefined
    const data = join(dataDir, 'postgres', 'data')
    rmSync(data, { recursive: true })
    const env = { DATABASE_URL: 'postgres://none' }
    succeeded(await captureOps(['backup', 'restore', '--dir', backups, '--data', data, '--to', point], env))
    if (process.getuid?.() === 0) execFileSync('chown', ['-R', 'nobody:', data])
    const postgres = await startPostgres({ dir: join(dataDir, 'postgres') })
    const db = createDb(createPool({ url: postgres.url, connections: 1, name: 'test' }))
    try {
      await waitFor(
        async () => (await sql<{ is: boolean }>`select pg_is_in_recovery() as is`.execute(db)).rows[0]?.is,
        (isRecovering) => isRecovering === false,
      )
      const owner = { DATABASE_URL: postgres.url }
      const unfinished = await isRestored(db).catch((error: Error) => error.name)
      expect(unfinished).to.equal('UnfinishedRestoreError')
      succeeded(await captureOps(['backup', 'finish', '--to', point, '--send'], owner))
      expect(await isRestored(db)).to.equal(true)
    } finally {
      await db.destroy()
      await postgres.stop()
    }
    await start()
  })

  it('when the exchange has started again, it has every order before the point, and none after it', async () => {
    const carol = traderOn(running(), 2)
    expect((await carol.orders.getByClientId('kept')).order_id).to.equal(kept.order.order_id)
    const again = await carol.orders.getByClientId('cancelled-later')
    expect([again.order_id, again.status]).to.deep.equal([cancelled.order.order_id, 'OPEN'])
    expect(await errorCode(carol.orders.getByClientId('lost'))).to.equal('ORDER_NOT_FOUND')
    expect((await traderOn(running(), 3).orders.list({ status: 'FILLED' })).length).to.equal(0)
  })

  it('when a client sends a bookmark from before the restore, it is stale', async () => {
    for (const { read_after } of [kept, lost]) {
      const query = new URLSearchParams({
        read_after_shard_id: read_after.shard_id,
        read_after_shard_seq: read_after.shard_seq,
      })
      const { base_url: base, accounts } = running().file
      const response = await fetch(`${base}/v0/orders/by-client-id/kept?${query}`, {
        headers: { authorization: `Key ${accounts[2]?.api_key}` },
      })
      expect(await response.text()).to.include('HTV1_READ_AFTER_STALE_BOOKMARK')
    }
  })

  it('when the chain has what the journal lacks, positions follow the chain, and no market trades until it is resumed', async () => {
    const [alice, dave] = [0, 3].map((index) => traderOn(running(), index))
    const sizes = await Promise.all(
      [alice, dave].map(async (each) => (await each?.account.positions({ marketId: MARKET }))?.[0]?.size),
    )
    expect(sizes.map((size) => Number(size).toFixed(2))).to.deep.equal(['0.04', '0.10'])
    for (const [index, { order }] of settledLater.entries())
      expect((await traderOn(running(), index).orders.get(order.order_id)).status).to.equal('FILLED')
    const markets = await running().db.selectFrom('markets').select('mode').distinct().execute()
    expect(markets).to.deep.equal([{ mode: 'cancel_only' }])
    const price = await nearOracle(traderOn(running(), 2), MARKET, -20_000)
    const impatient = traderOn(running(), 2, 1_000)
    const placed = impatient.orders.place({ marketId: MARKET, side: 'LONG', price, quantity: '0.02' })
    expect(await errorCode(placed)).to.equal('MARKET_NOT_OPEN')
    const mismatches = await running().db.selectFrom('settlement_mismatches').select('failure_kind').execute()
    expect(mismatches.map(({ failure_kind }) => failure_kind)).to.deep.equal(
      Array(2).fill('invalid_batch_trade_participant_coverage'),
    )
    expect(await differencesOf(running(), { areProofsKept: false })).to.deep.equal([])
  })

  it('when the operator resumes the market, trades settle again, and chain, journal and read model agree', async () => {
    const stackFile = join(dataDir, 'stack.json')
    const symbol = running().file.markets.find(({ market_id }) => market_id === MARKET)?.symbol as string
    succeeded(await captureOps(['market', 'resume', '--market', symbol, '--stack', stackFile, '--send'], {}))
    const [alice, bob] = [traderOn(running(), 0), traderOn(running(), 1)]
    const price = await nearOracle(alice, MARKET)
    const { buy } = await trade(alice, bob, { marketId: MARKET, price, quantity: '0.01' })
    expect(buy.status).to.equal('FILLED')
    expect(await differencesOf(running(), { areProofsKept: false })).to.deep.equal([])
    expect(
      await new ShadowRun(running().db).compare(),
      'the tables equal the fold of the journal',
    ).to.deep.equal([])
  })
})
