/**
 * Stores transaction bytes before the engine accepts their hash, and sends none earlier. After a crash in between, the
 * engine states which of the stored transactions it has accepted.
 */
import type { Db } from '../../db/client.ts'
import { checkFence, type Fence } from '../../db/fence.ts'
import { pipelined, together } from '../../db/pipeline.ts'
import { acceptTransactions, type NewTransaction, storeTransactions } from '../../db/relayers.ts'
import type { MarketId } from '../../domain/units.ts'
import { ask, type Engine } from '../engine/link/engine.ts'
import type { RelayerLane, StoredTransaction } from './ports.ts'
import { toTransaction } from './stored-transaction.ts'

export interface EngineParts {
  readonly db: Db
  readonly engine: Engine
}

/** Bound of the time in which the engine answers a worker. A worker repeats what has no answer. */
export const WORKER_BUDGET_MS = 10_000

export class BytesRefused extends Error {
  override readonly name = 'BytesRefused'
}

export const storeBytes = (
  { db }: Pick<EngineParts, 'db'>,
  lane: RelayerLane,
  fence: Fence,
  transactions: readonly NewTransaction[],
): Promise<void> =>
  db.transaction().execute((opened) =>
    pipelined(opened, async (tx) => {
      await together([checkFence(tx, fence), storeTransactions(tx, lane, transactions)])
    }),
  )

export interface Attempt {
  /** The action whose first transaction this is; null for other transactions. */
  readonly action: { readonly marketId: MarketId; readonly queueNo: number } | null
  /** 1 for the first transaction with its nonce. */
  readonly attempt: number
}

/**
 * Offers a stored transaction to the engine. Returns the one that may be sent: another worker's if that was accepted first. Throws `BytesRefused` if the engine accepts
 * none.
 */
export async function acceptBytes(
  { db, engine }: EngineParts,
  { relayer }: RelayerLane,
  { nonce, hash, purpose }: Pick<NewTransaction, 'nonce' | 'hash' | 'purpose'>,
  { action, attempt }: Attempt,
): Promise<StoredTransaction> {
  const answer = await ask<'signed'>(
    engine,
    {
      kind: 'signed',
      marketId: action?.marketId ?? null,
      queueNo: action?.queueNo ?? null,
      relayer,
      nonce,
      attempt,
      hash,
      purpose,
    },
    WORKER_BUDGET_MS,
  )
  if (answer.kind !== 'hash')
    throw new BytesRefused(
      `the engine accepts no transaction with nonce ${nonce} of ${relayer}: ${answer.kind}`,
    )
  const [accepted] = await acceptTransactions(db, [answer.hash])
  const row =
    accepted ??
    (await db
      .selectFrom('relayer_transactions')
      .selectAll()
      .where('tx_hash', '=', answer.hash)
      .executeTakeFirst())
  if (row === undefined)
    throw new BytesRefused(`the bytes of ${answer.hash}, accepted with nonce ${nonce}, are not stored`)
  return toTransaction(row)
}

/** The transactions, of any keys, that the engine has accepted. Other stored transactions may be of a worker that ended, or came second. */
export async function withoutRefused<Transaction extends StoredTransaction>(
  { db, engine }: EngineParts,
  transactions: readonly Transaction[],
): Promise<Transaction[]> {
  const unknown = transactions.filter(({ status }) => status === 'STORED')
  const accepted = new Set<string>()
  for (const [relayer, own] of Map.groupBy(unknown, (transaction) => transaction.relayer)) {
    const nonces = [...new Set(own.map(({ nonce }) => nonce))]
    const command = { kind: 'signed_hashes', relayer, nonces } as const
    const answer = await ask<'signed_hashes'>(engine, command, WORKER_BUDGET_MS)
    if (answer.kind === 'hashes') for (const hash of answer.hashes) accepted.add(hash)
  }
  await acceptTransactions(db, [...accepted])
  return transactions.flatMap((transaction) => {
    if (transaction.status !== 'STORED') return [transaction]
    return accepted.has(transaction.hash) ? [{ ...transaction, status: 'SIGNED' as const }] : []
  })
}
