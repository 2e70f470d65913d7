/** Writes an accepted order that rests or waits for its trigger, as the api writes it and without its checks. */
import { hexlify, randomBytes } from 'ethers'
import { sql } from 'kysely'
import { lockAccounts } from '../../../db/accounts.ts'
import type { Db, Tx } from '../../../db/client.ts'
import { appendRows, lockShard } from '../../../db/journal.ts'
import { marketShard, type OrderPlaced } from '../../../domain/journal/journal-row.ts'
import { isConditional } from '../../../domain/orders/order.ts'

let salts = 1_000_000

/** By default a limit buy of 10 steps at 1,000 ticks that reserves 70 wei. Returns its id. */
export async function acceptOrder(
  db: Db,
  marketId: number,
  maker: string,
  changes: Partial<OrderPlaced> = {},
): Promise<string> {
  return db.transaction().execute((tx) => acceptOrderIn(tx, marketId, maker, changes))
}

/** As `acceptOrder`, in a transaction of the caller. */
export async function acceptOrderIn(
  tx: Tx,
  marketId: number,
  maker: string,
  changes: Partial<OrderPlaced> = {},
): Promise<string> {
  const head = await lockShard(tx, marketShard(marketId))
  const { user_id } = await tx
    .selectFrom('users')
    .select('user_id')
    .where('address', '=', maker)
    .executeTakeFirstOrThrow()
  await lockAccounts(tx, [user_id])
  const seq = head.head + 1
  const type = changes.type ?? 'LIMIT'
  const row: OrderPlaced = {
    kind: 'order_placed',
    order_id: `${marketId}-${seq}`,
    ...{ user_id, maker, signer: maker, hash: hexlify(randomBytes(32)), salt: salts++, side: 'LONG', type },
    ...{ price: 1_000, quantity: 10, trigger: 0, leverage: 5, reduce_only: false },
    ...{
      expiration: 0,
      alive_until: 0,
      accepted_at: 1_000,
      openable: 10,
      reserved: '70',
      reserved_price: 1_000,
    },
    status: isConditional(type) ? 'PENDING_TRIGGER' : 'OPEN',
    ...(changes.reduce_only && { openable: 0, reserved: '0' }),
    ...changes,
  }
  const { kind: _, ...columns } = row
  await tx
    .insertInto('orders')
    .values({ ...columns, market_id: marketId, seq, signature: '0x', reserved: BigInt(row.reserved) })
    .execute()
  await tx
    .updateTable('accounts')
    .set({ reserved: sql`reserved + ${row.reserved}::numeric` })
    .where('user_id', '=', user_id)
    .execute()
  await appendRows(tx, head, [row])
  return row.order_id
}

export const orderOf = (db: Db, orderId: string) =>
  db
    .selectFrom('orders')
    .select(['status', 'status_reason', 'closing_reason', 'reserved', 'ended_at'])
    .where('order_id', '=', orderId)
    .executeTakeFirstOrThrow()
