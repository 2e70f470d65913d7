/**
 * Applies what is left of a recorded block: stage after stage, the steps of a stage in parallel transactions. Each transaction first
 * applies the steps whose shards are free, so that a busy market holds up only itself. The steps are in the database, so whichever follower comes
 * next continues where this one stopped.
 */
import {
  deleteSteps,
  insertMismatch,
  isOpen,
  loadProgress,
  lockProgress,
  openStage,
  placeChainLogs,
  type StoredStep,
  setNextBlock,
} from '../../db/chain.ts'
import type { Db, Tx } from '../../db/client.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { restrictToCancels } from '../../db/markets.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Chain, ChainBlock, ChainLog } from '../ports.ts'
import { applyFacts, type SettlementMismatch } from './apply.ts'
import { type BlockFact, lockFacts, usersOf } from './fact-locks.ts'
import type { LockedOrders } from './lock-orders.ts'
import { LockedShards } from './locked-shards.ts'

/** Most transactions of a block at once. Each has a connection of its own. */
const MOST_PARALLEL = 4

export interface RecordedBlock {
  readonly chainId: number
  readonly block: ChainBlock
  /** Of the whole block, in order. */
  readonly facts: readonly BlockFact[]
}

export interface ApplyPorts {
  readonly chain: Pick<Chain, 'position'>
  readonly now: Millis
  readonly killPoint: KillPointHook<'after-block-record' | 'after-step-commit'>
  /** Most facts of a transaction that applies several steps. */
  readonly stepFacts: number
}

/** The block is no longer the newest one, or another follower has completed it. */
type Left = 'fork' | 'overtaken'

/** Applies the remaining steps and completes the block. Returns the mismatches that it has found. */
export async function applySteps(
  db: Db,
  recorded: RecordedBlock,
  ports: ApplyPorts,
): Promise<readonly SettlementMismatch[] | Left> {
  const found: SettlementMismatch[] = []
  for (;;) {
    const stage = await openStage(db, recorded.block.number)
    if (stage.length === 0) break
    const applied = await applyStage({ db, recorded, ports, found }, stage)
    if (applied !== 'applied') return applied
  }
  return (await complete(db, recorded)) ?? found
}

interface Stage {
  readonly db: Db
  readonly recorded: RecordedBlock
  readonly ports: ApplyPorts
  readonly found: SettlementMismatch[]
}

async function applyStage(context: Stage, steps: readonly StoredStep[]): Promise<'applied' | Left> {
  const busy: StoredStep[] = []
  const groups = steps.length === 1 ? [] : inGroups(steps, context.ports.stepFacts)
  const isParallel = groups.length > 0
  const outcomes = await inParallel(groups, async (group) => {
    const outcome = await applyTransaction(context, 'shared', (tx) =>
      lockFreeSteps(tx, context.recorded, group),
    )
    busy.push(...without(group, outcome.steps))
    return outcome.left
  })
  const waiting = isParallel ? busy : steps
  const mode = isParallel ? 'shared' : 'exclusive'
  const last = await inParallel(waiting, async (step) => {
    const outcome = await applyTransaction(context, mode, (tx) => lockStep(tx, context.recorded, step))
    return outcome.left
  })
  return [...outcomes, ...last].find((left) => left !== null) ?? 'applied'
}

const without = (steps: readonly StoredStep[], some: readonly StoredStep[]): StoredStep[] =>
  steps.filter((step) => !some.includes(step))

/** Consecutive steps in groups of at most so many facts. A larger step is a group of its own. */
function inGroups(steps: readonly StoredStep[], most: number): StoredStep[][] {
  const groups: StoredStep[][] = []
  let facts = most
  for (const step of steps) {
    const own = step.log_indexes.length
    if (facts + own > most) {
      groups.push([])
      facts = 0
    }
    groups.at(-1)?.push(step)
    facts += own
  }
  return groups
}

/** Runs the tasks on all items, at most `MOST_PARALLEL` at once, and waits for all of them before it throws the first error. */
async function inParallel<Item, Result>(
  items: readonly Item[],
  task: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const rest = items.values()
  const workers = Array.from({ length: Math.min(MOST_PARALLEL, items.length) }, async () => {
    for (const item of rest) results.push(await task(item))
  })
  const ended = await Promise.allSettled(workers)
  for (const worker of ended) if (worker.status === 'rejected') throw worker.reason
  return results
}

/** Steps of one transaction, with their locks. */
interface LockedSteps {
  readonly steps: readonly StoredStep[]
  readonly locked: LockedOrders | null
}

const factsOf = ({ facts }: RecordedBlock, steps: readonly StoredStep[]): BlockFact[] => {
  const own = new Set(steps.flatMap(({ log_indexes }) => log_indexes))
  return facts.filter(({ log }) => own.has(log.logIndex))
}

/** Locks those of the steps whose shards are all free. */
async function lockFreeSteps(
  tx: Tx,
  recorded: RecordedBlock,
  group: readonly StoredStep[],
): Promise<LockedSteps> {
  const shards = await LockedShards.lockFree(
    tx,
    group.flatMap((step) => step.shards),
  )
  const steps = group.filter((step) => step.shards.every((shard) => shards.has(shard)))
  if (steps.length === 0) return { steps, locked: null }
  return { steps, locked: await usersOf(tx, factsOf(recorded, steps), shards) }
}

/** Waits for the locks of the step. */
async function lockStep(tx: Tx, recorded: RecordedBlock, step: StoredStep): Promise<LockedSteps> {
  return { steps: [step], locked: await lockFacts(tx, factsOf(recorded, [step])) }
}

interface StepOutcome {
  /** Applied here, or by another follower before. */
  readonly steps: readonly StoredStep[]
  readonly left: Left | null
}

/**
 * One transaction: the locks, the claim of the steps, their effects, and the places of their journal rows. `mode`: of the lock of the chain's progress,
 * which excludes a rollback. A step alone in its stage may change the progress itself.
 */
async function applyTransaction(
  { db, recorded, ports, found }: Stage,
  mode: 'exclusive' | 'shared',
  lock: (tx: Tx) => Promise<LockedSteps>,
): Promise<StepOutcome> {
  const { chainId, block, facts } = recorded
  const outcome = await db.transaction().execute(async (tx) => {
    const left = leftBy(await lockProgress(tx, chainId, mode), block)
    if (left !== null) return { steps: [], left, mismatches: [] }
    const { steps, locked } = await lock(tx)
    if (locked === null) return { steps, left, mismatches: [] }
    const claimed = await deleteSteps(
      tx,
      block.number,
      steps.map(({ step }) => step),
    )
    const own = factsOf(
      recorded,
      steps.filter(({ step }) => claimed.has(step)),
    )
    const { places, mismatches } = await applyFacts(tx, block, own, {
      ...{ chain: ports.chain, locked, blockFacts: facts },
    })
    const placed = own.flatMap(({ log: { logIndex } }, at) => {
      const place = places[at]
      return place ? [{ logIndex, ...place }] : []
    })
    await placeChainLogs(tx, block.number, placed)
    await noteMismatches(tx, block.number, mismatches, ports.now)
    return { steps, left, mismatches }
  })
  ports.killPoint('after-step-commit')
  found.push(...outcome.mismatches)
  return outcome
}

/** Why the block cannot be applied any more; null if it is the newest one and not complete. */
function leftBy(
  progress: Awaited<ReturnType<typeof loadProgress>>,
  { number, hash }: ChainBlock,
): Left | null {
  if (progress.tip?.number !== number || progress.tip.hash !== hash) return 'fork'
  return isOpen(progress) ? null : 'overtaken'
}

/** Moves `next_block` behind the block. Null unless the block has been rolled back, or completed, by another follower. */
async function complete(db: Db, { chainId, block }: RecordedBlock): Promise<Left | null> {
  return db.transaction().execute(async (tx) => {
    const left = leftBy(await lockProgress(tx, chainId), block)
    if (left !== null) return left
    // The same block was rolled back and recorded again meanwhile.
    if ((await openStage(tx, block.number)).length > 0) return 'overtaken'
    await setNextBlock(tx, chainId, block.number + 1)
    return null
  })
}

/** Stores the mismatches and stops their markets, whose shards are locked, until an operator has resolved them. */
export async function noteMismatches(
  tx: Tx,
  block: number,
  mismatches: readonly SettlementMismatch[],
  now: Millis,
): Promise<void> {
  for (const found of mismatches) {
    await insertMismatch(tx, {
      market_id: found.marketId,
      block,
      tx_hash: found.txHash,
      batch_id: found.batchId,
      part: found.part,
      failure_kind: found.kind,
      failure_reason: found.reason,
      found_at: now,
    })
    if (!(await restrictToCancels(tx, found.marketId))) continue
    const at = await lockShard(tx, marketShard(found.marketId))
    await appendRows(tx, at, [{ kind: 'market_restricted', mode: 'cancel_only', why: 'mismatch' }])
  }
}

/** The newest block and its logs, if it is recorded and not complete. */
export async function loadOpenBlock(
  db: Db,
  chainId: number,
): Promise<{ readonly block: ChainBlock; readonly logs: readonly ChainLog[] } | null> {
  const progress = await loadProgress(db, chainId)
  if (!isOpen(progress) || progress.tip === null) return null
  const { number, hash } = progress.tip
  const block = await db
    .selectFrom('chain_blocks')
    .selectAll()
    .where('number', '=', number)
    .where('hash', '=', hash)
    .executeTakeFirst()
  if (block === undefined) return null
  const rows = await db
    .selectFrom('chain_logs')
    .selectAll()
    .where('block', '=', number)
    .orderBy('log_index')
    .execute()
  const logs = rows.map((row) => ({
    ...{ block: number, blockHash: hash, logIndex: row.log_index, txHash: row.tx_hash },
    ...{ address: row.address as Address, topics: row.topics, data: row.data },
  }))
  const { parent_hash: parentHash, timestamp } = block
  return { block: { number, hash, parentHash, timestamp, transactions: [] }, logs }
}
