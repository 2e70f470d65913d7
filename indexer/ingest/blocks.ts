/**
 * Records blocks with their facts and rolls them back. Each transaction locks the row of `chain_progress` and checks `next_block` first, so two
 * followers at once cannot apply a block twice.
 */
import { sql } from 'kysely'
import { isSingle, toSingleAction } from '../../db/actions.ts'
import {
  confirmChainLogs,
  deleteBlock,
  type Genesis,
  insertBlock,
  insertChainLogs,
  insertProgress,
  insertSteps,
  isOpen,
  lockProgress,
  newestBlock,
  type StoredBlock,
  setNextBlock,
} from '../../db/chain.ts'
import type { Db, Tx } from '../../db/client.ts'
import { findUsers } from '../../db/users.ts'
import { constant } from '../../db/values.ts'
import { expectationOf } from '../../domain/actions/action-rules.ts'
import { accountsOfAll } from '../../domain/chain/fact-accounts.ts'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../domain/journal/journal-row.ts'
import type { Expectation } from '../../domain/settlement/receipt.ts'
import type { Millis } from '../../domain/units.ts'
import type { ChainBlock } from '../ports.ts'
import { applyFacts, createNewcomers, type SettlementMismatch } from './apply.ts'
import { type ApplyPorts, applySteps, noteMismatches } from './apply-steps.ts'
import { confirmParts } from './confirm-parts.ts'
import { type BlockFact, lockFacts, usersOf, withPending } from './fact-locks.ts'
import type { LockedOrders } from './lock-orders.ts'
import { LockedShards, type RowPlace } from './locked-shards.ts'
import { planSteps, type Step } from './plan-steps.ts'
import { type JournaledFact, rollBackFacts } from './roll-back.ts'

/** The node's answers contradict each other, because it switched forks between two requests. The next pass starts over. */
export class InconsistentNodeError extends Error {
  override readonly name = 'InconsistentNodeError'
}

/** The database belongs to another chain than the node, so nothing of this chain may be written to it. */
export class OtherChainError extends Error {
  override readonly name = 'OtherChainError'
}

/** Binds the database to the chain at the first start. Throws OtherChainError for any other chain afterwards. */
export async function bindChain(db: Db, genesis: Genesis, startBlock: number): Promise<void> {
  await insertProgress(db, genesis, startBlock)
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

export interface NextBlock {
  readonly chainId: number
  /** `next_block` of the database; every block from here up to `block` is empty. */
  readonly from: number
  readonly block: ChainBlock
  readonly facts: readonly BlockFact[]
  /** Mismatches without a fact. */
  readonly mismatches: readonly SettlementMismatch[]
}

/**
 * Records the block and applies it. Returns the mismatches. `overtaken`: another follower has moved `next_block`. `fork`: the block does not
 * follow the stored one, or was rolled back meanwhile.
 */
export async function ingestBlock(
  db: Db,
  next: NextBlock,
  ports: ApplyPorts,
): Promise<readonly SettlementMismatch[] | 'overtaken' | 'fork'> {
  const recorded = await recordBlock(db, next, ports)
  if (typeof recorded === 'string' || recorded.isComplete)
    return typeof recorded === 'string' ? recorded : recorded.mismatches
  ports.killPoint('after-block-record')
  const applied = await applySteps(db, next, ports)
  return typeof applied === 'string' ? applied : [...recorded.mismatches, ...applied]
}

interface Recorded {
  /** The block was applied with its record. */
  readonly isComplete: boolean
  readonly mismatches: readonly SettlementMismatch[]
}

/**
 * Records the block with its logs, and what is to apply of it. A block that is one step, or a small one whose shards are free, is applied and
 * completed in the same transaction.
 */
async function recordBlock(
  db: Db,
  { chainId, from, block, facts, mismatches: silent }: NextBlock,
  ports: ApplyPorts,
): Promise<Recorded | 'overtaken' | 'fork'> {
  return db.transaction().execute(async (tx) => {
    const progress = await lockProgress(tx, chainId)
    if (progress.nextBlock !== from || isOpen(progress)) return 'overtaken'
    const follows = progress.tip?.number !== block.number - 1 || progress.tip.hash === block.parentHash
    if (!follows) return 'fork'
    const { number, hash, parentHash: parent_hash, timestamp } = block
    await insertBlock(tx, { number, hash, parent_hash, timestamp })
    const stopped = silent.map(({ marketId }) => marketShard(marketId))
    const steps = planSteps(facts, await withPending(tx, facts))
    const locked = await lockAtOnce(tx, { block, facts, steps, stopped }, ports.stepFacts)
    if (locked === null) {
      await recordSteps(tx, { block, facts, steps, stopped })
      await noteMismatches(tx, number, silent, ports.now)
      return { isComplete: false, mismatches: silent }
    }
    const { places, mismatches } = await applyFacts(tx, block, facts, { chain: ports.chain, locked })
    await insertChainLogs(tx, toRows(number, facts, places))
    const all = [...mismatches, ...silent]
    await noteMismatches(tx, number, all, ports.now)
    await setNextBlock(tx, chainId, number + 1)
    return { isComplete: true, mismatches: all }
  })
}

/** The locks of the whole block, if it is one step, or if it is small, its steps need not follow each other and their shards are free. */
async function lockAtOnce(
  tx: Tx,
  { facts, steps, stopped }: Unapplied,
  mostFacts: number,
): Promise<LockedOrders | null> {
  if (steps.length <= 1) return lockFacts(tx, facts, stopped)
  const isSmall = steps.flatMap((step) => step.facts).length <= mostFacts
  if (!isSmall || steps.some(({ stage }) => stage > 0)) return null
  const wanted = new Set([
    ...steps.flatMap(({ shards }) => shards),
    ...stopped,
    ...(await shardsOfNewcomers(tx, facts)),
  ])
  await sql`savepoint before_locks`.execute(tx)
  const shards = await LockedShards.lockFree(tx, wanted)
  if ([...wanted].every((shard) => shards.has(shard))) return usersOf(tx, facts, shards)
  await sql`rollback to savepoint before_locks`.execute(tx)
  return null
}

/** `accounts`, if an account of the facts has no user yet. */
async function shardsOfNewcomers(tx: Tx, facts: readonly BlockFact[]): Promise<string[]> {
  const accounts = accountsOfAll(facts)
  const known = await findUsers(tx, accounts)
  return known.size === accounts.length ? [] : [ACCOUNTS_SHARD]
}

interface Unapplied {
  readonly block: ChainBlock
  readonly facts: readonly BlockFact[]
  readonly steps: readonly Step[]
  readonly stopped: readonly string[]
}

/** The accounts of the block become users here, so that its steps need `accounts` only for its own facts. */
async function recordSteps(tx: Tx, { block, facts, steps, stopped }: Unapplied): Promise<void> {
  const newcomers = await shardsOfNewcomers(tx, facts)
  const shards = await LockedShards.lock(tx, [...stopped, ...newcomers])
  if (newcomers.length > 0) {
    const users = await findUsers(tx, accountsOfAll(facts))
    await createNewcomers(tx, facts, { shards, users }, block)
    await shards.write(tx)
  }
  await insertChainLogs(tx, toRows(block.number, facts, []))
  const rows = steps.map((step, at) => ({
    ...{ block: block.number, step: at, stage: step.stage, shards: [...step.shards] },
    log_indexes: step.facts.map(({ log }) => log.logIndex),
  }))
  await insertSteps(tx, rows)
}

const toRows = (block: number, facts: readonly BlockFact[], places: readonly (RowPlace | null)[]) =>
  facts.map(({ log }, at) => ({
    block,
    log_index: log.logIndex,
    tx_hash: log.txHash,
    address: log.address,
    topics: [...log.topics],
    data: log.data,
    shard: places[at]?.shard ?? null,
    seq: places[at]?.seq ?? null,
  }))

/** An action of the exchange in this block that emitted no event. If it did not revert, it should have emitted one. */
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

/** Rolls back the newest stored block, if it is still this one. */
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
    await deleteBlock(tx, block.number)
    const below = await newestBlock(tx)
    await setNextBlock(tx, chainId, below === null ? startBlock : below.number + 1)
  })
}

/** The journal rows of recorded facts, the newest fact first. */
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
            where('chain_logs.confirmed', '=', constant(false)),
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

/** Confirms everything up to the block. A transaction of its own, because its shard locks would follow a block's account locks. */
export async function confirmUpTo(db: Db, block: number, at: Millis): Promise<void> {
  const open = await db
    .selectFrom('chain_logs')
    .select('block')
    .where('confirmed', '=', constant(false))
    .where('block', '<=', block)
    .limit(1)
    .executeTakeFirst()
  if (open === undefined) return
  await db.transaction().execute(async (tx) => {
    const progress = await tx.selectFrom('chain_progress').select('next_block').forUpdate().executeTakeFirst()
    // Another follower may have recorded a block there since, in place of one that has left the chain.
    const complete = Math.min(block, (progress?.next_block ?? 0) - 1)
    const facts = await loggedFacts(tx, { unconfirmedTo: complete })
    await confirmParts(tx, facts.reverse(), at)
    await confirmChainLogs(tx, complete)
  })
}
