/**
 * Follows a market's parameters, mode and close: what the chain announces, applies and drops. Each event replaces the terms in `markets`; its
 * journal row has those before, which a rollback restores. The caller holds the lock of the market's shard.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Tx } from '../../db/client.ts'
import { setEnding } from '../../db/markets.ts'
import { loadChainTerms, setChainTerms } from '../../db/terms.ts'
import type { EndingChangedFact, TermsChangedFact } from '../../domain/chain/facts.ts'
import { type BlockOfFact, termsEventOf } from '../../domain/chain/terms-event.ts'
import type { EndingChanged, TermsChanged } from '../../domain/journal/action-rows.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { afterEvent } from '../../domain/market/changes.ts'
import { fromStoredTerms, toStoredTerms } from '../../domain/market/stored-terms.ts'
import type { MinedAt } from '../../domain/settlement/settle-part.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'

interface TermsContext {
  readonly tx: Tx
  readonly shards: LockedShards
  readonly mined: MinedAt
}

/** Null if nothing changed: a mode other than settling was scheduled while no close was. */
async function changeEnding(
  { tx, mined }: TermsContext,
  { spec, times }: Pick<EndingChangedFact, 'spec' | 'times'>,
): Promise<EndingChanged | null> {
  const before = await setEnding(tx, spec.marketId, times)
  const after = { ...before, ...times }
  if (isDeepStrictEqual(before, after)) return null
  return { kind: 'ending_changed', rollback: false, ...after, before, ...mined }
}

export async function applyEnding(context: TermsContext, fact: EndingChangedFact): Promise<RowPlace | null> {
  const row = await changeEnding(context, fact)
  return row && context.shards.append(marketShard(fact.spec.marketId), row)
}

/** Null for the parameters of the deployment: their row is never rolled back. */
export async function applyTerms(
  context: TermsContext,
  fact: TermsChangedFact,
  block: BlockOfFact,
): Promise<RowPlace | null> {
  const { tx, shards, mined } = context
  const { spec, event } = fact
  const before = await loadChainTerms(tx, spec.marketId)
  const known = termsEventOf(event, block)
  const terms = toStoredTerms(afterEvent(fromStoredTerms(before, spec), known))
  await setChainTerms(tx, spec.marketId, terms)
  const shard = marketShard(spec.marketId)
  if (event.kind === 'changes_applied' && event.actionId === 0) {
    shards.append(shard, { kind: 'terms_stated', terms })
    return null
  }
  const ending = fact.times === null ? null : await changeEnding(context, { spec, times: fact.times })
  if (ending !== null) shards.append(shard, ending)
  return shards.append(shard, {
    ...{ kind: 'terms_changed', rollback: false, cause: event.kind, terms, before, ending, ...mined },
  })
}

/** The rows that state the rollback. */
export async function rollBackTerms(
  tx: Tx,
  marketId: number,
  row: EndingChanged | TermsChanged,
): Promise<(EndingChanged | TermsChanged)[]> {
  if (row.kind === 'ending_changed') {
    await setEnding(tx, marketId, row.before)
    return [{ ...row, rollback: true }]
  }
  await setChainTerms(tx, marketId, row.before)
  const ending = row.ending === null ? [] : await rollBackTerms(tx, marketId, row.ending)
  return [...ending, { ...row, rollback: true }]
}
