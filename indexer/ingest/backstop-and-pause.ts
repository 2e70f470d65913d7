/**
 * Follows each market's backstop and the bank's pause: the newest event counts, and its journal row has the state before, which a rollback
 * restores. Readers of a market's risk need both; the keeper reads the chain. The caller holds the lock of the fact's shard.
 */
import { setBankPause } from '../../db/chain.ts'
import type { Tx } from '../../db/client.ts'
import { setBackstop } from '../../db/markets.ts'
import type { BackstopChangedFact, BankPauseFact, TermsChangedFact } from '../../domain/chain/facts.ts'
import type { BankPauseChanged } from '../../domain/journal/accounts-row.ts'
import type { BackstopChanged } from '../../domain/journal/action-rows.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { MinedAt } from '../../domain/settlement/settle-part.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'

interface Context {
  readonly tx: Tx
  readonly shards: LockedShards
  readonly mined: MinedAt
}

export const isBackstopChange = (fact: BackstopChangedFact | TermsChangedFact): fact is BackstopChangedFact =>
  fact.event.kind === 'backstop_changed'

export async function applyBackstop(
  { tx, shards, mined }: Context,
  { spec, event: { backstop, cap } }: BackstopChangedFact,
): Promise<RowPlace> {
  const after = { backstop, backstop_cap: cap.toString() }
  const before = await setBackstop(tx, spec.marketId, after)
  return shards.append(marketShard(spec.marketId), {
    ...{ kind: 'backstop_changed', rollback: false, ...after, before, ...mined },
  })
}

export async function rollBackBackstop(
  tx: Tx,
  marketId: number,
  row: BackstopChanged,
): Promise<BackstopChanged> {
  await setBackstop(tx, marketId, row.before)
  return { ...row, rollback: true }
}

/** A pause that ends early ends with its block. */
export async function applyBankPause(
  { tx, shards, mined }: Context,
  { endsAt }: BankPauseFact,
): Promise<RowPlace> {
  const ends_at = endsAt ?? mined.at / 1000
  const before = await setBankPause(tx, ends_at)
  return shards.append(ACCOUNTS_SHARD, {
    kind: 'bank_pause_changed',
    rollback: false,
    before,
    ends_at,
    ...mined,
  })
}

export async function rollBackBankPause(tx: Tx, row: BankPauseChanged): Promise<BankPauseChanged> {
  await setBankPause(tx, row.before)
  return { ...row, rollback: true }
}
