/** Rolls back the facts of a block that has left the chain. The caller's transaction holds the lock of the chain's progress. */
import type { Tx } from '../../db/client.ts'
import type { BalanceChanged } from '../../domain/journal/accounts-row.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import { isAdjustment } from '../../domain/journal/move-cause.ts'
import { rollBackPart } from '../../domain/settlement/settle-part.ts'
import type { Address } from '../../domain/units.ts'
import { reopenAdjusted, reopenFailed } from './adjustments.ts'
import { rollBackBackstop, rollBackBankPause } from './backstop-and-pause.ts'
import { writeLedger } from './ledger.ts'
import { lockOrders } from './lock-orders.ts'
import type { RowPlace } from './locked-shards.ts'
import { isEndingRow, rollBackEnding } from './market-endings.ts'
import { rollBackTerms } from './market-terms.ts'
import { rollBackMove } from './move-positions.ts'
import { rollBackForwardRequest, rollBackMarginNonces } from './relays.ts'
import { rollBackSessionKey } from './session-keys.ts'
import { loadOrders } from './settling-orders.ts'
import { rollBackAction } from './single-actions.ts'
import { writeMove, writePart } from './write-part.ts'

/** A fact in the journal, to be rolled back or confirmed. */
export interface JournaledFact extends RowPlace {
  readonly row: JournalRow
}

export const marketIdOf = (shard: string): number => Number(shard.slice(1))

/** Rolls back the facts of a block that has left the chain. Requires the newest fact first. */
export async function rollBackFacts(tx: Tx, facts: readonly JournaledFact[]): Promise<void> {
  const owners = facts.flatMap(({ row }) =>
    row.kind === 'session_key_changed' ? [row.owner as Address] : [],
  )
  const { shards } = await lockOrders(tx, {
    shards: facts.map(({ shard }) => shard),
    addresses: owners,
    cancelled: owners,
    userIds: facts.flatMap(({ row }) => usersOf(row)),
  })
  for (const { shard, row } of facts) {
    const undone = await rollBackAction(tx, marketIdOf(shard), row)
    if (undone !== null) shards.append(shard, undone)
    if (row.kind === 'balance_changed') {
      const back: BalanceChanged = { ...row, rollback: true }
      await writeLedger(tx, back)
      shards.append(shard, back)
    }
    if (row.kind === 'ending_changed' || row.kind === 'terms_changed') {
      for (const back of await rollBackTerms(tx, marketIdOf(shard), row)) shards.append(shard, back)
    }
    if (isEndingRow(row)) shards.append(shard, await rollBackEnding(tx, marketIdOf(shard), row))
    if (row.kind === 'backstop_changed')
      shards.append(shard, await rollBackBackstop(tx, marketIdOf(shard), row))
    if (row.kind === 'bank_pause_changed') shards.append(shard, await rollBackBankPause(tx, row))
    if (row.kind === 'session_key_changed') await rollBackSessionKey({ tx, shards, at: row.at }, row)
    if (row.kind === 'forward_request_executed') await rollBackForwardRequest(tx, shards, row)
    if (row.kind === 'margin_nonces_invalidated')
      shards.append(shard, await rollBackMarginNonces(tx, marketIdOf(shard), row))
    if (row.kind === 'positions_moved') {
      const { row: back, orders } = await rollBackMove(tx, row)
      await writeMove(tx, marketIdOf(shard), back, orders)
      shards.append(shard, back)
      if (isAdjustment(row)) await reopenAdjusted({ tx, shards, at: row.at }, marketIdOf(shard), row)
    }
    if (row.kind === 'adjustment_changed')
      await reopenFailed({ tx, shards, at: row.at }, marketIdOf(shard), row)
    if (row.kind === 'part_settled') {
      const ids = row.orders.map(({ order_id }) => order_id)
      const { row: back, orders } = rollBackPart(row, await loadOrders(tx, ids))
      await writePart(tx, marketIdOf(shard), back, orders)
      shards.append(shard, back)
    }
  }
  await shards.write(tx)
}

function usersOf(row: JournalRow): number[] {
  if (row.kind === 'balance_changed') return [row.user_id]
  if (row.kind === 'positions_moved') return [...row.positions, ...row.balances].map(({ user_id }) => user_id)
  return row.kind === 'part_settled' ? row.fills.map(({ user_id }) => user_id) : []
}
