/**
 * Ingests the chain block by block, from the last stored block to the node's head. After a fork it first rolls back to the last common
 * block. For each block, `decode/` turns its logs into facts and `blocks.ts` records them with their effects (`apply.ts`).
 */

import { blockAtOrBelow, isOpen, loadProgress, recordHead, type StoredBlock } from '../../db/chain.ts'
import type { Db } from '../../db/client.ts'
import { loadMarkets } from '../../db/markets.ts'
import { NO_EVENTS } from '../../domain/settlement/receipt.ts'
import { reconcile } from '../../domain/settlement/reconcile.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain, ChainBlock, ChainLog, Metrics } from '../ports.ts'
import type { SettlementMismatch } from './apply.ts'
import { type ApplyPorts, applySteps, loadOpenBlock, type RecordedBlock } from './apply-steps.ts'
import {
  bindChain,
  confirmUpTo,
  eventlessActions,
  ingestBlock,
  OtherChainError,
  rollBackBlock,
} from './blocks.ts'
import { addressesOf, type Contracts } from './contracts.ts'
import { decodeLog } from './decode/decode-log.ts'
import type { BlockFact } from './fact-locks.ts'

export interface FollowOptions {
  readonly chainId: number
  readonly bank: Contracts['bank']
  readonly accountManager: Contracts['accountManager']
  readonly forwarder: Contracts['forwarder']
  /** First block that can contain events of the followed contracts. */
  readonly startBlock: number
  /** Most blocks in one request for logs. */
  readonly range: number
  /** Blocks deeper than this below the head are fetched by range, the others one by one. */
  readonly liveDepth: number
  /** Number of blocks on top of a block that confirm it. */
  readonly confirmations: number
  /** Most facts of different markets that one transaction applies: it bounds for how long a market is locked. */
  readonly stepFacts: number
}

export interface FollowPorts {
  readonly db: Db
  readonly chain: Chain
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'headReached' | 'blockApplied' | 'rolledBack' | 'mismatch'>
  readonly killPoint: KillPointHook<BlockKillPoint>
}

/** Of a block: before its first transaction, after its record, after each of its steps, and after it is complete. */
type BlockKillPoint =
  | 'before-block-commit'
  | 'after-block-record'
  | 'after-step-commit'
  | 'after-block-commit'

/** Least time between two updates of `completed_at` at an unchanged head. */
const COMPLETION_STEP_MS = 250

/** The node's answers contradict each other, because it switched forks between two requests. The next pass starts over. */
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

  /** One pass towards the node's head. False if it did not reach the head, or the node is behind the database. */
  async pass(): Promise<boolean> {
    const { db, chain, clock, metrics } = this.#ports
    const { chainId, confirmations } = this.#options
    if (!this.#isBound) await this.#bind()
    const at = clock.now()
    const head = await chain.head()
    const progress = await loadProgress(db, chainId)
    const { tip } = progress
    if (tip?.hash !== head.hash || isOpen(progress)) {
      const isBehind = tip !== null && tip.hash !== head.hash && !(await this.#rollBackFork(tip, head))
      if (isBehind) return false
      const contracts = await this.#contracts()
      if (!(await this.#finish(contracts))) return false
      const { nextBlock } = await loadProgress(db, chainId)
      if (!(await this.#advance(nextBlock, head, contracts))) return false
      await confirmUpTo(db, head.number - confirmations, confirmedAt(head))
    }
    await this.#complete(head.number, at)
    metrics.headReached(head.number)
    return true
  }

  /** Throttled to COMPLETION_STEP_MS while the head does not change: far below the lag at which placements are rejected. */
  async #complete(head: number, at: Millis): Promise<void> {
    if (head === this.#completed.head && at - this.#completed.at < COMPLETION_STEP_MS) return
    await recordHead(this.#ports.db, this.#options.chainId, head, at)
    this.#completed = { head, at }
  }

  /** Checks that the node and the database belong to the same chain. Throws OtherChainError otherwise. */
  async #bind(): Promise<void> {
    const { db, chain } = this.#ports
    const { chainId, startBlock } = this.#options
    const actual = await chain.chainId()
    if (actual !== chainId)
      throw new OtherChainError(`CHAIN_ID is ${chainId}, but the node is on chain ${actual}`)
    const genesis = await chain.block(0)
    if (genesis === null) throw new InconsistentNodeError('the node has no block 0')
    await bindChain(db, { chainId, hash: genesis.hash }, startBlock)
    this.#isBound = true
  }

  get #applyPorts(): ApplyPorts {
    const { chain, clock, killPoint } = this.#ports
    return { chain, now: clock.now(), killPoint, stepFacts: this.#options.stepFacts }
  }

  async #contracts(): Promise<Contracts> {
    const markets = await loadMarkets(this.#ports.db)
    const { bank, accountManager, forwarder } = this.#options
    return { bank, accountManager, forwarder, markets: new Map(markets.map((spec) => [spec.trader, spec])) }
  }

  // ---------------------------------------------------------------------- forward

  async #advance(from: number, head: ChainBlock, contracts: Contracts): Promise<boolean> {
    const { liveDepth, range } = this.#options
    let next = from
    while (next <= head.number) {
      const to = Math.min(next + range - 1, head.number - liveDepth)
      const done =
        to > next
          ? await this.#ingestRange(next, to, contracts)
          : await this.#ingestLive(next, head, contracts)
      if (!done) return false
      next = Math.max(next, to) + 1
    }
    return true
  }

  /** One block near the head, with its logs by its hash: a fork in between cannot mix two blocks. */
  async #ingestLive(number: number, head: ChainBlock, contracts: Contracts): Promise<boolean> {
    const block = number === head.number ? head : await this.#ports.chain.block(number)
    if (block === null)
      throw new InconsistentNodeError(`the node has block ${head.number}, but not ${number}`)
    const logs = await this.#ports.chain.logsOf(block.hash, addressesOf(contracts))
    return this.#record(number, block, logs, contracts)
  }

  /**
   * Fetches the logs of many blocks with one request. The last block's hash commits to all blocks before it: if the hash is the same
   * before and after the request, the range is complete and of one fork. Only blocks with logs, and the last one, are stored.
   */
  async #ingestRange(from: number, to: number, contracts: Contracts): Promise<boolean> {
    const { chain } = this.#ports
    const last = await chain.block(to)
    const logs = await chain.logsBetween(from, to, addressesOf(contracts))
    const numbers = [...new Set([...logs.map(({ block }) => block), to])].sort((a, b) => a - b)
    const blocks = await Promise.all(numbers.map((number) => chain.block(number)))
    if (last === null || last.hash !== blocks.at(-1)?.hash) {
      throw new InconsistentNodeError(`block ${to} changed while the logs of ${from}..${to} were fetched`)
    }
    let next = from
    for (const block of blocks) {
      if (block === null)
        throw new InconsistentNodeError(`the node no longer has every block of ${from}..${to}`)
      const own = logs.filter((log) => log.block === block.number)
      if (!(await this.#record(next, block, own, contracts))) return false
      next = block.number + 1
    }
    return true
  }

  /** False if the block does not follow the stored tip. The next pass resolves it. */
  async #record(
    from: number,
    block: ChainBlock,
    logs: readonly ChainLog[],
    contracts: Contracts,
  ): Promise<boolean> {
    const { db, killPoint } = this.#ports
    const { chainId } = this.#options
    if (logs.some(({ blockHash }) => blockHash !== block.hash)) {
      throw new InconsistentNodeError(
        `the logs of block ${block.number} belong to another block with that number`,
      )
    }
    const inOrder = [...logs].sort((a, b) => a.logIndex - b.logIndex)
    const facts = inOrder.map((log): BlockFact => ({ log, fact: decodeLog(log, contracts) }))
    this.#logUndecodable(facts)
    const eventless = await this.#eventlessMismatches(block, facts)
    const next = { chainId, from, block, facts, mismatches: eventless }
    if (facts.length > 0) killPoint('before-block-commit')
    return this.#ended(next, await ingestBlock(db, next, this.#applyPorts))
  }

  /** Applies the rest of a block that is recorded and not complete: its follower was stopped, or another one is at it. */
  async #finish(contracts: Contracts): Promise<boolean> {
    const { db } = this.#ports
    const { chainId } = this.#options
    const open = await loadOpenBlock(db, chainId)
    if (open === null) return true
    const facts = open.logs.map((log): BlockFact => ({ log, fact: decodeLog(log, contracts) }))
    const recorded = { chainId, block: open.block, facts }
    return this.#ended(recorded, await applySteps(db, recorded, this.#applyPorts))
  }

  /** Reports how a block ended. False if it did not follow the stored tip, or another follower was faster. */
  #ended(
    { block, facts }: Pick<RecordedBlock, 'block' | 'facts'>,
    outcome: Awaited<ReturnType<typeof ingestBlock>>,
  ): boolean {
    const { logger, metrics, killPoint } = this.#ports
    if (outcome === 'overtaken' || outcome === 'fork') {
      logger.info({ block: block.number, outcome }, 'block not applied')
      return false
    }
    killPoint('after-block-commit')
    metrics.blockApplied(facts.length)
    for (const mismatch of outcome) this.#report(block.number, mismatch)
    return true
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

  #report(block: number, { kind, reason, marketId, txHash, batchId, part }: SettlementMismatch): void {
    this.#ports.metrics.mismatch(kind)
    const at = { block, tx_hash: txHash, market_id: marketId, batch_id: batchId, part }
    this.#ports.logger.error(
      { ...at, failure_kind: kind, reason },
      'settlement mismatch; market set to cancel_only',
    )
  }

  /** Actions that succeeded without an event. The keeper handles those that reverted. */
  async #eventlessMismatches(block: ChainBlock, facts: readonly BlockFact[]): Promise<SettlementMismatch[]> {
    const { db, chain } = this.#ports
    const mismatches: SettlementMismatch[] = []
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
    const { db, logger, metrics } = this.#ports
    const { chainId, startBlock } = this.#options
    const common = await blockAtOrBelow(db, head.number)
    if (common === null) return false
    if (await this.#isOnChain(common, head)) return tip.number <= head.number
    // A missing common block may also mean another chain: check the genesis before any rollback.
    await this.#bind()

    let rolledBack = 0
    for (let newest: StoredBlock | null = tip; newest; rolledBack++) {
      if (newest.number <= head.number && (await this.#isOnChain(newest, head))) break
      await rollBackBlock(db, chainId, newest, startBlock)
      newest = (await loadProgress(db, chainId)).tip
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

/** Time of confirmation. It comes from the chain, so a replay yields the same journal. */
const confirmedAt = (head: ChainBlock): Millis => (head.timestamp * 1000) as Millis
