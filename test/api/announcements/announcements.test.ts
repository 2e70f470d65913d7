import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { postAnnouncement, withdrawAnnouncement } from '../../../db/announcements.ts'
import type { Millis } from '../../../domain/units.ts'
import { LiveClient } from '../../support/live-client.ts'
import { type ExchangeFixture, startExchange } from '../support/exchange-fixture.ts'

const PATH = '/v0/announcements'
const MINUTE = 60_000

describe('announcements', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  before(async () => {
    exchange = await startExchange()
    await exchange.project()
    await exchange.api.app.listen({ port: 0, host: '127.0.0.1' })
  })
  after(() => exchange.stop())

  const notice = (title: string, body = '') =>
    postAnnouncement(exchange.db, {
      kind: 'notice',
      title,
      body,
      market_id: null,
      starts_at: null,
      ends_at: null,
      created_at: Date.now(),
    })
  const maintenance = (title: string, starts_at: number, ends_at: number, market_id: number | null = null) =>
    postAnnouncement(exchange.db, {
      kind: 'maintenance',
      title,
      body: '',
      market_id,
      starts_at,
      ends_at,
      created_at: Date.now(),
    })
  const windows = async () => (await exchange.get(null, '/v0/status')).body.maintenance

  it('when nothing was announced, the list is empty and the status has no window', async () => {
    const { status, body } = await exchange.get(null, PATH)
    expect([status, body]).to.deep.equal([200, { announcements: [], next_cursor: null }])
    expect(await windows()).to.deep.equal([])
  })

  it('when there are several announcements, pages contain each of them once, newest first', async () => {
    const ids: number[] = []
    for (let n = 0; n < 5; n++) ids.unshift(await notice(`Notice ${n}`, '<b>text</b>'))
    const listed: number[] = []
    let path = `${PATH}?limit=2`
    for (;;) {
      const { body } = await exchange.get(null, path)
      listed.push(...body.announcements.map((each: { announcement_id: number }) => each.announcement_id))
      if (body.next_cursor === null) break
      path = `${PATH}?limit=2&cursor=${body.next_cursor}`
    }
    expect(listed).to.deep.equal(ids)
    const [newest] = (await exchange.get(null, PATH)).body.announcements
    expect(newest).to.include({ kind: 'notice', title: 'Notice 4', body: '<b>text</b>', withdrawn_at: null })
  })

  it('when the query is wrong, it names the field and what is valid', async () => {
    const cursor = Buffer.from('announcements:1:x').toString('base64url')
    const wrong = [
      [`${PATH}?limit=0`, 'limit', 'INVALID_FIELD'],
      [`${PATH}?limit=101`, 'limit', 'INVALID_FIELD'],
      [`${PATH}?limit=x`, 'limit', 'INVALID_FIELD'],
      [`${PATH}?cursor=x`, 'cursor', 'INVALID_CURSOR'],
      [`${PATH}?cursor=${cursor}`, 'cursor', 'INVALID_CURSOR'],
      [`${PATH}?market=1`, 'market', 'UNKNOWN_FIELD'],
    ] as const
    for (const [path, field, code] of wrong) {
      const { status, body } = await exchange.get(null, path)
      expect([status, body.details.field, body.details.code], path).to.deep.equal([400, field, code])
    }
  })

  it('when maintenance is announced, the status has its window until it ends or is withdrawn', async () => {
    const now = Date.now()
    await maintenance('past', now - 2 * MINUTE, now - MINUTE)
    const later = await maintenance('later', now + MINUTE, now + 3 * MINUTE, 1)
    const current = await maintenance('current', now - MINUTE, now + 2 * MINUTE)
    const shown = await windows()
    expect(
      shown.map(({ title, active, market_id }: Record<string, unknown>) => [title, active, market_id]),
    ).to.deep.equal([
      ['current', true, null],
      ['later', false, 1],
    ])
    expect(shown[0]).to.include({
      announcement_id: current,
      ends_at: new Date(now + 2 * MINUTE).toISOString(),
    })
    expect(await withdrawAnnouncement(exchange.db, later, Date.now() as Millis)).to.equal(true)
    expect(await withdrawAnnouncement(exchange.db, later, Date.now() as Millis)).to.equal(false)
    expect((await windows()).map(({ title }: { title: string }) => title)).to.deep.equal(['current'])
    const listed = (await exchange.get(null, PATH)).body.announcements
    const withdrawn = listed.find((each: { announcement_id: number }) => each.announcement_id === later)
    expect(withdrawn.withdrawn_at).to.be.a('string')
  })

  it('when an announcement is posted, the topic system has it, and no longer once it is withdrawn', async () => {
    const base = `http://127.0.0.1:${(exchange.api.app.server.address() as AddressInfo).port}`
    const client = await LiveClient.open(base, {})
    client.send('subscribe', { topics: ['system'] })
    const snapshot = await client.find(({ type, topic }) => type === 'snapshot' && topic === 'system')
    expect(snapshot.data.announcements.length).to.be.within(1, 10)
    const id = await notice('Fees change tomorrow')
    const update = await client.find(
      ({ type, data }) => type === 'update' && data.announcements?.[0]?.announcement_id === id,
    )
    expect(update.data.announcements[0]).to.include({ kind: 'notice', title: 'Fees change tomorrow' })
    expect(update.data.announcements[0]).to.not.have.property('body')
    await withdrawAnnouncement(exchange.db, id, Date.now() as Millis)
    await client.find(
      ({ type, data, seq }) =>
        type === 'update' &&
        seq > update.seq &&
        data.announcements.every((each: { announcement_id: number }) => each.announcement_id !== id),
    )
    await client.close()
  })
})
