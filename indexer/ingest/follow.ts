/** Follows the chain: from where the database stands to the node's head, back to the fork point where the chain has forked. */

import type { Db } from '../../db/client.ts'
import { loadMarkets } from '../../db/markets.ts'
import { NO_EVENTS, reconcile } from '../../domain/settlement/reconcile.ts'
import type { Millis } from '../../domain/units.ts'
import type { Chain, ChainBlock, ChainLog, Clock, Logger, Metrics, Reached } from '../ports.ts'
import type { BlockFact, SettlementMismatch } from './apply.ts'
import {
  bindChain,
  blockAtOrBelow,
  completePass,
  confirmUpTo,
  eventlessSettlements,
  loadProgress,
  OtherChainError,
  recordBlock,
  rollBackBlock,
  type StoredBlock,
} from './blocks.ts'
import { decodeLog } from './decode/decode-log.ts'
import { addressesOf, type Contracts } from './facts.ts'

export interface FollowOptions {
  readonly chainId: number
  readonly bank: Contracts['bank']
  readonly accountManager: Contracts['accountManager']
  /** First block that can hold anything of ours. */
  readonly startBlock: number
  /** Most blocks of one request for logs. */
  readonly range: number
  /** Further behind than this, blocks are fetched by range rather than one by one. */
  readonly liveDepth: number
  /** Blocks on top of a block that make it sealed. */
  readonly confirmations: number
}

export interface FollowPorts {
  readonly db: Db
  readonly chain: Chain
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'headReached' | 'blockApplied' | 'rolledBack' | 'mismatch'>
  readonly reached: Reached
}

const COMPLETION_STEP_MS = 250

/** The node contradicts itself: it switched to another fork between two answers. The next pass starts from what is so by then. */
class InconsistentNodeError extends Error {
  override readonly name = 'InconsistentNodeError'
}

export class Follower {
  readonly #ports: FollowPorts
  readonly #options: FollowOptions
  #isBound = false
  #completed = { head: -1, at: 0 }

  constructor(ports: FollowPorts, options: FollowOptions) {
    this.#ports = ports
    this.#options = options
  }

  /** One pass. True if it reached the node's head, false if there is more, or the node is behind us. */
  async pass(): Promise<boolean> {
    const { db, chain, clock, metrics } = this.#ports
    const { chainId, confirmations } = this.#options
    if (!this.#isBound) await this.#bind()
    const at = clock.now()
    const head = await chain.head()
    const { tip } = await loadProgress(db, chainId)
    if (tip?.hash !== head.hash) {
      if (tip !== null && !(await this.#dropForks(tip, head))) return false
      const { nextBlock } = await loadProgress(db, chainId)
      if (!(await this.#advance(nextBlock, head, await this.#contracts()))) return false
      await confirmUpTo(db, head.number - confirmations, sealedAt(head))
    }
    await this.#complete(head.number, at)
    metrics.headReached(head.number)
    return true
  }

  /** Readers want to know within a fraction of the time after which placements stop, not at every poll. */
  async #complete(head: number, at: Millis): Promise<void> {
    if (head === this.#completed.head && at - this.#completed.at < COMPLETION_STEP_MS) return
    await completePass(this.#ports.db, this.#options.chainId, head, at)
    this.#completed = { head, at }
  }

  async #bind(): Promise<void> {
    const { db, chain } = this.#ports
    const { chainId, startBlock } = this.#options
    const actual = await chain.chainId()
    if (actual !== chainId)
      throw new OtherChainError(`CHAIN_ID is ${chainId}, but the node is on chain ${actual}`)
    const genesis = await chain.block(0)
    if (genesis === null) throw new InconsistentNodeError('the node does not have its first block')
    await bindChain(db, { chainId, hash: genesis.hash }, startBlock)
    this.#isBound = true
  }

  async #contracts(): Promise<Contracts> {
    const markets = await loadMarkets(this.#ports.db)
    const { bank, accountManager } = this.#options
    return { bank, accountManager, markets: new Map(markets.map((spec) => [spec.trader, spec])) }
  }

  // ---------------------------------------------------------------------- forward

  async #advance(from: number, head: ChainBlock, contracts: Contracts): Promise<boolean> {
    const { liveDepth, range } = this.#options
    let next = from
    while (next <= head.number) {
      const to = Math.min(next + range - 1, head.number - liveDepth)
      const done =
        to > next ? await this.#backfill(next, to, contracts) : await this.#live(next, head, contracts)
      if (!done) return false
      next = Math.max(next, to) + 1
    }
    return true
  }

  async #live(number: number, head: ChainBlock, contracts: Contracts): Promise<boolean> {
    const block = number === head.number ? head : await this.#ports.chain.block(number)
    if (block === null)
      throw new InconsistentNodeError(`the node has block ${head.number}, but not ${number}`)
    const logs = await this.#ports.chain.logsOf(block.hash, addressesOf(contracts))
    return this.#record(number, block, logs, contracts)
  }

  /**
   * Many blocks with one request. That the range is complete and of one fork is proved by its last block, whose hash binds all before
   * it: it must be the same after the logs were read as before. Only blocks with logs, and the last one, are stored.
   */
  async #backfill(from: number, to: number, contracts: Contracts): Promise<boolean> {
    const { chain } = this.#ports
    const last = await chain.block(to)
    const logs = await chain.logsBetween(from, to, addressesOf(contracts))
    const numbers = [...new Set([...logs.map(({ block }) => block), to])].sort((a, b) => a - b)
    const blocks = await Promise.all(numbers.map((number) => chain.block(number)))
    if (last === null || last.hash !== blocks.at(-1)?.hash) {
      throw new InconsistentNodeError(`block ${to} changed while the logs up to it were read`)
    }
    let next = from
    for (const block of blocks) {
      if (block === null) throw new InconsistentNodeError(`a block of ${from}..${to} is gone`)
      const own = logs.filter((log) => log.block === block.number)
      if (!(await this.#record(next, block, own, contracts))) return false
      next = block.number + 1
    }
    return true
  }

  /** False where the block could not be put on top of what is stored: the next pass finds out why. */
  async #record(
    from: number,
    block: ChainBlock,
    logs: readonly ChainLog[],
    contracts: Contracts,
  ): Promise<boolean> {
    const { db, chain, clock, logger, metrics, reached } = this.#ports
    const { chainId } = this.#options
    if (logs.some(({ blockHash }) => blockHash !== block.hash)) {
      throw new InconsistentNodeError(`logs of block ${block.number} are from another block of that number`)
    }
    const inOrder = [...logs].sort((a, b) => a.logIndex - b.logIndex)
    const facts = inOrder.map((log): BlockFact => ({ log, fact: decodeLog(log, contracts) }))
    this.#warn(facts)
    const silent = await this.#silentMismatches(block, facts)
    const next = { chainId, from, block, facts, mismatches: silent }
    const outcome = await recordBlock(db, next, { chain, now: clock.now() })
    if (outcome === 'overtaken' || outcome === 'fork') {
      logger.info({ block: block.number, outcome }, 'block not recorded')
      return false
    }
    reached('after-block-commit')
    metrics.blockApplied(facts.length)
    for (const mismatch of outcome) this.#report(block.number, mismatch)
    return true
  }

  #warn(facts: readonly BlockFact[]): void {
    for (const { fact, log } of facts) {
      if (fact.kind !== 'undecodable') continue
      this.#ports.logger.error(
        { tx_hash: log.txHash, address: log.address, problem: fact.problem },
        'log not understood',
      )
    }
  }

  #report(block: number, { kind, reason, marketId, txHash, batchId, part }: SettlementMismatch): void {
    this.#ports.metrics.mismatch(kind)
    const at = { block, tx_hash: txHash, market_id: marketId, batch_id: batchId, part }
    this.#ports.logger.error(
      { ...at, failure_kind: kind, reason },
      'settlement mismatch: market is cancel-only',
    )
  }

  /** Settlements of ours that were mined and said nothing. A revert is the keeper's matter. */
  async #silentMismatches(block: ChainBlock, facts: readonly BlockFact[]): Promise<SettlementMismatch[]> {
    const { db, chain } = this.#ports
    const mismatches: SettlementMismatch[] = []
    for (const silent of await eventlessSettlements(db, block, facts)) {
      if ((await chain.hasSucceeded(silent.txHash)) !== true) continue
      const verdict = reconcile(NO_EVENTS, null)
      if (!verdict.ok) mismatches.push({ ...silent, ...verdict.refusal })
    }
    return mismatches
  }

  // ---------------------------------------------------------------------- back

  /**
   * Takes back stored blocks, the newest first, down to one that the node has too. False where the node is merely behind: it has
   * nothing newer than what is stored, and nothing that contradicts it.
   */
  async #dropForks(tip: StoredBlock, head: ChainBlock): Promise<boolean> {
    const { db, logger, metrics } = this.#ports
    const { chainId, startBlock } = this.#options
    const common = await blockAtOrBelow(db, head.number)
    if (common === null) return false
    if (await this.#isOnChain(common, head)) return tip.number <= head.number
    // Nothing in common may mean that it is another chain altogether.
    await this.#bind()

    let dropped = 0
    for (let newest: StoredBlock | null = tip; newest; dropped++) {
      if (newest.number <= head.number && (await this.#isOnChain(newest, head))) break
      await rollBackBlock(db, chainId, newest, startBlock)
      newest = (await loadProgress(db, chainId)).tip
    }
    logger.warn({ blocks: dropped, from: tip.number }, 'the chain has forked: blocks rolled back')
    metrics.rolledBack(dropped)
    return true
  }

  async #isOnChain({ number, hash }: StoredBlock, head: ChainBlock): Promise<boolean> {
    if (number === head.number) return hash === head.hash
    if (number === head.number - 1) return hash === head.parentHash
    return (await this.#ports.chain.block(number))?.hash === hash
  }
}

/** The moment that sealed a block, told the same at every replay. */
const sealedAt = (head: ChainBlock): Millis => (head.timestamp * 1000) as Millis
