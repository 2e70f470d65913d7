/** Cases that every implementation of the engine's journal and lease passes. */
import { expect } from 'chai'
import { ContentRejected, type Group, type Journal, type Lease } from '../../../keeper/engine/ports.ts'

export interface JournalFixture {
  readonly journal: Journal<unknown>
  readonly lease: Lease
  /** Lets virtual time pass until the promise settles; a real implementation only waits. */
  until<Value>(work: Promise<Value>): Promise<Value>
  /** A row whose content the database rejects. */
  readonly poison: unknown
}

const groupOf = (
  number: number,
  token: number,
  rows: readonly unknown[] = [{ n: number }],
): Group<unknown> => ({
  number,
  token,
  version: 1,
  rows,
  before: `b${number}`,
  digest: `d${number}`,
})

async function takeFresh({ lease, until }: JournalFixture): Promise<number> {
  const token = await until(lease.take(await until(lease.read())))
  expect(token).to.be.a('number')
  return token as number
}

export function journalCases(open: () => Promise<JournalFixture>): void {
  it('when groups are appended in order under the current token, they are read as they were stored', async () => {
    const fixture = await open()
    const { journal, until } = fixture
    const token = await takeFresh(fixture)
    for (const number of [1, 2, 3]) expect(await until(journal.append(groupOf(number, token)))).to.equal(true)
    expect(await until(journal.read(0, 10))).to.deep.equal([1, 2, 3].map((number) => groupOf(number, token)))
    expect(await until(journal.read(1, 1))).to.deep.equal([groupOf(2, token)])
    expect(await until(journal.read(3, 10))).to.deep.equal([])
  })

  it('when the number does not follow the head, nothing is stored', async () => {
    const fixture = await open()
    const { journal, until } = fixture
    const token = await takeFresh(fixture)
    await until(journal.append(groupOf(1, token)))
    for (const number of [1, 3]) expect(await until(journal.append(groupOf(number, token)))).to.equal(false)
    expect(await until(journal.read(0, 10))).to.have.length(1)
  })

  it('when another member has taken the lease, the former owner can neither append nor renew', async () => {
    const fixture = await open()
    const { journal, lease, until } = fixture
    const former = await takeFresh(fixture)
    const token = await takeFresh(fixture)
    expect(token).to.equal(former + 1)
    expect(await until(journal.append(groupOf(1, former)))).to.equal(false)
    expect(await until(lease.renew(former))).to.equal(false)
    await until(lease.release(former))
    expect((await until(lease.read())).isReleased).to.equal(false)
    expect(await until(journal.append(groupOf(1, token)))).to.equal(true)
  })

  it('when two members take the lease by the same reading, one gets it', async () => {
    const { lease, until } = await open()
    const seen = await until(lease.read())
    const tokens = await until(Promise.all([lease.take(seen), lease.take(seen), lease.take(seen)]))
    expect(tokens.filter((token) => token !== null)).to.have.length(1)
  })

  it('when the owner has renewed since the reading, the lease cannot be taken by it', async () => {
    const fixture = await open()
    const { lease, until } = fixture
    const token = await takeFresh(fixture)
    const seen = await until(lease.read())
    expect(await until(lease.renew(token))).to.equal(true)
    expect(await until(lease.take(seen))).to.equal(null)
    await until(lease.release(token))
    const released = await until(lease.read())
    expect(released.isReleased).to.equal(true)
    expect(await until(lease.take(released))).to.equal(token + 1)
  })

  it('when the database rejects what a group contains, the next group takes its number', async () => {
    const fixture = await open()
    const { journal, until, poison } = fixture
    const token = await takeFresh(fixture)
    const failure = await until(journal.append(groupOf(1, token, [poison])).catch((error: unknown) => error))
    expect(failure).to.be.instanceOf(ContentRejected)
    expect(await until(journal.append(groupOf(1, token)))).to.equal(true)
  })
}
