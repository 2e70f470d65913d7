/** Writes an accepted order that rests or waits for its trigger, without the checks of a placement. */
import { hexlify, randomBytes } from 'ethers'
import type { Db } from '../../../db/client.ts'
import type { OrderPlaced } from '../../../domain/journal/journal-row.ts'
import { isConditional } from '../../../domain/orders/order.ts'
import type { Address, MarketId, UserId } from '../../../domain/units.ts'
import type { LocalEngine } from '../../support/local-engine.ts'
import { writeRows } from './matched-part.ts'

let salts = 1_000_000

/** By default a limit buy of 10 steps at 1,000 ticks that reserves 70 wei. Returns its id. */
export async function acceptOrder(
  engine: LocalEngine,
  marketId: number,
  maker: string,
  changes: Partial<OrderPlaced> = {},
): Promise<string> {
  const { state } = engine
  const seq = state.heads.need(marketId as MarketId).seq + 1
  const type = changes.type ?? 'LIMIT'
  const row: OrderPlaced = {
    kind: 'order_placed',
    order_id: `${marketId}-${seq}`,
    user_id: state.userIds.get(maker as Address) as UserId,
    maker,
    signer: maker,
    signature: hexlify(randomBytes(66)),
    hash: hexlify(randomBytes(32)),
    salt: salts++,
    side: 'LONG',
    type,
    price: 1_000,
    quantity: 10,
    trigger: 0,
    leverage: 5,
    reduce_only: false,
    expiration: 0,
    alive_until: 0,
    accepted_at: 1_000,
    openable: 10,
    reserved: '70',
    reserved_price: 1_000,
    status: isConditional(type) ? 'PENDING_TRIGGER' : 'OPEN',
    ...(changes.reduce_only && { openable: 0, reserved: '0' }),
    ...changes,
  }
  await writeRows(engine, marketId, [row])
  return row.order_id
}

export const orderOf = (db: Db, orderId: string) =>
  db
    .selectFrom('orders')
    .select(['status', 'status_reason', 'closing_reason', 'reserved', 'ended_at'])
    .where('order_id', '=', orderId)
    .executeTakeFirstOrThrow()
