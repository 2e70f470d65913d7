/** Actions of the exchange that a block has mined without an event. An action that did not revert should have emitted one. */
import { isSingle, toSingleAction } from '../../db/actions.ts'
import type { Db } from '../../db/client.ts'
import { constant } from '../../db/values.ts'
import { expectationOf } from '../../domain/actions/action-rules.ts'
import type { Expectation } from '../../domain/settlement/receipt.ts'
import type { ChainBlock } from '../ports.ts'
import type { BlockFact } from './chain-record.ts'

export interface EventlessAction {
  readonly marketId: number
  readonly txHash: string
  readonly batchId: number | null
  readonly part: number | null
  /** Null for a part. */
  readonly expected: Expectation | null
}

/**
 * Starts from the exchange's own actions in flight, which are few: a block of a public chain may contain more transactions than a
 * statement may have parameters.
 */
export async function eventlessActions(
  db: Db,
  block: Pick<ChainBlock, 'transactions'>,
  facts: readonly BlockFact[],
): Promise<EventlessAction[]> {
  if (block.transactions.length === 0) return []
  const sent = await db
    .selectFrom('actions')
    .innerJoin('relayer_transactions as sent', (join) =>
      join.onRef('sent.relayer', '=', 'actions.relayer').onRef('sent.nonce', '=', 'actions.nonce'),
    )
    .selectAll('actions')
    .select('sent.tx_hash')
    .where('actions.status', 'in', [constant('SIGNED'), constant('SUBMITTED')])
    // A transaction of nothing may have taken the nonce of a dead action.
    .whereRef('sent.purpose', '=', 'actions.kind')
    .execute()
  if (sent.length === 0) return []
  const withEvents = new Set(facts.map(({ log }) => log.txHash))
  const eventless = new Set(block.transactions.filter((hash) => !withEvents.has(hash)))
  return sent
    .filter(({ tx_hash }) => eventless.has(tx_hash))
    .map((row) => ({
      marketId: row.market_id,
      txHash: row.tx_hash,
      batchId: row.batch_id,
      part: row.part,
      expected: isSingle(row) ? expectationOf(toSingleAction(row), row.action_id) : null,
    }))
}
