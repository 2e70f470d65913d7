/** A market's queue of actions in Postgres, from queued to sent. */
import { sql } from 'kysely'
import {
  type ActionNumbers,
  type ActionRow,
  isSingle,
  loadPending,
  lockNextAction,
  partOf,
  reportOfAction,
  reserveNumbers,
  signAction,
  submitAction,
  toSingleAction,
} from '../../db/actions.ts'
import { loadTerms } from '../../db/batches.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { Fence } from '../../db/fence.ts'
import { checkFence } from '../../db/fence.ts'
import { type PartKey, submitFills } from '../../db/fills.ts'
import { appendRows, lockShard, type ShardHead } from '../../db/journal.ts'
import { adoptActionId, takeActionId } from '../../db/markets.ts'
import { type OrderRow, toSignedOrder } from '../../db/orders.ts'
import { insertTransactions, keysOfLane, takeNonces } from '../../db/relayers.ts'
import { anyOf, constant } from '../../db/values.ts'
import { type SignableAction, withoutRepeatedProof } from '../../domain/actions/action-rules.ts'
import { type MarketRow, marketShard } from '../../domain/journal/journal-row.ts'
import type { SettlementPart } from '../../domain/settlement/settlement.ts'
import type { Address, MarketId, Millis, Steps } from '../../domain/units.ts'
import type { SignedTransaction } from '../ports.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'
import { asSigned, toTransaction } from '../relayer/stored-transaction.ts'
import type { PendingAction, ReservedAction, SentNonce, SettlementStore } from './ports.ts'

const toAction = (row: ActionRow): PendingAction => ({
  queueNo: row.queue_no,
  kind: row.kind,
  asOf: row.as_of as Millis,
  status: row.status as PendingAction['status'],
  relayer: row.relayer,
  nonce: row.nonce,
})

/** The open transactions of the lane's keys, and all with a nonce of the actions. */
async function transactionsOf(
  db: Db,
  lane: RelayerLane,
  actions: readonly PendingAction[],
): Promise<StoredTransaction[]> {
  const nonces = actions.flatMap(({ nonce }) => (nonce === null ? [] : [nonce]))
  const rows = await db
    .selectFrom('relayer_transactions')
    .selectAll()
    .where('relayer', '=', sql<string>`any(${keysOfLane(lane)})`)
    .where('chain_id', '=', lane.chainId)
    .where((t) =>
      t.or([
        t('status', 'in', [constant('SIGNED'), constant('BROADCAST')]),
        t('nonce', '=', anyOf('bigint', nonces)),
      ]),
    )
    .orderBy('relayer')
    .orderBy('nonce')
    .orderBy('signed_at')
    .execute()
  return rows.map(toTransaction)
}

/** The part of a batch, with its action's id. */
async function readPart(
  tx: Tx,
  marketId: MarketId,
  { batch_id, part }: PartKey,
  actionId: number,
): Promise<SettlementPart> {
  const terms = await loadTerms(tx, marketId, batch_id)
  const fills = await tx
    .selectFrom('fills')
    .innerJoin('orders', 'orders.order_id', 'fills.order_id')
    .selectAll('orders')
    .select(['fills.steps as fill_steps', 'fills.taker_steps', 'fills.partial_slot as fill_slot'])
    .where('fills.market_id', '=', marketId)
    .where('fills.batch_id', '=', batch_id)
    .where('fills.part', '=', part)
    .orderBy('fills.place')
    .execute()
  return {
    ...terms,
    marketId,
    actionId,
    part,
    fills: fills.map((row) => {
      const share = { fill: row.fill_steps as Steps, taker: row.taker_steps as Steps }
      return row.forced
        ? { ...share, account: row.maker as Address, number: BigInt(row.salt), side: row.side }
        : { ...share, order: toSignedOrder(row as OrderRow), partialSlot: row.fill_slot }
    }),
  }
}

async function toSignable(tx: Tx, row: ActionRow, actionId: number): Promise<SignableAction> {
  if (isSingle(row)) return toSingleAction(row)
  const part = await readPart(tx, row.market_id as MarketId, partOf(row) as PartKey, actionId)
  return { kind: 'settle_part', part }
}

/** If the action before it ends, the action is read and signed again: its proof is omitted only behind the action that has it. */
const signable = async (tx: Tx, row: ActionRow, actionId: number): Promise<SignableAction> =>
  withoutRepeatedProof(
    await toSignable(tx, row, actionId),
    await reportOfAction(tx, row.market_id, actionId - 1),
  )

async function reserveNext(
  tx: Tx,
  marketId: MarketId,
  lane: RelayerLane,
  fence: Fence,
  latestAsOf: Millis,
): Promise<ReservedAction | null> {
  const head = await lockShard(tx, marketShard(marketId))
  await checkFence(tx, fence)
  const row = await lockNextAction(tx, marketId)
  if (row === undefined || row.as_of > latestAsOf) return null
  const { action_id, nonce } = await numbersOf(tx, head, row, lane)
  const action = await signable(tx, row, action_id)
  return { queueNo: row.queue_no, asOf: row.as_of as Millis, action, actionId: action_id, nonce }
}

/** Those that are reserved for the action already, else the next ones. */
async function numbersOf(tx: Tx, head: ShardHead, row: ActionRow, lane: RelayerLane): Promise<ActionNumbers> {
  const { action_id, relayer, nonce } = row
  if (action_id !== null && nonce !== null && relayer === lane.relayer) return { action_id, relayer, nonce }
  const numbers = {
    nonce: await takeNonces(tx, lane, 1),
    action_id: action_id ?? (await takeActionId(tx, row.market_id)),
    relayer: lane.relayer,
  }
  await reserveNumbers(tx, row, numbers)
  await appendRows(tx, head, [{ kind: 'action_numbered', queue_no: row.queue_no, ...numbers }])
  return numbers
}

async function storeSigned(
  tx: Tx,
  marketId: MarketId,
  lane: RelayerLane,
  fence: Fence,
  { queueNo, action, nonce }: ReservedAction,
  { hash, raw, signedAt }: SignedTransaction & { readonly signedAt: Millis },
): Promise<StoredTransaction> {
  const head = await lockShard(tx, marketShard(marketId))
  await checkFence(tx, fence)
  if (!(await signAction(tx, { market_id: marketId, queue_no: queueNo }, nonce))) {
    throw new Error(`action ${queueNo} of market ${marketId} ended before its signature was stored`)
  }
  const transaction = { hash, raw, nonce, purpose: action.kind, signedAt }
  await insertTransactions(tx, lane, [transaction])
  await appendRows(tx, head, [{ kind: 'action_signed', queue_no: queueNo, tx_hash: hash, at: signedAt }])
  return asSigned(lane, transaction)
}

async function noteSubmitted(
  tx: Tx,
  marketId: MarketId,
  fence: Fence,
  { relayer, nonce }: SentNonce,
  at: Millis,
): Promise<void> {
  const head = await lockShard(tx, marketShard(marketId))
  await checkFence(tx, fence)
  const action = await submitAction(tx, marketId, { relayer, nonce })
  if (action === undefined) return
  const part = partOf(action)
  if (part !== null) await submitFills(tx, marketId, part)
  const { tx_hash } = await tx
    .selectFrom('relayer_transactions')
    .select('tx_hash')
    .where('relayer', '=', relayer)
    .where('nonce', '=', nonce)
    .orderBy('signed_at')
    .limit(1)
    .executeTakeFirstOrThrow()
  const sent = { action_id: action.action_id as number, tx_hash, at }
  const row: MarketRow =
    part === null
      ? { kind: 'action_submitted', queue_no: action.queue_no, ...sent }
      : { kind: 'part_submitted', ...part, ...sent }
  await appendRows(tx, head, [row])
}

export const createSettlementStore = (db: Db): SettlementStore => ({
  async view(marketId, lane) {
    const actions = (await loadPending(db, marketId)).map(toAction)
    return { actions, transactions: await transactionsOf(db, lane, actions) }
  },
  reserveNext: (marketId, lane, fence, latestAsOf) =>
    db.transaction().execute((tx) => reserveNext(tx, marketId, lane, fence, latestAsOf)),
  storeSigned: (marketId, lane, fence, reserved, signed) =>
    db.transaction().execute((tx) => storeSigned(tx, marketId, lane, fence, reserved, signed)),
  adoptActionId: (marketId, lane, fence, actionId) =>
    db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(marketId))
      await checkFence(tx, fence)
      const replaced = await adoptActionId(tx, marketId, lane, actionId)
      if (replaced !== null) await appendRows(tx, head, [{ kind: 'action_id_adopted', action_id: actionId }])
      return replaced
    }),
  noteSubmitted: (marketId, fence, sent, at) =>
    db.transaction().execute((tx) => noteSubmitted(tx, marketId, fence, sent, at)),
  async relayerBefore(marketId, queueNo) {
    const row = await db
      .selectFrom('actions')
      .select('relayer')
      .where('market_id', '=', marketId)
      .where('queue_no', '<', queueNo)
      .where('status', '=', constant('MINED'))
      .orderBy('queue_no', 'desc')
      .limit(1)
      .executeTakeFirst()
    return row?.relayer ?? null
  },
})
