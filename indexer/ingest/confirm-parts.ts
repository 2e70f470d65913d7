/** Confirms mined parts. The caller's transaction holds the lock of the chain's progress. */
import type { Tx } from '../../db/client.ts'
import { confirmFills } from '../../db/fills.ts'
import type { PartSettled } from '../../domain/journal/batch-rows.ts'
import { LockedShards } from './locked-shards.ts'
import { type JournaledFact, marketIdOf } from './roll-back.ts'

/** Confirms the parts of blocks with enough confirmations. */
export async function confirmParts(tx: Tx, facts: readonly JournaledFact[], at: number): Promise<void> {
  const parts = facts.filter(
    (fact): fact is JournaledFact & { row: PartSettled } => fact.row.kind === 'part_settled',
  )
  const shards = await LockedShards.lock(tx, new Set(parts.map(({ shard }) => shard)))
  const confirmed = parts.map(({ shard, row: { batch_id, part } }) => ({
    ...{ market_id: marketIdOf(shard), batch_id, part },
  }))
  await confirmFills(tx, confirmed)
  for (const { shard, row } of parts) {
    const { batch_id, part, block } = row
    shards.append(shard, { kind: 'part_confirmed', batch_id, part, block, at })
  }
  await shards.write(tx)
}
