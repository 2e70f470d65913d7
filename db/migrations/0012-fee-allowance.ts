import { type Kysely, sql } from 'kysely'

/** Limit sells of perpetuals and futures. Until now their fee allowance was computed at twice `reserved_price`. */
const LIMIT_SELLS = `
  from markets m where m.market_id = o.market_id and m.kind <> 'binary_future' and o.side = 'SHORT' and o.price <> 0
`

/**
 * `reserved_price` becomes the price at which the fee allowance is computed. Stored orders keep the allowance that they were accepted
 * with, so that no reserved amount changes.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`update orders o set reserved_price = 2 * o.reserved_price ${LIMIT_SELLS}`).execute(db)
}

/** An odd price has no half in ticks. It would change the reservation of a live order, so the way back is refused until that order ends. */
export async function down(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql
    .raw<{ order_id: string }>(
      `select o.order_id from orders o join markets m on m.market_id = o.market_id
       where m.kind <> 'binary_future' and o.side = 'SHORT' and o.price <> 0 and o.reserved_price % 2 = 1 and o.ended_at is null limit 3`,
    )
    .execute(db)
  if (rows.length > 0) {
    const examples = rows.map(({ order_id }) => order_id).join(', ')
    throw new Error(
      `live limit sells have a fee allowance of the new rule (${examples}, …): cancel them before migrating back`,
    )
  }
  await sql.raw(`update orders o set reserved_price = (o.reserved_price + 1) / 2 ${LIMIT_SELLS}`).execute(db)
}
