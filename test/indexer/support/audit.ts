/** What must hold after every scenario: our books say what the contracts say. */
import { expect } from 'chai'
import type { Wallet } from 'ethers'
import { sql } from 'kysely'
import type { Db } from '../../../db/client.ts'
import { addressOf, type ExchangeFixture } from './exchange-fixture.ts'

/** Σ free + Σ pending + pools + fees = tokens of the bank, and each account's share is ours to the wei. */
export async function expectConservation(
  exchange: ExchangeFixture,
  db: Db,
  users: readonly Wallet[],
): Promise<void> {
  const accounts = await db
    .selectFrom('accounts')
    .innerJoin('users', 'users.user_id', 'accounts.user_id')
    .select(['address', 'free', 'pending_withdrawal'])
    .execute()
  let free = 0n
  for (const user of users) {
    const account = await exchange.bank.account(user.address)
    free += account.free
    const ours = accounts.find(({ address }) => address === addressOf(user))
    expect(ours?.free ?? 0n, 'free').to.equal(account.free)
    expect(ours?.pending_withdrawal ?? 0n, 'pending').to.equal(account.pending)
  }
  expect(accounts.reduce((sum, account) => sum + account.free, 0n)).to.equal(free)
}

export async function expectPositions(
  exchange: ExchangeFixture,
  db: Db,
  users: readonly Wallet[],
): Promise<void> {
  const rows = await db
    .selectFrom('positions')
    .innerJoin('users', 'users.user_id', 'positions.user_id')
    .select(['address', 'size', 'entry_notional', 'folded_margin', 'leverage'])
    .execute()
  for (const user of users) {
    const position = await exchange.trader.position(user.address)
    const ours = rows.find(({ address }) => address === addressOf(user))
    expect(BigInt(ours?.size ?? 0)).to.equal(position.size)
    expect(ours?.entry_notional ?? 0n).to.equal(position.entryNotional)
    expect(ours?.folded_margin ?? 0n, 'no funding yet: folded is margin').to.equal(position.margin)
  }
}

/** An account reserves what its orders hold back, and the read model says what the write side says. */
export async function expectBooks(db: Db): Promise<void> {
  const { rows } = await sql<{ user_id: number }>`
    select a.user_id from accounts a
    left join (select user_id, sum(reserved + held) as held_back from orders group by user_id) o using (user_id)
    left join read.balances b using (user_id)
    where a.reserved <> coalesce(held_back, 0) or a.free <> b.free or a.reserved <> b.reserved
      or a.pending_withdrawal <> b.pending_withdrawal or b.user_id is null
    union all
    select o.user_id from orders o left join read.orders r using (order_id)
    where r.order_id is null or o.status <> r.status or o.status_reason is distinct from
      case when r.status in ('FILLED', 'CANCELLED', 'EXPIRED') then r.status_reason end
      or o.filled <> r.filled or o.settling <> r.settling or o.reserved + o.held <> r.reserved
    union all
    select p.user_id from positions p left join read.positions r using (user_id, market_id)
    where (p.size, p.entry_notional, p.folded_margin) is distinct from (r.size, r.entry_notional, r.folded_margin)
    union all
    select f.user_id from fills f left join read.fills r using (fill_id) where f.status is distinct from r.status
  `.execute(db)
  expect(rows, 'accounts whose books disagree').to.deep.equal([])
}

/** Everything that the chain alone determines, by address, without what differs between two databases. */
export async function chainState(db: Db): Promise<unknown> {
  const accounts = await db
    .selectFrom('accounts')
    .innerJoin('users', 'users.user_id', 'accounts.user_id')
    .select(['address', 'free', 'pending_withdrawal', 'created_at'])
    .where(sql<boolean>`free <> 0 or pending_withdrawal <> 0`)
    .orderBy('address')
    .execute()
  const positions = await db
    .selectFrom('positions')
    .innerJoin('users', 'users.user_id', 'positions.user_id')
    .select(['address', 'market_id', 'size', 'entry_notional', 'folded_margin'])
    .where('size', '<>', 0)
    .orderBy('address')
    .execute()
  const logs = await db
    .selectFrom('chain_logs')
    .select(['block', 'log_index', 'tx_hash', 'data'])
    .orderBy('block')
    .orderBy('log_index')
    .execute()
  const progress = await db.selectFrom('chain_progress').select(['next_block', 'head']).execute()
  return { accounts, positions, logs, progress }
}
