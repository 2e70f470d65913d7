/** Bad days of an operator: each is refused at the start, or stated within ten seconds by a metric and a log line. */
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { bindExchange } from '../../db/bound-exchange.ts'
import { apiEnv } from '../api/support/exchange-fixture.ts'
import { skipBecause } from '../e2e/support/guide.ts'
import { captureOps } from '../ops/support/captured-ops.ts'
import { hasPromtool, isFiring, seriesValue } from '../support/alert-rules.ts'
import { createAuthority, hasOpenssl, type TestAuthority } from '../support/certificates.ts'
import { perpetual } from '../support/markets.ts'
import { PATIENCE } from '../support/patience.ts'
import { ChainFixture, laneKey, useChain } from './support/chain-fixture.ts'
import { type KeeperProcess, systemClockWrongBy, until } from './support/keeper-process.ts'
import { Keepers } from './support/keepers.ts'

/** From the event to the metric and the log line, on a quiet machine. */
const ALARM_MS = 10_000
const HOUR_MS = 3_600_000
const BALANCE = 'keeper_relayer_balance{lane="m1"}'
const BACKUP = 'keeper_backup_timestamp_seconds'
const EXPIRY = 'certificate_expires_at_seconds{role="server"}'

/** Runs a process until it has ended. */
const startOf = (main: string, env: Record<string, string>) =>
  spawnSync(process.execPath, [main], {
    encoding: 'utf8',
    timeout: ALARM_MS * PATIENCE,
    env: { ...process.env, ...env },
  })

describe('a bad day of the keeper', function () {
  this.timeout(120_000)
  const chain = useChain(perpetual)
  let keepers: Keepers
  let fixture: ChainFixture
  let authority: TestAuthority | undefined

  beforeEach(async () => {
    keepers = await Keepers.on(await ChainFixture.openOn(chain()))
    ;({ fixture } = keepers)
  })
  afterEach(async () => {
    authority?.remove()
    authority = undefined
    await keepers.close()
  })

  const readValue = async ({ url }: KeeperProcess, series: string): Promise<number | null> =>
    seriesValue(await (await fetch(`${url}/metrics`)).text(), series)

  /** Waits until the metric and the output of the keeper both state the event. */
  async function stated(keeper: KeeperProcess, series: string, is: (value: number) => boolean, line: string) {
    const isStated = async () => {
      const value = await readValue(keeper, series)
      return value !== null && is(value) && keeper.output.includes(line)
    }
    await until(isStated, () => keeper.output, ALARM_MS)
  }

  const expectFiring = (alert: string, series: string, value: number, isExpected = true): void => {
    if (hasPromtool()) expect(isFiring(alert, series, value), alert).to.equal(isExpected)
  }

  /** Code and output of a start that must be refused. */
  async function refused(env: Record<string, string>): Promise<string> {
    const keeper = await keepers.start(env)
    expect(await keeper.ended(), keeper.output).to.deep.equal([1, null])
    return keeper.output
  }

  it('when a relayer is empty, metric, log and alert state it, and gas sent to the key of the runbook ends it', async () => {
    const keeper = await keepers.startReady({ LOG_LEVEL: 'info' })
    const { provider } = chain()
    await until(async () => ((await readValue(keeper, BALANCE)) ?? 0) > 1)
    const full = await readValue(keeper, BALANCE)
    await provider.send('anvil_setBalance', [fixture.lane.relayer, '0x0'])
    await stated(keeper, BALANCE, (value) => value === 0, 'relayer balance low')
    expectFiring('RelayerBalanceLow', BALANCE, 0)

    const shown = await captureOps(['relayer', 'show'], { DATABASE_URL: fixture.url })
    expect(shown.stdout.toLowerCase()).to.include(fixture.lane.relayer.toLowerCase())
    await provider.send('anvil_setBalance', [fixture.lane.relayer, '0x56bc75e2d63100000'])
    await stated(keeper, BALANCE, (value) => value === 100, 'relayer balance restored')
    expectFiring('RelayerBalanceLow', BALANCE, full ?? 0, false)
    expect(keeper.output.split('relayer balance low')).to.have.length(2)
  })

  const record = (label: string, completed_at: number) =>
    fixture.db
      .insertInto('backups')
      .values({ label, started_at: completed_at, completed_at, bytes: 1 })
      .execute()

  it('when the newest backup is stale, metric, log and alert state it, and a new one ends it', async () => {
    const old = Date.now() - 30 * HOUR_MS
    await record('old', old)
    const keeper = await keepers.startReady()
    await stated(keeper, BACKUP, (value) => value === old / 1000, 'newest base backup is stale')
    const ageOf = (seconds: number): number => Date.now() / 1000 - seconds
    // The time of the alert's test begins at 0.
    expectFiring('BackupStale', BACKUP, -ageOf(old / 1000))

    const checked = await captureOps(['backup', 'check'], { DATABASE_URL: fixture.url })
    expect(checked.code).to.equal(1)
    expect(checked.stderr).to.include('the newest base backup is of ')
    const now = Date.now()
    await record('new', now)
    await until(
      async () => (await readValue(keeper, BACKUP)) === now / 1000,
      () => keeper.output,
      ALARM_MS,
    )
    expectFiring('BackupStale', BACKUP, -ageOf(now / 1000), false)
  })

  it('when CHAIN_ID is that of another chain than the node, the start is refused with both', async () => {
    await fixture.db.deleteFrom('bound_exchange').execute()
    // The faucet's lane is refused on other chains than test chains.
    const output = await refused({ CHAIN_ID: '4326', RELAYER_KEYS: JSON.stringify({ m1: laneKey }) })
    expect(output).to.include('CHAIN_ID is "4326": the node of RPC_URL is on chain 6343')
  })

  const OTHER_BANK = `0x${'cc'.repeat(20)}`

  /** Binds the database to the exchange of the fixture, which runs on it. */
  async function bind(): Promise<string> {
    const { marginBank } = fixture.chainSide.shared
    await bindExchange(fixture.db, { chainId: 6343, bank: marginBank })
    return marginBank.toLowerCase()
  }

  it('when the database is that of another exchange, the start is refused with both, and no lease is taken', async () => {
    const own = await bind()
    const output = await refused({ ADDRESS_MARGIN_BANK: OTHER_BANK })
    expect(output).to.include(`with MarginBank ${own}`).and.to.include(`ADDRESS_MARGIN_BANK is ${OTHER_BANK}`)
    expect(await fixture.db.selectFrom('leases').select('name').execute()).to.deep.equal([])
    await keepers.startReady()
  })

  for (const main of ['api/main.ts', 'keeper/engine/main.ts'])
    it(`when a second cluster uses the database of the first, its ${main} is refused with both exchanges`, async () => {
      const own = await bind()
      const { status, stderr } = startOf(main, {
        ...(apiEnv(fixture.url) as Record<string, string>),
        ADDRESS_MARGIN_BANK: OTHER_BANK,
        ENGINE_LISTEN: '127.0.0.1:0',
        ENGINE_URL: '127.0.0.1:1',
        ENGINE_KEYS_FILE: 'test/support/engine-keys.json',
        INTERNAL_PORT: '0',
      })
      expect(status, stderr).to.equal(1)
      expect(stderr)
        .to.include(`with MarginBank ${own}`)
        .and.to.include(`ADDRESS_MARGIN_BANK is ${OTHER_BANK}`)
    })

  it('when a certificate has expired, the start is refused; when one expires, metric, log and alert state it', async function () {
    if (!hasOpenssl()) skipBecause(this, 'openssl is not installed')
    authority = createAuthority()
    const expired = authority.issue('expired', { days: -1 })
    const files = (pair: typeof expired) => ({ TLS_CERT_FILE: pair.certificate, TLS_KEY_FILE: pair.key })
    expect(await refused(files(expired))).to.match(/TLS_CERT_FILE is ".*", whose certificate expired at /)

    const valid = authority.issue('valid', { days: 20 })
    const expiry = new X509Certificate(readFileSync(valid.certificate)).validToDate.getTime()
    const untilExpiry = expiry - Date.now()
    const keeper = await keepers.start({
      ...files(valid),
      ...systemClockWrongBy(untilExpiry - ALARM_MS),
    })
    await until(
      async () => keeper.output.includes('certificate has expired'),
      () => keeper.output,
    )
    expect(keeper.output).to.include(`"role":"server","expired_at":"${new Date(expiry).toISOString()}"`)
    expectFiring('CertificateExpires', EXPIRY.replace('}', ', job="keeper", instance="a"}'), 86_400)
  })
})

/** Settings of a keeper that are complete. None of their servers exists: the settings are checked first. */
const WHOLE = {
  DATABASE_URL: 'postgres://127.0.0.1:1/name',
  RPC_URL: 'http://127.0.0.1:1',
  CHAIN_ID: '6343',
  ADDRESS_USDM: `0x${'aa'.repeat(20)}`,
  ADDRESS_MARGIN_BANK: `0x${'bb'.repeat(20)}`,
  RELAYER_KEYS: JSON.stringify({ m1: laneKey }),
  ENGINE_URL: '127.0.0.1:1',
  ENGINE_KEYS_FILE: 'test/support/engine-keys.json',
  INTERNAL_PORT: '0',
}

describe('a cluster that is configured by half', function () {
  this.timeout(60_000)
  const HALVES: Readonly<Record<string, readonly [env: Record<string, string>, named: string]>> = {
    'a client certificate of the database without its key': [
      { DATABASE_URL: 'postgres://host/name', DATABASE_CERT_FILE: '/nowhere/client.pem' },
      'DATABASE_KEY_FILE is not set although DATABASE_CERT_FILE is: expected both',
    ],
    'a server certificate without its key': [
      { TLS_CERT_FILE: '/nowhere/server.pem' },
      'TLS_KEY_FILE is not set although TLS_CERT_FILE is: expected both',
    ],
    'keys of the engine without its address': [{ ENGINE_URL: '' }, 'ENGINE_URL is not set'],
    'addresses of the engine without the keys of its roles': [
      { ENGINE_KEYS_FILE: '' },
      'ENGINE_KEYS_FILE is not set',
    ],
    'an authority of the engine without a certificate': [
      { ENGINE_URL: 'engine:7100', ENGINE_TLS_CA_FILE: '/nowhere/ca.pem' },
      'ENGINE_TLS_CERT_FILE is not set although ENGINE_TLS_CA_FILE is: expected both',
    ],
    'files of Redis without TLS': [
      { REDIS_URL: 'redis://127.0.0.1:1', REDIS_CA_FILE: '/nowhere/ca.pem' },
      'REDIS_URL has no TLS although',
    ],
    'a file of prices that is absent': [{ PRICES_FILE: '/nowhere/prices.json' }, 'PRICES_FILE is'],
  }
  for (const [half, [env, named]] of Object.entries(HALVES))
    it(`when a keeper has ${half}, the start is refused with the variable`, () => {
      const { status, stderr } = startOf('keeper/main.ts', { ...WHOLE, ...env })
      expect(status, stderr).to.equal(1)
      expect(stderr).to.include(named)
    })
})
