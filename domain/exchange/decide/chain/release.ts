/**
 * Releases data that no decision needs any more: ended orders, batches, actions, requests and final transactions.
 */
import type { MarketId, Seq } from '../../../units.ts'
import { CHAIN } from '../../apply.ts'
import { Continued } from '../../decide.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'
import { pendingActions } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import { marketIds } from './read.ts'

/**
 * Releases ended orders of the market, or completed requests for market 0, up to row `upTo`. The caller guarantees that
 * readers have these rows durably and no rollback can reach their blocks.
 */
export interface ReleaseEnded {
  readonly kind: 'release_ended'
  readonly marketId: MarketId
  readonly upTo: Seq
}

/** The relayer's nonces below `below` are used in blocks that no fork can roll back. */
export interface ReleaseTransactions {
  readonly kind: 'release_transactions'
  readonly relayer: string
  readonly below: number
}

export type ReleaseCommand = ReleaseEnded | ReleaseTransactions

export interface ReleaseAnswer {
  readonly kind: 'done' | 'in_progress'
}

/** Maximum orders or requests of one step, unless a single row ended more. */
export const MOST_RELEASED = 1_000

export function decideRelease(
  draft: Draft,
  command: ReleaseCommand,
): ReleaseAnswer | Continued<ReleaseAnswer, ReleaseCommand> {
  if (command.kind === 'release_transactions') return releaseTransactions(draft, command)
  const { state } = draft
  const { marketId, upTo } = command
  if (upTo <= (state.heads.get(marketId)?.releasedUpTo ?? 0)) return { kind: 'done' }
  const seqs = marketId === ACCOUNTS ? requestsUpTo(state, upTo) : endsUpTo(state, marketId, upTo)
  const step = seqs[MOST_RELEASED - 1] ?? upTo
  const kind = marketId === ACCOUNTS ? 'requests_released' : 'ended_released'
  draft.write(marketId, { kind, up_to: step })
  return step < upTo
    ? new Continued<ReleaseAnswer, ReleaseCommand>({ kind: 'in_progress' }, command)
    : { kind: 'done' }
}

/** Sequences of the rows that ended the market's orders, ascending, for one step. */
const endsUpTo = (state: ExchangeState, marketId: MarketId, upTo: number): Seq[] =>
  state.ended
    .upTo(marketId, upTo, MOST_RELEASED)
    .map((accepted) => state.orders.need(marketId, accepted).endedSeq)

const requestsUpTo = (state: ExchangeState, upTo: number): Seq[] =>
  state.requestOrder.upTo(upTo, MOST_RELEASED).map((key) => state.requests.need(key).seq)

/**
 * Transactions of actions that are neither mined nor ended stay, because their hashes may still be requested.
 */
function releaseTransactions(draft: Draft, { relayer, below }: ReleaseTransactions): ReleaseAnswer {
  const { state } = draft
  let first = below
  for (const marketId of marketIds(state))
    for (const { relayer: signer, nonce } of pendingActions(state, marketId))
      if (signer === relayer && nonce !== null) first = Math.min(first, nonce)
  for (const transaction of state.transactions.rows()) {
    if (transaction.relayer !== relayer || transaction.nonce >= first) continue
    draft.write(CHAIN, { kind: 'transactions_released', relayer, below: first })
    break
  }
  return { kind: 'done' }
}
