/** Invariants of the database that hold after every test. */
import { expect } from 'chai'
import type { Db } from '../../../db/client.ts'
import { withMirror } from '../../support/mirror.ts'

/** Every account's reservation equals the sum over its orders, and every journal is gapless. */
export async function expectConsistentAccounting(db: Db): Promise<void> {
  const accounts = await withMirror(db).selectFrom('accounts').selectAll().orderBy('user_id').execute()
  for (const { user_id, free, reserved } of accounts) {
    const orders = await db.selectFrom('orders').selectAll().where('user_id', '=', user_id).execute()
    expect(orders.reduce((sum, order) => sum + order.reserved + order.held, 0n)).to.equal(reserved)
    expect(free >= reserved, 'the reservation is covered').to.equal(true)
  }
  for (const { shard, head } of await db.selectFrom('shards').selectAll().execute()) {
    const rows = await db
      .selectFrom('journal')
      .select('seq')
      .where('shard', '=', shard)
      .orderBy('seq')
      .execute()
    expect(rows.map(({ seq }) => seq)).to.deep.equal(Array.from({ length: head }, (_, at) => at + 1))
  }
}
