/** A market full of open orders, for measuring the start of an auction. */
import { perpetual } from './markets.ts'

/** Accounts with open orders and an open position. */
const HOLDERS = 5_000

/** Orders around 1,000 that do not cross: every 20th waits for a trigger, each with an expiration of its own. */
export const openOrdersSql = (orders: number, accounts: number, now: number): string => `
  insert into users (address, created_at) select '0x' || lpad(to_hex(n), 40, '0'), 0 from generate_series(1, ${accounts}) n;
  insert into accounts (user_id, free) select user_id, 1e24 from users;
  insert into positions (user_id, market_id, matched_size, matched_leverage, matched_entry_notional, matched_folded_margin)
    select user_id, ${perpetual.marketId}, case when user_id <= ${HOLDERS} then 100 - 200 * (user_id % 2) else 0 end, 5,
      case when user_id <= ${HOLDERS} then 1e22 else 0 end, case when user_id <= ${HOLDERS} then 2e21 else 0 end
    from users;
  insert into orders (order_id, market_id, seq, user_id, maker, signer, hash, signature, salt, side, type, price, quantity, trigger,
      leverage, reduce_only, expiration, alive_until, status, openable, reserved_price, reserved, accepted_at)
    select '${perpetual.marketId}-' || n, ${perpetual.marketId}, n, user_id, address, address, '0x' || lpad(to_hex(n), 64, '0'),
      '0x' || repeat(md5(n::text), 4) || '01', n, case n % 2 when 0 then 'LONG' else 'SHORT' end,
      case when waits then 'STOP_LIMIT' else 'LIMIT' end, case n % 2 when 0 then 995 - n % 400 else 1005 + n % 400 end, 10,
      case when waits then 2000 else 0 end, 5, false, expiration, expiration, case when waits then 'PENDING_TRIGGER' else 'OPEN' end,
      10, 1000, 2e18, ${now}
    from generate_series(1, ${orders}) n
      join users on user_id = 1 + n % ${HOLDERS}
      cross join lateral (select n % 20 = 19 as waits, ${Math.floor(now / 1000)} + 3600 + n % 86400 as expiration) terms
    order by n;
  update shards set head = ${orders} where shard = 'm${perpetual.marketId}';
`
