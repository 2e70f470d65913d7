/** `GET /v0/account/withdrawals`, and the pending withdrawals of the balance. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { BalanceChanged } from '../../../domain/journal/accounts-row.ts'
import { ACCOUNTS_SHARD } from '../../../domain/journal/journal-row.ts'
import { payableAt } from '../../../domain/settlement/durations.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'

const PATH = '/v0/account/withdrawals'
const iso = (millis: number): string => new Date(millis).toISOString()

describe('the withdrawals of an account', function () {
  this.timeout(60_000)
  let exchange: ExchangeFixture
  let user: User
  let users = 0
  let logs = 0

  before(async () => {
    exchange = await startExchange()
  })
  beforeEach(async () => {
    user = await createUser(exchange.db, `user ${++users}`)
  })
  after(() => exchange.stop())

  const moved = (
    cause: 'withdrawal_request' | 'withdrawal',
    units: number,
    { at = Date.now(), block = 10, rollback = false } = {},
  ): BalanceChanged => {
    const wei = BigInt(units) * 10n ** 18n
    const isRequest = cause === 'withdrawal_request'
    return {
      ...{ kind: 'balance_changed', cause, rollback, user_id: user.userId, block, at },
      ...{ free_delta: `${isRequest ? -wei : 0n}`, pending_withdrawal_delta: `${isRequest ? wei : -wei}` },
      ...{ tx_hash: `0x${++logs}`, log_index: logs },
    }
  }
  async function append(...rows: BalanceChanged[]): Promise<void> {
    await exchange.db.transaction().execute(async (tx) => {
      await appendRows(tx, await lockShard(tx, ACCOUNTS_SHARD), rows)
    })
    await exchange.project()
  }
  async function list(query = '') {
    const { status, body } = await exchange.get(user, `${PATH}?${query}`)
    expect(status, JSON.stringify(body)).to.equal(200)
    return body
  }
  const balance = async () => (await exchange.get(user, `/v0/balance/${user.userId}/margin`)).body.balance
  const statuses = async () =>
    (await list()).withdrawals.map((each: Record<string, unknown>) => [each.status, each.amount])

  it('when an account has requested nothing, its list is empty and nothing is pending', async () => {
    expect(await list()).to.deep.equal({
      ...{ pending: 0, pending_e18_raw: '0', payable_at: null, withdrawals: [], next_cursor: null },
    })
    expect((await balance()).pending_withdrawals_payable_at).to.equal(null)
  })

  it('when it requests twice, the second request restarts the clock of both, and one payout pays both', async () => {
    const start = Date.now() - 10_000
    await append(moved('withdrawal_request', 5, { at: start, block: 10 }))
    expect((await list()).payable_at).to.equal(iso(payableAt(start)))
    await append(moved('withdrawal_request', 7, { at: start + 9_000, block: 12 }))
    const { withdrawals, pending, payable_at } = await list()
    expect([pending, payable_at]).to.deep.equal([12, iso(payableAt(start + 9_000))])
    expect(withdrawals.map((each: Record<string, unknown>) => each.payable_at)).to.deep.equal([
      payable_at,
      payable_at,
    ])
    expect(withdrawals[0]).to.include({ status: 'REQUESTED', amount: 7, paid_at: null, paid_amount: null })
    expect(await balance()).to.include({
      pending_withdrawals: 12,
      pending_withdrawals_payable_at: payable_at,
    })

    await append(moved('withdrawal', 12, { at: start + 30_000, block: 40 }))
    const paid = await list()
    expect([paid.pending, paid.payable_at]).to.deep.equal([0, null])
    for (const each of paid.withdrawals)
      expect(each).to.include({
        ...{
          status: 'PAID',
          paid_amount: 12,
          paid_at: iso(start + 30_000),
          paid_tx_hash: `0x${logs}`,
          payable_at: null,
        },
      })
    const ids = withdrawals.map((each: Record<string, unknown>) => each.withdrawal_id)
    const { transactions } = (
      await exchange.get(user, '/v0/account/transactions?transaction_type=withdrawal')
    ).body
    expect(transactions.map(({ id }: { id: string }) => id)).to.have.members(ids)
  })

  it('when withdrawals are listed with from and to, the range limits the list and not what is pending', async () => {
    const start = Date.now() - 10_000
    for (const place of [0, 1, 2])
      await append(moved('withdrawal_request', place + 1, { at: start + place * 1_000, block: 10 + place }))
    const amounts = async (query: string) =>
      (await list(query)).withdrawals.map(({ amount }: { amount: number }) => amount)
    expect(await amounts(`from=${iso(start + 1_000)}`)).to.deep.equal([3, 2])
    expect(await amounts(`to=${iso(start + 2_000)}`)).to.deep.equal([2, 1])
    const query = `to=${iso(start + 2_000)}&limit=1`
    const { next_cursor, pending } = await list(query)
    expect(pending).to.equal(6)
    expect(await amounts(`${query}&cursor=${next_cursor}`)).to.deep.equal([1])
    expect(await list(`to=${iso(start)}`)).to.include({ pending: 6, next_cursor: null })
  })

  it('when the clock has run down, the withdrawal is payable, except during a pause of the bank', async () => {
    await append(moved('withdrawal_request', 5, { at: Date.now() - 60_000 }))
    expect(await statuses()).to.deep.equal([['PAYABLE', 5]])
    const pause = Math.floor(Date.now() / 1000) + 3_600
    await exchange.db.updateTable('chain_progress').set({ bank_pause_ends_at: pause }).execute()
    expect((await list()).payable_at).to.equal(iso(pause * 1000))
    expect(await statuses()).to.deep.equal([['REQUESTED', 5]])
    await exchange.db.updateTable('chain_progress').set({ bank_pause_ends_at: 0 }).execute()
  })

  it('when a fork takes a payout and a request back, the earlier request is pending again', async () => {
    const start = Date.now() - 5_000
    const [first, second] = [
      moved('withdrawal_request', 5, { at: start }),
      moved('withdrawal_request', 1, { at: start + 1_000, block: 11 }),
    ]
    const payout = moved('withdrawal', 6, { at: start + 20_000, block: 30 })
    await append(first, second, payout)
    expect(await statuses()).to.deep.equal([
      ['PAID', 1],
      ['PAID', 5],
    ])
    await append({ ...payout, rollback: true }, { ...second, rollback: true })
    expect(await statuses()).to.deep.equal([['REQUESTED', 5]])
    expect((await list()).payable_at).to.equal(iso(payableAt(start)))
  })

  it('when fills have used all that was pending, the request is marked as used', async () => {
    await append(moved('withdrawal_request', 5), { ...moved('withdrawal', 5), cause: 'fees_collected' })
    expect(await statuses()).to.deep.equal([['USED', 5]])
  })

  it('when fills have used a part of two requests, their payout is the rest, as in docs/trade', async () => {
    const noon = Date.UTC(2026, 10, 20, 12)
    await append(
      moved('withdrawal_request', 100, { at: noon, block: 10 }),
      moved('withdrawal_request', 50, { at: noon + 10_000, block: 20 }),
      { ...moved('withdrawal', 20, { at: noon + 12_000, block: 22 }), cause: 'fees_collected' },
    )
    expect(await statuses()).to.deep.equal([
      ['PAYABLE', 50],
      ['PAYABLE', 100],
    ])
    expect(await list()).to.include({ pending: 130, payable_at: '2026-11-20T12:00:26.000Z' })
    await append(moved('withdrawal', 130, { at: noon + 30_000, block: 40 }))
    const { withdrawals, pending } = await list()
    expect(pending).to.equal(0)
    for (const each of withdrawals) expect(each).to.include({ status: 'PAID', paid_amount: 130 })
  })

  it('when it reads page by page, it gets each request once, and a foreign cursor is rejected', async () => {
    await append(
      ...[1, 2, 3, 4, 5].map((units) => moved('withdrawal_request', units, { block: 10 + (units >> 1) })),
    )
    const read: number[] = []
    let cursor = ''
    do {
      const page = await list(`limit=2${cursor && `&cursor=${cursor}`}`)
      read.push(...page.withdrawals.map(({ amount }: { amount: number }) => amount))
      cursor = page.next_cursor ?? ''
    } while (cursor !== '')
    expect(read).to.deep.equal([5, 4, 3, 2, 1])
    const foreign = Buffer.from('withdrawals:10:x').toString('base64url')
    for (const each of ['x', foreign]) {
      const { status, body } = await exchange.get(user, `${PATH}?cursor=${each}`)
      expect([status, body.details.code]).to.deep.equal([400, 'INVALID_CURSOR'])
    }
  })
})
