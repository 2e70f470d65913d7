/** Assertions for the end of every scenario: the database agrees with the contracts, and the read model with the write side. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import { unexplainedBalances } from '../../../stack/audit/deltas.ts'
import { matchedFills } from '../../keeper/support/matched-fills.ts'
import { withMirror } from '../../support/mirror.ts'
import { addressOf, type ExchangeFixture } from './exchange-fixture.ts'

/** Each account's free balance and pending withdrawal equal the bank's to the wei, and so does the sum of the free balances. */
export async function expectConservation(
  exchange: ExchangeFixture,
  db: Db,
  users: readonly Wallet[],
): Promise<void> {
  const accounts = await withMirror(db)
    .selectFrom('accounts')
    .innerJoin('users', 'users.user_id', 'accounts.user_id')
    .select(['address', 'free', 'pending_withdrawal'])
    .execute()
  let free = 0n
  for (const user of users) {
    const account = await exchange.bank.account(user.address)
    free += account.free
    const stored = accounts.find(({ address }) => address === addressOf(user))
    expect(stored?.free ?? 0n, 'free').to.equal(account.free)
    expect(stored?.pending_withdrawal ?? 0n, 'pending').to.equal(account.pending)
  }
  expect(accounts.reduce((sum, account) => sum + account.free, 0n)).to.equal(free)
}

export async function expectPositions(
  exchange: ExchangeFixture,
  db: Db,
  users: readonly Wallet[],
): Promise<void> {
  const rows = await withMirror(db)
    .selectFrom('positions')
    .innerJoin('users', 'users.user_id', 'positions.user_id')
    .select(['address', 'size', 'entry_notional', 'folded_margin', 'leverage'])
    .execute()
  for (const user of users) {
    const position = await exchange.trader.position(user.address)
    const stored = rows.find(({ address }) => address === addressOf(user))
    expect(BigInt(stored?.size ?? 0)).to.equal(position.size)
    expect(stored?.entry_notional ?? 0n).to.equal(position.entryNotional)
    expect(stored?.folded_margin ?? 0n, 'no funding yet: folded is margin').to.equal(position.margin)
  }
}

/** Each account's reservation is the sum over its orders and adjustments, and the read model equals the write side. */
export async function expectBooks(db: Db): Promise<void> {
  const { rows } = await sql<{ user_id: number }>`
    select a.user_id from accounts a
    left join (select user_id, sum(reserved) as reservation from (
        select user_id, reserved + held as reserved from orders union all select user_id, held from adjustment_attempts
      ) parts group by user_id
    ) o using (user_id)
    left join read.balances b using (user_id)
    where a.reserved <> coalesce(reservation, 0) or a.free <> b.free or a.reserved <> b.reserved
      or a.pending_withdrawal <> b.pending_withdrawal or b.user_id is null
    union all
    select o.user_id from orders o left join read.orders r using (order_id)
    where r.order_id is null or o.status <> r.status or o.status_reason is distinct from
      case when r.status in ('FILLED', 'CANCELLED', 'EXPIRED') then r.status_reason end
      or o.closed_by is not null and r.status_reason <> 'POSITION_CLOSED'
      or o.filled <> r.filled or o.settling <> r.settling or o.reserved + o.held <> r.reserved
    union all
    select r.user_id from order_sums s join read.orders r using (order_id)
    where s.filled_value <> r.filled_value or s.fee <> r.fee
    union all
    select p.user_id from positions p left join read.positions r using (user_id, market_id)
    where (p.size, p.entry_notional, p.folded_margin) is distinct from (r.size, r.entry_notional, r.folded_margin)
  `.execute(db)
  expect(rows, 'accounts with inconsistent rows').to.deep.equal([])
  const read = await db
    .selectFrom('read.fills')
    .select(['fill_id', 'status'])
    .where('forced', '=', false)
    .execute()
  const statusOf = new Map(read.map(({ fill_id, status }) => [fill_id, status]))
  for (const { fillId, status } of await matchedFills(db))
    expect(statusOf.get(fillId), fillId).to.equal(status)
  expect(
    await unexplainedBalances(db),
    'free balances that transactions and fills do not explain',
  ).to.deep.equal([])
  const interest = await sql<{ market_id: number }>`
    select p.market_id from positions p left join read.open_interest o using (market_id)
    group by p.market_id, o.steps having sum(greatest(p.size, 0)) <> coalesce(o.steps, 0)
  `.execute(db)
  expect(interest.rows, 'markets with another open interest').to.deep.equal([])
}

/** The state that the chain alone determines, by address and without ids, so that two databases can be compared. */
export async function chainState(db: Db): Promise<unknown> {
  return { ...(await ledger(db)), ...(await chainProgress(db)) }
}

async function ledger(db: Db): Promise<object> {
  const accounts = await withMirror(db)
    .selectFrom('accounts')
    .innerJoin('users', 'users.user_id', 'accounts.user_id')
    .select(['address', 'free', 'pending_withdrawal', 'created_at'])
    .where(sql<boolean>`free <> 0 or pending_withdrawal <> 0`)
    .orderBy('address')
    .execute()
  const positions = await withMirror(db)
    .selectFrom('positions')
    .innerJoin('users', 'users.user_id', 'positions.user_id')
    .select(['address', 'market_id', 'size', 'entry_notional', 'folded_margin'])
    .where('size', '<>', 0)
    .orderBy('address')
    .orderBy('market_id')
    .execute()
  return { accounts, positions }
}

/** The same without balances and positions, which an engine of another process has in the read model alone. */
export async function chainProgress(db: Db): Promise<object> {
  const progress = await db.selectFrom('chain_progress').select(['next_block', 'head']).execute()
  const nonces = await db
    .selectFrom('forwarder_nonces')
    .select(['signer', 'next_nonce'])
    .orderBy('signer')
    .execute()
  const floors = await db
    .selectFrom('margin_nonce_floors')
    .select(['market_id', 'account', 'minimum'])
    .orderBy('account')
    .orderBy('market_id')
    .execute()
  return { progress, nonces, floors }
}
