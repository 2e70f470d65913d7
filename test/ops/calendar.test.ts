/** The commands of `clearbatch ops calendar …` on a database of their own. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { loadExceptions } from '../../db/calendar-exceptions.ts'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { dayText } from '../../domain/market/civil-day.ts'
import type { Address, MarketId } from '../../domain/units.ts'
import { perpetual } from '../support/markets.ts'
import { freshDatabase, loginOf } from '../support/postgres.ts'
import { listMarket } from '../support/rows/markets.ts'
import { ServedEngine } from '../support/served-engine.ts'
import { captureOps } from './support/captured-ops.ts'

const stock = {
  ...perpetual,
  marketId: 7 as MarketId,
  symbol: 'AAPL-PERP',
  trader: `0x${'7'.repeat(40)}` as Address,
  fundingSession: true,
}
const DRY_RUN = 'Nothing was written: --send writes it.\n'
const WRITTEN = 'Written. Running processes apply it within 5 s.\n'

describe('clearbatch ops calendar', () => {
  let url: string
  let db: Db
  let served: ServedEngine
  before(async () => {
    url = await freshDatabase()
    db = createDb(createPool({ url, connections: 1, name: 'test' }))
    await listMarket(db, perpetual)
    await listMarket(db, stock)
    served = await ServedEngine.start(db)
  })
  after(async () => {
    await served.stop()
    await db.destroy()
  })

  const ops = (args: readonly string[], as = url) =>
    captureOps(['calendar', ...args], { DATABASE_URL: as, ...served.env })
  const stored = async () =>
    (await loadExceptions(db)).map(({ day, hours, reason }) => [dayText(day), hours, reason]).slice(1)
  const calendars = async () =>
    (await db.selectFrom('markets').select('calendar').orderBy('market_id').execute()).map(
      (row) => row.calendar,
    )

  const closure = ['add', '--date', '2026-11-20', '--hours', 'closed', '--reason', 'Day of mourning']

  it('when a closure is added without --send, it is printed and not written', async () => {
    expect(await ops(closure)).to.deep.equal({
      code: 0,
      stdout: `NYSE 2026-11-20: closed (Day of mourning) instead of 09:30-16:00\n${DRY_RUN}`,
      stderr: '',
    })
    expect(await stored()).to.deep.equal([])
  })

  it('when an exception is added with --send, it is written, and a second one of the date replaces it', async () => {
    expect((await ops([...closure, '--send'])).stdout).to.include(WRITTEN)
    expect(await stored()).to.deep.equal([['2026-11-20', null, 'Day of mourning']])
    const early = [
      'add',
      '--date',
      '2026-11-20',
      '--hours',
      '09:30-14:20',
      '--reason',
      'Market-wide halt',
      '--send',
    ]
    expect((await ops(early)).stdout).to.equal(
      `NYSE 2026-11-20: 09:30-14:20 (Market-wide halt) instead of closed\n${WRITTEN}`,
    )
    expect(await stored()).to.deep.equal([['2026-11-20', { opens: 570, closes: 860 }, 'Market-wide halt']])
  })

  it('when the calendar is shown, it lists the session, the exceptions and the calendar of each market', async () => {
    const { stdout } = await ops(['show'])
    expect(stdout).to.match(/^NYSE: (open|closed) at .* UTC, next change .* UTC\n/)
    expect(stdout).to.include(
      '  2025-01-09  closed (National Day of Mourning for President Carter) instead of 09:30-16:00\n',
    )
    expect(stdout).to.include('  2026-11-20  09:30-14:20 (Market-wide halt) instead of 09:30-16:00\n')
    expect(stdout).to.include('BTC-PERP: calendar none\nAAPL-PERP: calendar NYSE\n')
  })

  it('when an exception is removed with --send, the rules apply again', async () => {
    const removal = ['remove', '--date', '2026-11-20']
    expect((await ops(removal)).stdout).to.include(DRY_RUN)
    expect((await ops([...removal, '--send'])).stdout).to.equal(
      `NYSE 2026-11-20: 09:30-16:00 by the rules instead of 09:30-14:20\n${WRITTEN}`,
    )
    expect(await stored()).to.deep.equal([])
  })

  it('when a calendar is assigned with --send, the market follows it', async () => {
    const assignment = ['assign', '--market', 'AAPL-PERP', '--calendar', 'ALWAYS_OPEN']
    expect((await ops(assignment)).stdout).to.include(DRY_RUN)
    expect(await calendars()).to.deep.equal([null, 'NYSE'])
    expect((await ops([...assignment, '--send'])).stdout).to.equal(
      `AAPL-PERP: calendar ALWAYS_OPEN instead of NYSE\n${WRITTEN}`,
    )
    expect(await calendars()).to.deep.equal([null, 'ALWAYS_OPEN'])
  })

  const LONG = 'x'.repeat(201)
  for (const [args, problem] of [
    [[], 'ops calendar needs one of: show, add'],
    [['edit'], 'unknown command edit after ops calendar.'],
    [['add', '--hours', 'closed', '--reason', 'x'], '--date is required'],
    [
      ['add', '--date', '2026-02-30', '--hours', 'closed', '--reason', 'x'],
      'such as 2026-11-27; received 2026-02-30',
    ],
    [['add', '--date', '2026-11-20', '--reason', 'x'], '--hours is required'],
    [['add', '--date', '2026-11-20', '--hours', '09:00-13:00', '--reason', 'x'], 'received 09:00-13:00'],
    [['add', '--date', '2026-11-20', '--hours', '13:00-09:30', '--reason', 'x'], 'received 13:00-09:30'],
    [
      ['add', '--date', '2026-11-20', '--hours', 'noon', '--reason', 'x'],
      '--hours must be closed, or within 09:30-16:00',
    ],
    [['add', '--date', '2026-11-20', '--hours', 'closed'], '--reason is required'],
    [
      ['add', '--date', '2026-11-20', '--hours', 'closed', '--reason', LONG],
      'at most 200 characters; received 201',
    ],
    [['remove', '--date', '2026-11-23'], 'the date of an exception (2025-01-09); received 2026-11-23'],
    [['assign', '--calendar', 'NYSE'], '--market is required'],
    [['assign', '--market', 'ETH', '--calendar', 'NYSE'], 'one of BTC-PERP, AAPL-PERP; received ETH'],
    [['assign', '--market', 'AAPL-PERP', '--calendar', 'none'], 'the contract of AAPL-PERP needs sessions'],
    [
      ['assign', '--market', 'AAPL-PERP', '--calendar', 'LSE'],
      'must be one of NYSE, ALWAYS_OPEN, none, not LSE',
    ],
  ] as const) {
    it(`when the arguments are "${args.join(' ').slice(0, 80)}", it prints what is valid and writes nothing`, async () => {
      const { code, stdout, stderr } = await ops(args.length > 1 ? [...args, '--send'] : args)
      expect(stderr).to.include(problem)
      expect([code === 0, stdout]).to.deep.equal([false, ''])
      expect(await stored()).to.deep.equal([])
    })
  }

  it('when the connection is that of a process, Postgres refuses and nothing is written', async () => {
    const { code, stderr } = await ops([...closure, '--send'], await loginOf(url, 'keeper'))
    expect([code, stderr]).to.deep.equal([1, 'permission denied for table calendar_exceptions\n'])
    expect(await stored()).to.deep.equal([])
  })

  it('when no database is named, it names the variable and the flag that would', async () => {
    const { code, stderr } = await ops(['show'], '')
    expect([code, stderr.includes('DATABASE_URL is not set'), stderr.includes('--stack')]).to.deep.equal([
      1,
      true,
      true,
    ])
  })
})
