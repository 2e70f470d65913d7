/** Adjustment attempts: reads from the tables and of the engine's state, changes by the engine. The bytes are the worker's own. */
import { sql } from 'kysely'
import { usedReportSql } from '../../db/actions.ts'
import { type AttemptRow, attemptsInFlight } from '../../db/adjustments.ts'
import type { Db } from '../../db/client.ts'
import { DATABASE_NOW, type DatabaseTime } from '../../db/clock.ts'
import { fundingColumn, type StoredFunding, toFunding } from '../../db/funding.ts'
import { acceptTransactions, keysOfLane } from '../../db/relayers.ts'
import { loadSigningKey } from '../../db/session-keys.ts'
import { TERMS_SQL, type TermsColumns, toMarketTerms } from '../../db/terms.ts'
import { loadAddresses } from '../../db/users.ts'
import { anyOf } from '../../db/values.ts'
import { fromStoredSpec } from '../../domain/market/stored-spec.ts'
import { fromStored } from '../../domain/positions/stored-adjustment.ts'
import type { Address, MarketId, Millis, Price, UserId } from '../../domain/units.ts'
import { ask } from '../engine/link/engine.ts'
import { type EngineParts, storeBytes, WORKER_BUDGET_MS, withoutRefused } from '../relayer/bytes-store.ts'
import type { RelayerLane } from '../relayer/ports.ts'
import { asSigned, toTransaction } from '../relayer/stored-transaction.ts'
import type { AdjustmentStore, AttemptTransaction, NewSignature, OpenAttempt, SigningState } from './ports.ts'

/** Purpose of the lane's transactions. */
export const ADJUSTMENT_PURPOSE = 'adjustment'

const toAttempt = (row: AttemptRow, account: Address): OpenAttempt => ({
  adjustmentId: row.adjustment_id,
  marketId: row.market_id as MarketId,
  userId: row.user_id as UserId,
  account,
  status: row.status as OpenAttempt['status'],
  createdAt: row.created_at as Millis,
  nonce: row.nonce,
  signed: fromStored(row.request),
  asOf: row.as_of as Millis | null,
  relayer: row.relayer,
  relayerNonce: row.relayer_nonce,
})

interface StateRow extends TermsColumns {
  readonly now: number
  readonly spec: Parameters<typeof fromStoredSpec>[0]
  readonly funding: StoredFunding
  readonly report_price: bigint | null
  readonly report_at: number | null
  readonly signatures: string | null
  readonly used_price: bigint | null
  readonly used_at: number | null
}

/** The account's part is the engine's, which is never older than a row of the market that the tables have. */
async function readState(
  { db, engine }: EngineParts,
  attempt: OpenAttempt,
  now: DatabaseTime,
): Promise<SigningState> {
  const { adjustmentId, marketId, userId, account, signed } = attempt
  const isOwn = signed.signer === account
  const sessionKey = isOwn ? null : await loadSigningKey(db, { owner: account, key: signed.signer })
  const { rows } = await sql<StateRow>`
    select ${now()} as now, m.spec, ${sql.raw(TERMS_SQL)}, ${sql.raw(fundingColumn('m.market_id'))} as funding,
      used.used_price, used.used_at, r.price as report_price, r.observed_at as report_at, r.signatures
    from markets m
    left join oracle_reports r on r.market_id = m.market_id and r.feed = 'index' and r.status <> 'halted'
    left join lateral (${sql.raw(usedReportSql('m.market_id'))}) used on true
    where m.market_id = ${marketId}
  `.execute(db)
  const row = rows[0] as StateRow
  const state = await ask<'account_state'>(
    engine,
    { kind: 'account_state', userId, marketId, adjustmentId },
    WORKER_BUDGET_MS,
  )
  if (state === null) throw new Error(`the engine has no account ${userId}`)
  const report = { price: row.report_price as Price, observedAt: row.report_at as Millis }
  return {
    ...state,
    now: row.now as Millis,
    sessionKey,
    terms: toMarketTerms(row, fromStoredSpec(row.spec)),
    funding: toFunding(row.funding),
    report: row.report_price === null ? null : { ...report, signatures: row.signatures as `0x${string}` },
    usedReport:
      row.used_price === null ? null : { price: row.used_price as Price, observedAt: row.used_at as Millis },
  }
}

async function readOpen(db: Db, limit: number, before: number): Promise<readonly OpenAttempt[]> {
  const rows = await attemptsInFlight(db, limit, before)
  const addresses = await loadAddresses(db, new Set(rows.map(({ user_id }) => user_id as UserId)))
  return rows.map((row) => toAttempt(row, addresses.get(row.user_id as UserId) as Address))
}

async function loadTransactions(
  db: Db,
  lane: RelayerLane,
  nonces: readonly number[],
): Promise<AttemptTransaction[]> {
  if (nonces.length === 0) return []
  const rows = await db
    .selectFrom('relayer_transactions as t')
    .innerJoin('chain_progress as c', 'c.chain_id', 't.chain_id')
    .selectAll('t')
    .select('c.next_block')
    .where('t.relayer', '=', sql<string>`any(${keysOfLane(lane)})`)
    .where('t.chain_id', '=', lane.chainId)
    .where('t.nonce', '=', anyOf('bigint', nonces))
    .orderBy('t.nonce')
    .orderBy('t.signed_at')
    .execute()
  return rows.map((row) => ({
    ...toTransaction(row),
    isIngested: row.block !== null && row.block < row.next_block,
  }))
}

const toNewTransaction = ({ hash, raw, nonce, signedAt }: NewSignature) => ({
  hash,
  raw,
  nonce,
  purpose: ADJUSTMENT_PURPOSE,
  signedAt,
})

/** `now`: the database's clock. */
export function createAdjustmentStore(
  parts: EngineParts,
  now: DatabaseTime = () => DATABASE_NOW,
): AdjustmentStore {
  const { db, engine } = parts
  return {
    open: (limit) => readOpen(db, limit, Number.MAX_SAFE_INTEGER),
    overdue: (before, limit) => readOpen(db, limit, before),
    state: (attempt) => readState(parts, attempt, now),

    async storeSigned(lane, fence, signatures) {
      const marketId = signatures[0]?.attempt.marketId
      if (marketId === undefined) return []
      const transactions = signatures.map(toNewTransaction)
      await storeBytes(parts, lane, fence, transactions)
      const signed = signatures.map(({ attempt: { adjustmentId }, nonce, hash, asOf, maxRemovable }) => ({
        adjustmentId,
        nonce,
        hash,
        asOf,
        maxRemovable,
      }))
      const answer = await ask<'adjustments_signed'>(
        engine,
        { kind: 'adjustments_signed', marketId, relayer: lane.relayer, signatures: signed },
        WORKER_BUDGET_MS,
      )
      const accepted = answer.kind === 'hashes' ? answer.hashes : []
      await acceptTransactions(db, accepted)
      return transactions
        .filter(({ hash }) => accepted.includes(hash))
        .map((transaction) => asSigned(lane, transaction))
    },

    async noteSubmitted(attempts) {
      const marketId = attempts[0]?.marketId
      if (marketId === undefined) return
      const adjustmentIds = attempts.map(({ adjustmentId }) => adjustmentId)
      const command = { kind: 'adjustments_submitted', marketId, adjustmentIds } as const
      await ask<'adjustments_submitted'>(engine, command, WORKER_BUDGET_MS)
    },

    async fail({ adjustmentId, marketId, status: seen }, _fence, { status, kind: failure, reason }) {
      const of = { kind: 'fail_adjustment', marketId, adjustmentId } as const
      await ask<'fail_adjustment'>(engine, { ...of, seen, status, failure, reason }, WORKER_BUDGET_MS)
    },

    transactions: async (lane, nonces) => withoutRefused(parts, await loadTransactions(db, lane, nonces)),
  }
}
