/**
 * Ingests the chain block by block up to the node's head, after rolling back to the last common block if it forked.
 * `decode/` turns logs into facts; a `ChainRecord` records them.
 */

import { isOpen, type Progress, type StoredBlock } from '../../db/chain.ts'
import type { Db } from '../../db/client.ts'
import { loadMarkets } from '../../db/markets.ts'
import type { FoundMismatch } from '../../domain/exchange/decide/chain/fact-context.ts'
import { NO_EVENTS } from '../../domain/settlement/receipt.ts'
import { reconcile } from '../../domain/settlement/reconcile.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain, ChainBlock, ChainLog, Metrics } from '../ports.ts'
import { OtherChainError } from './bind-chain.ts'
import { type BlockFact, type ChainRecord, InconsistentNodeError } from './chain-record.ts'
import { addressesOf, type Contracts } from './contracts.ts'
import { decodeLog } from './decode/decode-log.ts'
import { eventlessActions } from './eventless-actions.ts'

export interface FollowOptions {
  readonly chainId: number
  readonly bank: Contracts['bank']
  readonly accountManager: Contracts['accountManager']
  readonly forwarder: Contracts['forwarder']
  /** First block that can contain events of the followed contracts. */
  readonly startBlock: number
  /** Most blocks in one request for logs. */
  readonly range: number
  /** Blocks deeper than this below the head are fetched by range, newer blocks one by one. */
  readonly liveDepth: number
}

export interface FollowPorts {
  readonly db: Db
  readonly chain: Chain
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'headReached' | 'blockApplied' | 'rolledBack' | 'mismatch'>
  /** Before a block with facts is recorded, and after each block. */
  readonly killPoint: KillPointHook<'before-block-commit' | 'after-block-commit'>
  readonly record: ChainRecord
}

/** Least time between two updates of `completed_at` at an unchanged head. */
const COMPLETION_STEP_MS = 250

/** Empty blocks that are not recorded, from `from` to `last`. */
interface SkippedBlocks {
  readonly from: number
  readonly last: Pick<ChainBlock, 'number' | 'hash'>
}

interface FetchedBlock {
  readonly block: ChainBlock
  readonly logs: readonly ChainLog[]
}

/** The block after the block that is being recorded, fetched meanwhile; null if the fetch failed. */
interface BlockAhead {
  readonly number: number
  readonly fetched: Promise<FetchedBlock | null>
}

/** A block that is with the engine. */
interface SentBlock {
  /** Start of the next block if this block is recorded; null if it does not follow. */
  readonly from: number | null
  /** See `#record`. */
  readonly outcome: Promise<number | null>
}

/** Blocks that are with the engine at a time: it stores several of them by one append. */
const WINDOW = 8

export class Follower {
  readonly #ports: FollowPorts
  readonly #options: FollowOptions
  #isBound = false
  #skipped: SkippedBlocks | null = null
  #ahead: BlockAhead | null = null
  #completed = { head: -1, at: 0 }

  constructor(ports: FollowPorts, options: FollowOptions) {
    this.#ports = ports
    this.#options = options
  }

  /** One pass towards the node's head. False if it did not reach the head, or the node is behind the database. */
  async pass(): Promise<boolean> {
    const { chain, clock, metrics } = this.#ports
    if (!this.#isBound) await this.#bind()
    const at = clock.now()
    this.#ahead = null
    const [head, progress] = await Promise.all([chain.head(), this.#ports.record.progress()])
    if (!this.#isAt(progress, head)) {
      const start = await this.#startOf(progress, head)
      if (start === null || !(await this.#advance(start, head, await this.#contracts()))) return false
      await this.#ports.record.confirm(head)
    }
    await this.#complete(head.number, at)
    metrics.headReached(head.number)
    return true
  }

  /** Whether everything up to the head is recorded, or skipped because it is empty. */
  #isAt(progress: Progress, head: ChainBlock): boolean {
    if (isOpen(progress)) return false
    const isSkipped = this.#skipped?.from === progress.nextBlock && this.#skipped.last.hash === head.hash
    return isSkipped || progress.tip?.hash === head.hash
  }

  /** The next block to record, after blocks that have left the chain are rolled back. Null if the node is only behind. */
  async #startOf({ tip, nextBlock }: Progress, head: ChainBlock): Promise<number | null> {
    if (tip === null || tip.hash === head.hash) return nextBlock
    const isNext = nextBlock === head.number && tip.number === head.number - 1
    if (isNext && tip.hash === head.parentHash) return nextBlock
    if (!(await this.#rollBackFork(tip, head))) return null
    return (await this.#ports.record.progress()).nextBlock
  }

  /** Throttled to COMPLETION_STEP_MS while the head does not change: far below the lag at which placements are rejected. */
  async #complete(head: number, at: Millis): Promise<void> {
    if (head === this.#completed.head && at - this.#completed.at < COMPLETION_STEP_MS) return
    await this.#ports.record.complete(head, at)
    this.#completed = { head, at }
  }

  /** Checks that the node and the database belong to the same chain. Throws OtherChainError otherwise. */
  async #bind(): Promise<void> {
    const { chain } = this.#ports
    const { chainId, startBlock } = this.#options
    const actual = await chain.chainId()
    if (actual !== chainId)
      throw new OtherChainError(`CHAIN_ID is ${chainId}, but the node is on chain ${actual}`)
    const genesis = await chain.block(0)
    if (genesis === null) throw new InconsistentNodeError('the node has no block 0')
    await this.#ports.record.bind({ chainId, hash: genesis.hash }, startBlock)
    this.#isBound = true
  }

  async #contracts(): Promise<Contracts> {
    const markets = await loadMarkets(this.#ports.db)
    const { bank, accountManager, forwarder } = this.#options
    return { bank, accountManager, forwarder, markets: new Map(markets.map((spec) => [spec.trader, spec])) }
  }

  // ---------------------------------------------------------------------- forward

  async #advance(start: number, head: ChainBlock, contracts: Contracts): Promise<boolean> {
    const { liveDepth, range } = this.#options
    const sent: Promise<number | null>[] = []
    let from: number | null = start
    let next = this.#firstToFetch(start, head)
    try {
      while (next <= head.number) {
        const to = Math.min(from + range - 1, head.number - liveDepth)
        if (to > next) from = await this.#ingestRange(from, to, contracts)
        else {
          const live = await this.#sendLive({ from, number: next, head }, contracts)
          sent.push(live.outcome)
          from = live.from
        }
        if (from === null) return false
        if (sent.length >= WINDOW && (await sent.shift()) === null) return false
        next = Math.max(next, to) + 1
      }
      for (const outcome of sent) if ((await outcome) === null) return false
      return true
    } finally {
      await Promise.allSettled(sent)
    }
  }

  /** Behind the skipped blocks, unless they may have left the chain. */
  #firstToFetch(start: number, head: ChainBlock): number {
    const skipped = this.#skipped
    const isAhead = skipped !== null && head.number > skipped.last.number
    if (skipped?.from === start && (isAhead || skipped.last.hash === head.hash))
      return skipped.last.number + 1
    this.#skipped = null
    return start
  }

  /**
   * Reads a block near the head with its logs by hash, so that a fork cannot mix two blocks. The next block is sent
   * before this block is recorded; the engine checks that it follows.
   */
  async #sendLive(
    { from, number, head }: { readonly from: number; readonly number: number; readonly head: ChainBlock },
    contracts: Contracts,
  ): Promise<SentBlock> {
    const { block, logs } =
      (await this.#takeAhead(number)) ?? (await this.#fetchLive(number, head, contracts))
    const skipped = this.#skipped?.last
    if (skipped?.number === number - 1 && skipped.hash !== block.parentHash) {
      this.#skipped = null
      return { from: null, outcome: Promise.resolve(null) }
    }
    this.#fetchAhead(number + 1, head, contracts)
    const outcome = this.#record(from, block, logs, contracts)
    outcome.catch(() => {})
    // The engine may skip an empty block: then the next block starts where this block starts.
    return { from: logs.length > 0 ? number + 1 : await outcome, outcome }
  }

  async #fetchLive(number: number, head: ChainBlock, contracts: Contracts): Promise<FetchedBlock> {
    const block = number === head.number ? head : await this.#ports.chain.block(number)
    if (block === null)
      throw new InconsistentNodeError(`the node has block ${head.number}, but not ${number}`)
    return { block, logs: await this.#ports.chain.logsOf(block.hash, addressesOf(contracts)) }
  }

  /** One block at most. It may have left the chain when its turn comes: the record compares its parent, as of every block. */
  #fetchAhead(number: number, head: ChainBlock, contracts: Contracts): void {
    if (number > head.number) return
    // A failure is met again by the fetch that repeats it.
    this.#ahead = { number, fetched: this.#fetchLive(number, head, contracts).catch(() => null) }
  }

  async #takeAhead(number: number): Promise<FetchedBlock | null> {
    const ahead = this.#ahead
    this.#ahead = null
    return ahead?.number === number ? ahead.fetched : null
  }

  /**
   * Fetches the logs of many blocks with one request. If the last block's hash is the same before and after, the range
   * is complete and of one fork. Blocks without logs are not stored.
   */
  async #ingestRange(from: number, to: number, contracts: Contracts): Promise<number | null> {
    const { chain } = this.#ports
    const last = await chain.block(to)
    const logs = await chain.logsBetween(from, to, addressesOf(contracts))
    const numbers = [...new Set([...logs.map(({ block }) => block), to])].sort((a, b) => a - b)
    const blocks = await Promise.all(numbers.map((number) => chain.block(number)))
    if (last === null || last.hash !== blocks.at(-1)?.hash) {
      throw new InconsistentNodeError(`block ${to} changed while the logs of ${from}..${to} were fetched`)
    }
    let next: number | null = from
    for (const block of blocks) {
      if (block === null)
        throw new InconsistentNodeError(`the node no longer has every block of ${from}..${to}`)
      const own = logs.filter((log) => log.block === block.number)
      next = await this.#record(next, block, own, contracts)
      if (next === null) return null
    }
    return next
  }

  /** Returns from where on the next block is to be recorded. Null if the block does not follow the stored tip: the next pass resolves it. */
  async #record(
    from: number,
    block: ChainBlock,
    logs: readonly ChainLog[],
    contracts: Contracts,
  ): Promise<number | null> {
    if (logs.some(({ blockHash }) => blockHash !== block.hash)) {
      throw new InconsistentNodeError(
        `the logs of block ${block.number} belong to another block with that number`,
      )
    }
    const inOrder = [...logs].sort((a, b) => a.logIndex - b.logIndex)
    const facts = inOrder.map((log): BlockFact => ({ log, fact: decodeLog(log, contracts) }))
    this.#logUndecodable(facts)
    const eventless = await this.#eventlessMismatches(block, facts)
    if (facts.length > 0) this.#ports.killPoint('before-block-commit')
    const outcome = await this.#ports.record.ingest({ from, block, facts, mismatches: eventless })
    if (outcome.kind === 'skipped') {
      this.#skipped = { from, last: block }
      return from
    }
    this.#skipped = null
    if (outcome.kind !== 'recorded') {
      this.#ports.logger.info({ block: block.number, outcome: outcome.kind }, 'block not applied')
      return null
    }
    this.#ports.killPoint('after-block-commit')
    this.#ports.metrics.blockApplied(facts.length)
    this.#ports.logger.debug({ block: block.number, from, facts: facts.length }, 'block recorded')
    for (const mismatch of outcome.mismatches) this.#report(block.number, mismatch)
    return block.number + 1
  }

  #logUndecodable(facts: readonly BlockFact[]): void {
    for (const { fact, log } of facts) {
      if (fact.kind !== 'undecodable') continue
      this.#ports.logger.error(
        { tx_hash: log.txHash, address: log.address, problem: fact.problem },
        'undecodable event log',
      )
    }
  }

  #report(block: number, { kind, reason, marketId, txHash, batchId, part }: FoundMismatch): void {
    this.#ports.metrics.mismatch(kind)
    const at = { block, tx_hash: txHash, market_id: marketId, batch_id: batchId, part }
    this.#ports.logger.error(
      { ...at, failure_kind: kind, reason },
      'settlement mismatch; market set to cancel_only',
    )
  }

  /** Actions that succeeded without an event. The keeper handles reverted actions. */
  async #eventlessMismatches(block: ChainBlock, facts: readonly BlockFact[]): Promise<FoundMismatch[]> {
    const { db, chain } = this.#ports
    const mismatches: FoundMismatch[] = []
    for (const { expected, ...action } of await eventlessActions(db, block, facts)) {
      if ((await chain.hasSucceeded(action.txHash)) !== true) continue
      const verdict = reconcile(NO_EVENTS, expected)
      if (!verdict.ok) mismatches.push({ ...action, ...verdict.refusal })
    }
    return mismatches
  }

  // ---------------------------------------------------------------------- roll back

  /**
   * Rolls back stored blocks, the newest first, down to the newest one that is on the node's chain. False if the node is only behind:
   * its head is below the stored tip and on the same fork.
   */
  async #rollBackFork(tip: StoredBlock, head: ChainBlock): Promise<boolean> {
    const { logger, metrics } = this.#ports
    const common = await this.#ports.record.blockAtOrBelow(head.number)
    if (common === null) return false
    if (await this.#isOnChain(common, head)) return tip.number <= head.number
    // A missing common block may also mean another chain: check the genesis before any rollback.
    await this.#bind()

    let rolledBack = 0
    for (let newest: StoredBlock | null = tip; newest; rolledBack++) {
      if (newest.number <= head.number && (await this.#isOnChain(newest, head))) break
      await this.#ports.record.rollBack(newest)
      newest = (await this.#ports.record.progress()).tip
    }
    logger.warn({ blocks: rolledBack, from: tip.number }, 'fork: blocks rolled back')
    metrics.rolledBack(rolledBack)
    return true
  }

  async #isOnChain({ number, hash }: StoredBlock, head: ChainBlock): Promise<boolean> {
    if (number === head.number) return hash === head.hash
    if (number === head.number - 1) return hash === head.parentHash
    return (await this.#ports.chain.block(number))?.hash === hash
  }
}
