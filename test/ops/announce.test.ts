/** The commands of `clearbatch ops announce …` on a database of their own. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { listAnnouncements } from '../../db/announcements.ts'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { perpetual } from '../support/markets.ts'
import { freshDatabase, loginOf } from '../support/postgres.ts'
import { listMarket } from '../support/rows/markets.ts'
import { captureOps } from './support/captured-ops.ts'

describe('clearbatch ops announce', () => {
  let url: string
  let db: Db
  before(async () => {
    url = await freshDatabase()
    db = createDb(createPool({ url, connections: 1, name: 'test' }))
    await listMarket(db, perpetual)
  })
  after(() => db.destroy())

  const ops = (args: readonly string[], as = url) => captureOps(['announce', ...args], { DATABASE_URL: as })
  const stored = () => listAnnouncements(db, { beforeId: null, limit: 100 })
  const post = ['post', '--title', 'Upgrade', '--kind', 'maintenance', '--market', perpetual.symbol]
  const window = ['--from', '2099-01-01T00:00:00Z', '--to', '2099-01-01T01:00:00Z']

  it('when an announcement is posted without --send, it is printed and not written', async () => {
    const { code, stdout } = await ops([...post, ...window])
    expect(code).to.equal(0)
    expect(stdout).to.include('2099-01-01 00:00:00 UTC').and.include('Nothing was written: --send writes it.')
    expect(await stored()).to.deep.equal([])
  })

  it('when it is posted with --send, it is written and listed, and withdrawn once', async () => {
    expect((await ops([...post, ...window, '--send'])).stdout).to.match(/Written as announcement \d+/)
    const [row] = await stored()
    expect(row).to.include({
      kind: 'maintenance',
      title: 'Upgrade',
      market_id: perpetual.marketId,
      withdrawn_at: null,
    })
    const id = String(row?.announcement_id)
    expect((await ops(['list'])).stdout)
      .to.include(`${id}  `)
      .and.include('Upgrade')
    expect((await ops(['withdraw', '--id', id, '--send'])).code).to.equal(0)
    expect((await stored())[0]?.withdrawn_at).to.be.a('number')
    expect((await ops(['withdraw', '--id', id, '--send'])).stderr).to.include(`received ${id}`)
  })

  it('when a flag is wrong, it is named with what is valid, and nothing is written', async () => {
    const before = await stored()
    const wrong = [
      [['post', '--title', 'x'.repeat(201)], '--title'],
      [['post', '--title', '   '], '--title'],
      [['post', '--title', 'a\u001b[31mb'], '--title'],
      [['post', '--title', 'x', '--body', 'x'.repeat(4_001)], '--body'],
      [['post', '--title', 'x', '--kind', 'party'], '--kind'],
      [['post', '--title', 'x', '--market', 'NONE'], '--market'],
      [['post', '--title', 'x', ...window], '--from'],
      [['post', '--title', 'x', '--kind', 'maintenance'], '--from'],
      [[...post, '--from', '2099-01-01T00:00:00Z', '--to', '2098-01-01T00:00:00Z'], '--to'],
      [[...post, '--from', '2020-01-01T00:00:00Z', '--to', '2020-01-01T01:00:00Z'], '--to'],
      [[...post, '--from', 'tomorrow', '--to', '2099-01-01T00:00:00Z'], '--from'],
      [['withdraw', '--id', '999'], '--id'],
      [['withdraw', '--id', '1; drop table announcements'], '--id'],
    ] as const
    for (const [args, flag] of wrong) {
      const { code, stderr } = await ops([...args, '--send'])
      expect([code === 0, stderr.includes(flag)], `${args.join(' ')}: ${stderr}`).to.deep.equal([false, true])
    }
    expect(await stored()).to.deep.equal(before)
  })

  it('when a process of the exchange posts, the database refuses it', async () => {
    const refused = await ops(['post', '--title', 'x', '--send'], await loginOf(url, 'api'))
    expect([refused.code === 0, refused.stderr.includes('permission denied')]).to.deep.equal([false, true])
  })
})
