/**
 * The chain as this database has it: a chain of block hashes, complete up to `next_block`. Whoever moves `next_block` holds the row's
 * lock and has checked that it stands where he thought: two followers at once cannot apply a block twice.
 */

import type { Db, Tx } from '../../db/client.ts'
import { type JournalRow, marketShard } from '../../domain/journal/journal-row.ts'
import type { Millis } from '../../domain/units.ts'
import type { Chain, ChainBlock } from '../ports.ts'
import {
  applyFacts,
  type BlockFact,
  confirmParts,
  type JournaledFact,
  rollBackFacts,
  type SettlementMismatch,
} from './apply.ts'

/** The database belongs to another chain than the node. Nothing that is read from one may be written to the other. */
export class OtherChainError extends Error {
  override readonly name = 'OtherChainError'
}

export interface StoredBlock {
  readonly number: number
  readonly hash: string
}

export interface Progress {
  readonly nextBlock: number
  /** The newest stored block; null before the first. */
  readonly tip: StoredBlock | null
}

export interface Genesis {
  readonly chainId: number
  readonly hash: string
}

/** Binds the database to the chain at the first start; refuses another chain ever after. */
export async function bindChain(db: Db, genesis: Genesis, startBlock: number): Promise<void> {
  await db
    .insertInto('chain_progress')
    .values({
      chain_id: genesis.chainId,
      genesis_hash: genesis.hash,
      next_block: startBlock,
      head: 0,
      completed_at: 0,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const chains = await db.selectFrom('chain_progress').select(['chain_id', 'genesis_hash']).execute()
  const other = chains.find(
    ({ chain_id, genesis_hash }) => chain_id !== genesis.chainId || genesis_hash !== genesis.hash,
  )
  if (other === undefined) return
  throw new OtherChainError(
    `this database follows chain ${other.chain_id} with genesis ${other.genesis_hash}, but the node is on chain ` +
      `${genesis.chainId} with genesis ${genesis.hash}: use that chain's node, or an empty database`,
  )
}

export async function loadProgress(db: Db | Tx, chainId: number): Promise<Progress> {
  const { next_block } = await db
    .selectFrom('chain_progress')
    .select('next_block')
    .where('chain_id', '=', chainId)
    .executeTakeFirstOrThrow()
  const tip = await newestBlock(db)
  return { nextBlock: next_block, tip }
}

async function newestBlock(db: Db | Tx): Promise<StoredBlock | null> {
  const tip = await db
    .selectFrom('chain_blocks')
    .select(['number', 'hash'])
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
  return tip ?? null
}

/** The newest stored block that is not above `number`. */
export async function blockAtOrBelow(db: Db, number: number): Promise<StoredBlock | null> {
  const block = await db
    .selectFrom('chain_blocks')
    .select(['number', 'hash'])
    .where('number', '<=', number)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
  return block ?? null
}

export interface NextBlock {
  readonly chainId: number
  /** Where this database stands; every block from here up to `block` is empty. */
  readonly from: number
  readonly block: ChainBlock
  readonly facts: readonly BlockFact[]
  /** Found outside the facts. */
  readonly mismatches: readonly SettlementMismatch[]
}

/**
 * One transaction: the block, its logs, what they do, and the step of `next_block`.
 * `overtaken`: another follower was here. `fork`: the block does not follow the one that is stored.
 */
export async function recordBlock(
  db: Db,
  { chainId, from, block, facts, mismatches: silent }: NextBlock,
  ports: { readonly chain: Pick<Chain, 'position'>; readonly now: Millis },
): Promise<readonly SettlementMismatch[] | 'overtaken' | 'fork'> {
  return db.transaction().execute(async (tx) => {
    const progress = await lockProgress(tx, chainId)
    if (progress.nextBlock !== from) return 'overtaken'
    const follows = progress.tip?.number !== block.number - 1 || progress.tip.hash === block.parentHash
    if (!follows) return 'fork'
    const { number, hash, parentHash: parent_hash, timestamp } = block
    await tx.insertInto('chain_blocks').values({ number, hash, parent_hash, timestamp }).execute()
    const stopped = silent.map(({ marketId }) => marketShard(marketId))
    const { places, mismatches } = await applyFacts(tx, block, facts, { chain: ports.chain, stopped })
    if (facts.length > 0) {
      const logs = facts.map(({ log }, at) => ({
        block: number,
        log_index: log.logIndex,
        tx_hash: log.txHash,
        address: log.address,
        topics: [...log.topics],
        data: log.data,
        shard: places[at]?.shard ?? null,
        seq: places[at]?.seq ?? null,
      }))
      await tx.insertInto('chain_logs').values(logs).execute()
    }
    const all = [...mismatches, ...silent]
    for (const mismatch of all) await noteMismatch(tx, number, mismatch, ports.now)
    await tx
      .updateTable('chain_progress')
      .set({ next_block: number + 1 })
      .where('chain_id', '=', chainId)
      .execute()
    return all
  })
}

async function lockProgress(tx: Tx, chainId: number): Promise<Progress> {
  await tx
    .selectFrom('chain_progress')
    .select('next_block')
    .where('chain_id', '=', chainId)
    .forUpdate()
    .executeTakeFirstOrThrow()
  return loadProgress(tx, chainId)
}

/** Keeps the mismatch and stops the market, whose shard is locked: no order is taken and no batch runs until someone has looked. */
async function noteMismatch(tx: Tx, block: number, found: SettlementMismatch, now: Millis): Promise<void> {
  await tx
    .insertInto('settlement_mismatches')
    .values({
      market_id: found.marketId,
      block,
      tx_hash: found.txHash,
      batch_id: found.batchId,
      part: found.part,
      failure_kind: found.kind,
      failure_reason: found.reason,
      found_at: now,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await tx
    .updateTable('markets')
    .set({ mode: 'cancel_only' })
    .where('market_id', '=', found.marketId)
    .where('mode', '=', 'open')
    .execute()
}

/** A settlement of ours in this block that has left no log. Where it did not revert, it did nothing, and should have. */
export interface EventlessSettlement {
  readonly marketId: number
  readonly txHash: string
  readonly batchId: number
  readonly part: number
}

export async function eventlessSettlements(
  db: Db,
  block: ChainBlock,
  facts: readonly BlockFact[],
): Promise<EventlessSettlement[]> {
  const spoken = new Set(facts.map(({ log }) => log.txHash))
  const silent = block.transactions.filter((hash) => !spoken.has(hash))
  if (silent.length === 0) return []
  const rows = await db
    .selectFrom('relayer_transactions as sent')
    .innerJoin('actions', (join) =>
      join.onRef('actions.relayer', '=', 'sent.relayer').onRef('actions.nonce', '=', 'sent.nonce'),
    )
    .select(['actions.market_id', 'sent.tx_hash', 'actions.batch_id', 'actions.part'])
    .where('sent.tx_hash', 'in', silent)
    .execute()
  return rows.map((row) => ({
    marketId: row.market_id,
    txHash: row.tx_hash,
    batchId: row.batch_id,
    part: row.part,
  }))
}

/** Takes back the newest stored block, if it is still this one. */
export async function rollBackBlock(
  db: Db,
  chainId: number,
  block: StoredBlock,
  startBlock: number,
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const { tip } = await lockProgress(tx, chainId)
    if (tip?.number !== block.number || tip.hash !== block.hash) return
    const facts = await loggedFacts(tx, { block: block.number })
    await rollBackFacts(tx, facts)
    await tx.deleteFrom('chain_logs').where('block', '=', block.number).execute()
    await tx.deleteFrom('chain_blocks').where('number', '=', block.number).execute()
    const below = await newestBlock(tx)
    await tx
      .updateTable('chain_progress')
      .set({ next_block: below === null ? startBlock : below.number + 1 })
      .where('chain_id', '=', chainId)
      .execute()
  })
}

/** The log rows that facts became, the newest fact first. */
async function loggedFacts(
  tx: Tx,
  wanted: { readonly block: number } | { readonly unconfirmedTo: number },
): Promise<(JournaledFact & { readonly block: number; readonly logIndex: number })[]> {
  const rows = await tx
    .selectFrom('chain_logs')
    .innerJoin('journal', (join) =>
      join.onRef('journal.shard', '=', 'chain_logs.shard').onRef('journal.seq', '=', 'chain_logs.seq'),
    )
    .select(['chain_logs.block', 'chain_logs.log_index', 'journal.shard', 'journal.seq', 'journal.row'])
    .where((where) =>
      'block' in wanted
        ? where('chain_logs.block', '=', wanted.block)
        : where.and([
            where('chain_logs.block', '<=', wanted.unconfirmedTo),
            where('chain_logs.confirmed', '=', false),
          ]),
    )
    .orderBy('chain_logs.block', 'desc')
    .orderBy('chain_logs.log_index', 'desc')
    .execute()
  return rows.map(({ block, log_index, shard, seq, row }) => ({
    block,
    logIndex: log_index,
    shard,
    seq,
    row: row as JournalRow,
  }))
}

/** Marks everything up to the block as sealed. A transaction of its own: its locks would come too late inside a block's. */
export async function confirmUpTo(db: Db, block: number, at: Millis): Promise<void> {
  const open = await db
    .selectFrom('chain_logs')
    .select('block')
    .where('confirmed', '=', false)
    .where('block', '<=', block)
    .limit(1)
    .executeTakeFirst()
  if (open === undefined) return
  await db.transaction().execute(async (tx) => {
    await tx.selectFrom('chain_progress').select('next_block').forUpdate().execute()
    const facts = await loggedFacts(tx, { unconfirmedTo: block })
    await confirmParts(tx, facts.reverse(), at)
    await tx
      .updateTable('chain_logs')
      .set({ confirmed: true })
      .where('confirmed', '=', false)
      .where('block', '<=', block)
      .execute()
  })
}

/** A pass has reached the head: everything that the node knew at `at` is here. */
export async function completePass(db: Db, chainId: number, head: number, at: Millis): Promise<void> {
  await db
    .updateTable('chain_progress')
    .set({ head, completed_at: at })
    .where('chain_id', '=', chainId)
    .where('completed_at', '<=', at)
    .execute()
}
