/** A market's queue of actions in Postgres. Action ids and nonces are assigned in the transaction that stores the signed bytes. */
import { type ActionRow, lockNextAction, signAction, submitAction } from '../../db/actions.ts'
import type { Db, Tx } from '../../db/client.ts'
import type { Fence } from '../../db/fence.ts'
import { checkFence } from '../../db/fence.ts'
import { submitFills } from '../../db/fills.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { adoptActionId, takeActionId } from '../../db/markets.ts'
import { type OrderRow, toSignedOrder } from '../../db/orders.ts'
import { insertTransactions, takeNonce } from '../../db/relayers.ts'
import { anyOf, constant } from '../../db/values.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { OracleReport, SettlementPart } from '../../domain/settlement/settlement.ts'
import type { MarketId, Millis, Price, Rate, Steps, Ticks } from '../../domain/units.ts'
import type { RelayerLane, StoredTransaction } from '../relayer/ports.ts'
import { ACTION_PURPOSE, asSigned, toTransaction } from '../relayer/stored-transaction.ts'
import type { PendingAction, SettlementStore, SigningTimes, SignPart } from './ports.ts'

const toAction = (row: ActionRow): PendingAction => ({
  queueNo: row.queue_no,
  batchId: row.batch_id,
  part: row.part,
  asOf: row.as_of as Millis,
  status: row.status as PendingAction['status'],
  nonce: row.nonce,
})

async function pendingActions(db: Db, marketId: MarketId): Promise<PendingAction[]> {
  const rows = await db
    .selectFrom('actions')
    .selectAll()
    .where('market_id', '=', marketId)
    .where('status', 'in', [constant('QUEUED'), constant('SIGNED'), constant('SUBMITTED')])
    .orderBy('queue_no')
    .execute()
  return rows.map(toAction)
}

/** The open transactions of the lane, and all with a nonce of the actions. */
async function transactionsOf(
  db: Db,
  lane: RelayerLane,
  actions: readonly PendingAction[],
): Promise<StoredTransaction[]> {
  const nonces = actions.flatMap(({ nonce }) => (nonce === null ? [] : [nonce]))
  const rows = await db
    .selectFrom('relayer_transactions')
    .selectAll()
    .where('relayer', '=', lane.relayer)
    .where('chain_id', '=', lane.chainId)
    .where((t) =>
      t.or([
        t('status', 'in', [constant('SIGNED'), constant('BROADCAST')]),
        t('nonce', '=', anyOf('bigint', nonces)),
      ]),
    )
    .orderBy('nonce')
    .orderBy('signed_at')
    .execute()
  return rows.map(toTransaction)
}

/** The part of the action's batch, with the action's id. */
async function readPart(tx: Tx, action: ActionRow, actionId: number): Promise<SettlementPart> {
  const batch = await tx
    .selectFrom('batches')
    .selectAll()
    .where('market_id', '=', action.market_id)
    .where('batch_id', '=', action.batch_id)
    .executeTakeFirstOrThrow()
  const fills = await tx
    .selectFrom('fills')
    .innerJoin('orders', 'orders.order_id', 'fills.order_id')
    .selectAll('orders')
    .select(['fills.steps as fill_steps', 'fills.taker_steps', 'fills.partial_slot as fill_slot'])
    .where('fills.market_id', '=', action.market_id)
    .where('fills.batch_id', '=', action.batch_id)
    .where('fills.part', '=', action.part)
    .orderBy('fills.place')
    .execute()
  const oracle: OracleReport = {
    price: batch.oracle_price as Price,
    observedAt: batch.oracle_at as Millis,
    signatures: batch.oracle_signatures as `0x${string}`,
  }
  return {
    marketId: action.market_id as MarketId,
    actionId,
    batchId: batch.batch_id,
    part: action.part,
    parts: batch.parts,
    asOf: batch.as_of as Millis,
    price: batch.price as Ticks,
    makerFee: batch.maker_fee as Rate,
    takerFee: batch.taker_fee as Rate,
    oracle,
    fills: fills.map((row) => ({
      order: toSignedOrder(row as OrderRow),
      fill: row.fill_steps as Steps,
      taker: row.taker_steps as Steps,
      partialSlot: row.fill_slot,
    })),
  }
}

async function signNext(
  tx: Tx,
  marketId: MarketId,
  lane: RelayerLane,
  { sign, now, latestAsOf }: SigningTimes & { readonly sign: SignPart },
): Promise<StoredTransaction | null> {
  const action = await lockNextAction(tx, marketId)
  if (action === undefined || action.as_of > latestAsOf) return null
  const nonce = await takeNonce(tx, lane)
  const actionId = await takeActionId(tx, marketId)
  const { hash, raw } = sign(await readPart(tx, action, actionId), nonce)
  const transaction = { hash, raw, nonce, purpose: ACTION_PURPOSE, signedAt: now }
  await insertTransactions(tx, lane, [transaction])
  await signAction(tx, action, { action_id: actionId, relayer: lane.relayer, nonce })
  return asSigned(transaction)
}

async function noteSubmitted(
  tx: Tx,
  marketId: MarketId,
  fence: Fence,
  nonce: number,
  at: Millis,
): Promise<void> {
  const head = await lockShard(tx, marketShard(marketId))
  await checkFence(tx, fence)
  const action = await submitAction(tx, marketId, nonce)
  if (action === undefined) return
  await submitFills(tx, marketId, action)
  const { tx_hash } = await tx
    .selectFrom('relayer_transactions')
    .select('tx_hash')
    .where('relayer', '=', action.relayer)
    .where('nonce', '=', nonce)
    .orderBy('signed_at')
    .limit(1)
    .executeTakeFirstOrThrow()
  const { batch_id, part, action_id } = action
  const row = { kind: 'part_submitted' as const, batch_id, part, action_id: action_id as number, tx_hash, at }
  await appendRows(tx, head, [row])
}

export const createSettlementStore = (db: Db): SettlementStore => ({
  async view(marketId, lane) {
    const actions = await pendingActions(db, marketId)
    return { actions, transactions: await transactionsOf(db, lane, actions) }
  },
  signNext: (marketId, lane, fence, times, sign) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      return signNext(tx, marketId, lane, { ...times, sign })
    }),
  adoptActionId: (marketId, lane, fence, actionId) =>
    db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      return adoptActionId(tx, marketId, lane.relayer, actionId)
    }),
  noteSubmitted: (marketId, fence, nonce, at) =>
    db.transaction().execute((tx) => noteSubmitted(tx, marketId, fence, nonce, at)),
})
