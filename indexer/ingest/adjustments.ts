/**
 * Ends an adjustment attempt in the transaction that applies its event: release of the reservation and change of the ledger are one. An
 * adjustment that another operator has executed has no attempt here.
 */
import { type AttemptRow, changeAttempt, freeNonce, useNonce } from '../../db/adjustments.ts'
import type { Tx } from '../../db/client.ts'
import type { ChainFact, PositionAdjustedFact } from '../../domain/chain/facts.ts'
import type { AdjustmentChanged } from '../../domain/journal/adjustment-row.ts'
import { marketShard, type PositionsMoved } from '../../domain/journal/journal-row.ts'
import { expectationOf } from '../../domain/positions/adjustment-attempt.ts'
import { fromStored } from '../../domain/positions/stored-adjustment.ts'
import {
  type AttemptChange,
  committedAttempt,
  mismatchedAttempt,
  reopenedAttempt,
} from '../../domain/positions/stored-attempt.ts'
import { type Mismatch, NO_EVENTS } from '../../domain/settlement/receipt.ts'
import { reconcile } from '../../domain/settlement/reconcile.ts'
import type { Address } from '../../domain/units.ts'
import type { ChainLog } from '../ports.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'

interface Ending {
  readonly tx: Tx
  readonly shards: LockedShards
  readonly at: number
}

/** The stored transaction with this hash, if this exchange has sent it. */
const sentTransaction = (tx: Tx, hash: string) =>
  tx
    .selectFrom('relayer_transactions')
    .select(['relayer', 'nonce', 'gas_used'])
    .where('tx_hash', '=', hash)
    .executeTakeFirst()

async function attemptSentWith(tx: Tx, marketId: number, hash: string): Promise<AttemptRow | undefined> {
  const sent = await sentTransaction(tx, hash)
  if (sent === undefined) return undefined
  return tx
    .selectFrom('adjustment_attempts')
    .selectAll()
    .where('relayer', '=', sent.relayer)
    .where('relayer_nonce', '=', sent.nonce)
    .where('market_id', '=', marketId)
    .executeTakeFirst()
}

/** The attempt that the chain has executed: sent with this transaction, or with the same nonce by another operator. */
async function executedAttempt(
  tx: Tx,
  { spec: { marketId }, event }: PositionAdjustedFact,
  { userId, txHash }: { readonly userId: number; readonly txHash: string },
): Promise<AttemptRow | undefined> {
  const sent = await attemptSentWith(tx, marketId, txHash)
  if (sent !== undefined || event.nonce > Number.MAX_SAFE_INTEGER) return sent
  return tx
    .selectFrom('adjustment_attempts')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('user_id', '=', userId)
    .where('nonce', '=', Number(event.nonce))
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst()
}

async function change({ tx, shards, at }: Ending, attempt: AttemptRow, to: AttemptChange): Promise<RowPlace> {
  const shard = marketShard(attempt.market_id)
  return shards.append(shard, await changeAttempt(tx, attempt, to, { seq: shards.next(shard), at }))
}

/**
 * The chain has executed an adjustment. Returns the first mismatch of its events, null if there is none; undefined if no attempt is known.
 * `movesPositions`: see `ReceiptEvents`.
 */
export async function endAdjustment(
  ending: Ending & { readonly userId: number },
  fact: PositionAdjustedFact,
  {
    log,
    facts,
    movesPositions,
  }: {
    readonly log: ChainLog
    readonly facts: readonly { readonly log: ChainLog; readonly fact: ChainFact }[]
    readonly movesPositions: boolean
  },
): Promise<Mismatch | null | undefined> {
  const { tx, userId } = ending
  const { txHash } = log
  const { marketId } = fact.spec
  await useNonce(tx, { marketId, userId, nonce: fact.event.nonce })
  const attempt = await executedAttempt(tx, fact, { userId, txHash })
  if (attempt === undefined) return undefined
  const adjusted = facts.flatMap(({ log: of, fact: other }) =>
    other.kind === 'position_adjusted' && of.txHash === txHash && other.spec.marketId === marketId
      ? [other.event]
      : [],
  )
  const { adjustment } = fromStored(attempt.request)
  const account = await addressOf(tx, attempt.user_id)
  const expected = expectationOf(adjustment, account, BigInt(attempt.nonce))
  const verdict = reconcile({ ...NO_EVENTS, adjusted, movesPositions }, expected)
  const gasUsed = (await sentTransaction(tx, txHash))?.gas_used ?? null
  if (verdict.ok) {
    await change(ending, attempt, committedAttempt(fact.event.amount, { txHash, gasUsed }))
    return null
  }
  await change(ending, attempt, mismatchedAttempt(verdict.refusal, txHash))
  return verdict.refusal
}

async function addressOf(tx: Tx, userId: number): Promise<Address> {
  const user = await tx
    .selectFrom('users')
    .select('address')
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
  return user.address as Address
}

/** A log of the attempt's transaction cannot be decoded. Null if the transaction is of no attempt. */
export async function failUndecodable(
  ending: Ending,
  { marketId, txHash }: { readonly marketId: number; readonly txHash: string },
  reason: Mismatch,
): Promise<RowPlace | null> {
  const attempt = await attemptSentWith(ending.tx, marketId, txHash)
  return attempt === undefined ? null : change(ending, attempt, mismatchedAttempt(reason, txHash))
}

/** The block of the adjustment has left the chain: the same transaction is sent again. */
export async function reopenAdjusted(ending: Ending, marketId: number, row: PositionsMoved): Promise<void> {
  const { tx } = ending
  const userId = row.account as number
  if (row.adjustment !== undefined)
    await freeNonce(tx, { marketId, userId, nonce: BigInt(row.adjustment.nonce) })
  const attempt = await tx
    .selectFrom('adjustment_attempts')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('tx_hash', '=', row.tx_hash)
    .where('user_id', '=', userId)
    .where('status', 'in', ['COMMITTED', 'RECEIPT_RECONCILIATION_FAILED'])
    .executeTakeFirst()
  await reopen(ending, attempt ?? (await attemptSentWith(tx, marketId, row.tx_hash)))
}

/** As `reopenAdjusted`, of an attempt that ended with a log that cannot be decoded. */
export async function reopenFailed(ending: Ending, marketId: number, row: AdjustmentChanged): Promise<void> {
  await reopen(ending, await attemptSentWith(ending.tx, marketId, row.tx_hash as string))
}

async function reopen(ending: Ending, attempt: AttemptRow | undefined): Promise<void> {
  const to = attempt === undefined ? null : reopenedAttempt(attempt)
  if (attempt !== undefined && to !== null) await change(ending, attempt, to)
}
