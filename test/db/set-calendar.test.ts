/** `npm run set-calendar` as a process, on a database of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { loadExceptions } from '../../db/calendar-exceptions.ts'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { listMarket } from '../../db/markets.ts'
import { dayText } from '../../domain/market/civil-day.ts'
import type { Address, MarketId } from '../../domain/units.ts'
import { perpetual } from '../support/markets.ts'
import { freshDatabase, loginOf } from '../support/postgres.ts'

const stock = {
  ...perpetual,
  marketId: 7 as MarketId,
  symbol: 'AAPL-PERP',
  trader: `0x${'7'.repeat(40)}` as Address,
  fundingSession: true,
}
const DRY_RUN = 'Dry run: nothing was written. Repeat the command with --send to write it.\n'
const WRITTEN = 'Written. Running processes apply it within 5 s.\n'

describe('npm run set-calendar', () => {
  let url: string
  let db: Db
  before(async () => {
    url = await freshDatabase()
    db = createDb(createPool({ url, connections: 1, name: 'test' }))
    await listMarket(db, perpetual)
    await listMarket(db, stock)
  })
  after(() => db.destroy())

  async function run(args: readonly string[], as = url) {
    const env = { ...process.env, DATABASE_URL: as }
    const child = spawn(process.execPath, ['db/set-calendar.ts', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
    })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (data) => {
        output[name] += data
      })
    const [code] = await once(child, 'close')
    return { code, ...output }
  }
  const stored = async () =>
    (await loadExceptions(db)).map(({ day, hours, reason }) => [dayText(day), hours, reason]).slice(1)
  const calendars = async () =>
    (await db.selectFrom('markets').select('calendar').orderBy('market_id').execute()).map(
      (row) => row.calendar,
    )

  const closure = ['add', '--date', '2026-11-20', '--hours', 'closed', '--reason', 'Day of mourning']

  it('when a closure is added without --send, it is printed and not written', async () => {
    const { code, stdout, stderr } = await run(closure)
    expect(stderr).to.equal('')
    expect(stdout).to.equal(`NYSE 2026-11-20: closed (Day of mourning) instead of 09:30-16:00\n${DRY_RUN}`)
    expect(code).to.equal(0)
    expect(await stored()).to.deep.equal([])
  })

  it('when an exception is added with --send, it is written, and a second one of the date replaces it', async () => {
    expect((await run([...closure, '--send'])).stdout).to.include(WRITTEN)
    expect(await stored()).to.deep.equal([['2026-11-20', null, 'Day of mourning']])
    const early = [
      'add',
      '--date',
      '2026-11-20',
      '--hours',
      '09:30-14:20',
      '--reason',
      'Level 3 breaker',
      '--send',
    ]
    expect((await run(early)).stdout).to.equal(
      `NYSE 2026-11-20: 09:30-14:20 (Level 3 breaker) instead of closed\n${WRITTEN}`,
    )
    expect(await stored()).to.deep.equal([['2026-11-20', { opens: 570, closes: 860 }, 'Level 3 breaker']])
  })

  it('when the calendar is shown, it lists the session, the exceptions and the calendar of each market', async () => {
    const { stdout } = await run(['show'])
    expect(stdout).to.match(/^NYSE: (open|closed) at \S+Z, next change \S+:\d\d:00\.000Z\n/)
    expect(stdout).to.include(
      '  2025-01-09  closed (National Day of Mourning for President Carter) instead of 09:30-16:00',
    )
    expect(stdout).to.include('  2026-11-20  09:30-14:20 (Level 3 breaker) instead of 09:30-16:00')
    expect(stdout).to.include('BTC-PERP: calendar none\nAAPL-PERP: calendar NYSE\n')
  })

  it('when an exception is removed with --send, the rules apply again', async () => {
    const removal = ['remove', '--date', '2026-11-20']
    expect((await run(removal)).stdout).to.include(DRY_RUN)
    expect((await run([...removal, '--send'])).stdout).to.equal(
      `NYSE 2026-11-20: 09:30-16:00 by the rules instead of 09:30-14:20\n${WRITTEN}`,
    )
    expect(await stored()).to.deep.equal([])
  })

  it('when a calendar is assigned with --send, the market follows it', async () => {
    const assignment = ['assign', '--market', 'AAPL-PERP', '--calendar', 'ALWAYS_OPEN', '--send']
    expect((await run(assignment)).stdout).to.equal(
      `AAPL-PERP: calendar ALWAYS_OPEN instead of NYSE\n${WRITTEN}`,
    )
    expect(await calendars()).to.deep.equal([null, 'ALWAYS_OPEN'])
  })

  for (const [args, problem] of [
    [[], 'exactly one command is required'],
    [['edit'], 'unknown command edit'],
    [['add', '--hours', 'closed', '--reason', 'x'], '--date must be a date such as 2026-11-27, not missing'],
    [['add', '--date', '2026-02-30', '--hours', 'closed', '--reason', 'x'], 'not 2026-02-30'],
    [['add', '--date', '2026-11-20', '--reason', 'x'], '--hours must be closed, or within 09:30-16:00'],
    [['add', '--date', '2026-11-20', '--hours', '09:00-13:00', '--reason', 'x'], 'not 09:00-13:00'],
    [['add', '--date', '2026-11-20', '--hours', '13:00-09:30', '--reason', 'x'], 'not 13:00-09:30'],
    [['add', '--date', '2026-11-20', '--hours', 'closed'], '--reason must be a text of 1 to 200 characters'],
    [['remove', '--date', '2026-11-23'], 'the date of an exception (2025-01-09), not 2026-11-23'],
    [['assign', '--calendar', 'NYSE'], '--market must be one of BTC-PERP, AAPL-PERP, not missing'],
    [['assign', '--market', 'AAPL-PERP', '--calendar', 'none'], 'the contract of AAPL-PERP needs sessions'],
    [
      ['assign', '--market', 'AAPL-PERP', '--calendar', 'LSE'],
      'must be one of NYSE, ALWAYS_OPEN, none, not LSE',
    ],
  ] as const) {
    it(`when the arguments are "${args.join(' ')}", it prints what is valid and exits with 2`, async () => {
      const { code, stdout, stderr } = await run([...args, '--send'])
      expect(stderr).to.include(problem).and.to.include('usage: npm run set-calendar --')
      expect([code, stdout]).to.deep.equal([2, ''])
      expect(await stored()).to.deep.equal([])
    })
  }

  it('when the connection is that of a process, Postgres refuses and nothing is written', async () => {
    const { code, stderr } = await run([...closure, '--send'], await loginOf(url, 'keeper'))
    expect(stderr).to.equal('set-calendar: permission denied for table calendar_exceptions\n')
    expect(code).to.equal(1)
    expect(await stored()).to.deep.equal([])
  })
})
