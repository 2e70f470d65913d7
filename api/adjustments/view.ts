/** Converts an adjustment attempt to its JSON form. */
import { changeTime, isoTime } from '../wire/amounts.ts'
import type { ReadAttempt } from './query.ts'
import type { Attempt } from './schema.ts'

export const attemptView = (row: ReadAttempt): Attempt => ({
  adjustment_id: row.adjustment_id,
  user_id: row.user_id,
  market_id: row.market_id,
  kind: row.kind,
  status: row.status,
  amount_e18_raw: row.amount.toString(),
  new_leverage_raw: row.new_leverage === null ? null : String(row.new_leverage),
  tx_hash: row.tx_hash,
  failure_kind: row.failure_kind,
  failure_reason: row.failure_reason,
  created_at: isoTime(row.created_at),
  updated_at: changeTime(row),
})
