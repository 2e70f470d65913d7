/** Journal rows of placed limit orders. */
import type { JournalRow } from '../../../domain/journal/journal-row.ts'

export const placed = (marketId: number, seq: number): JournalRow => ({
  ...{
    kind: 'order_placed',
    order_id: `${marketId}-${seq}`,
    user_id: 1 + (seq % 7),
    maker: '0xa',
    signer: '0xa',
  },
  ...{
    hash: `0x${marketId}-${seq}`,
    salt: seq,
    side: 'LONG',
    type: 'LIMIT',
    price: 1 + (seq % 9),
    quantity: 1,
  },
  ...{ trigger: 0, leverage: 1, reduce_only: false, expiration: 0, alive_until: 0, status: 'OPEN' },
  ...{ accepted_at: seq, openable: 1, reserved: '1', reserved_price: 1 },
})
export const placements = (marketId: number, first: number, count: number): JournalRow[] =>
  Array.from({ length: count }, (_, at) => placed(marketId, first + at))
