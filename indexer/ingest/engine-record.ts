/**
 * Records blocks through the engine; the block tables follow the engine's state. The indexer itself writes only the
 * chain's identity and the time at which the chain's head was last reached.
 */
import { blockAtOrBelow, loadProgress, recordHead } from '../../db/chain.ts'
import type { Db } from '../../db/client.ts'
import { anyOf } from '../../db/values.ts'
import type { BlockCommand, ChainAnswer } from '../../domain/exchange/decide/chain/blocks.ts'
import type { FoundMismatch, ReadPosition } from '../../domain/exchange/decide/chain/fact-context.ts'
import type { FailureKind } from '../../domain/settlement/receipt.ts'
import type { Address } from '../../domain/units.ts'
import { ask, type Engine } from '../../keeper/engine/link/engine.ts'
import type { Logger } from '../../service/logger.ts'
import type { Chain } from '../ports.ts'
import { bindChain } from './bind-chain.ts'
import {
  type ChainRecord,
  InconsistentNodeError,
  type NextBlock,
  type RecordOutcome,
} from './chain-record.ts'

export interface EngineRecordPorts {
  readonly db: Db
  readonly engine: Engine
  readonly chain: Pick<Chain, 'position' | 'block'>
  readonly logger: Logger
}

/** Bound of the time in which the engine applies a block. A block without an answer is sent again. */
const BLOCK_BUDGET_MS = 30_000

/** The chain has forked below the blocks that the engine keeps: it admits nothing, and an operator has to resolve it. */
export class ForkTooDeepError extends Error {
  override readonly name = 'ForkTooDeepError'
}

/** A block that was sent to the engine. Blocks are sent in their order, although their contents are read concurrently. */
interface Sending {
  readonly sent: PromiseWithResolvers<void>
  /** Whether the block is recorded or skipped, so that the next block can follow. */
  readonly isFollowed: PromiseWithResolvers<boolean>
}

export function createEngineRecord(ports: EngineRecordPorts, chainId: number): ChainRecord {
  const { db, engine, logger } = ports

  async function rollBackTo(above: number): Promise<void> {
    const answer = await ask<'roll_back'>(engine, { kind: 'roll_back', above }, BLOCK_BUDGET_MS)
    if (answer.kind !== 'fork_too_deep') return
    const error = new ForkTooDeepError(
      `the chain has left block ${above + 1}, but the engine keeps only blocks from ${answer.keptFrom} on`,
    )
    logger.error({ above, kept_from: answer.keptFrom }, 'fork too deep; placements are stopped')
    throw error
  }

  /** The newest block that is with the engine; null if none is. */
  let newest: Sending | null = null

  async function ingest(next: NextBlock): Promise<RecordOutcome> {
    const before = newest
    const own: Sending = { sent: Promise.withResolvers(), isFollowed: Promise.withResolvers() }
    newest = own
    let outcome: RecordOutcome | null = null
    try {
      const command = await commandOf(ports, next)
      await before?.sent.promise
      outcome = await apply(next, command, { isSent: own.sent.resolve, before })
      return outcome
    } finally {
      own.sent.resolve()
      own.isFollowed.resolve(outcome?.kind === 'recorded' || outcome?.kind === 'skipped')
      if (newest === own) newest = null
    }
  }

  async function apply(
    next: NextBlock,
    first: BlockCommand,
    { isSent, before }: { readonly isSent: () => void; readonly before: Sending | null },
  ): Promise<RecordOutcome> {
    let command = first
    let waitsFor = before
    for (;;) {
      const asked = ask<'apply_block'>(engine, command, BLOCK_BUDGET_MS)
      isSent()
      const answer = await asked
      if (waitsFor !== null && (answer.kind === 'not_next' || answer.kind === 'fork')) {
        // A large block takes the engine several steps; until the last step it refuses the next block.
        if (!(await waitsFor.isFollowed.promise)) return { kind: 'overtaken' }
        waitsFor = null
        continue
      }
      switch (answer.kind) {
        case 'done':
          return { kind: 'recorded', mismatches: await mismatchesOf(db, next) }
        case 'skipped':
          return { kind: 'skipped' }
        case 'positions_needed':
          command = {
            ...command,
            positions: [...command.positions, ...(await readPositions(ports, command, answer))],
          }
          break
        case 'not_next':
          // The reply to an earlier command with this block was lost.
          if (answer.nextBlock > next.block.number) return { kind: 'recorded', mismatches: [] }
          return { kind: 'overtaken' }
        case 'fork':
          await finishRollBack(next, answer.tip)
          return { kind: 'fork' }
        default:
          throw new Error(`block ${next.block.number} is not applied: ${answer.kind}`)
      }
    }
  }

  /**
   * Finishes an interrupted rollback: the node has switched back to the recorded block, but the engine rejects the
   * block that follows. The recorded block is rolled back and recorded again.
   */
  async function finishRollBack({ block }: NextBlock, tip: number): Promise<void> {
    const recorded = await blockAtOrBelow(db, tip)
    if (recorded?.number !== tip || tip >= block.number) return
    if (tip === block.number - 1 && recorded.hash !== block.parentHash) return
    await rollBackTo(tip - 1)
  }

  return {
    bind: (genesis, startBlock) => bindChain(db, genesis, startBlock),
    progress: () => loadProgress(db, chainId),
    blockAtOrBelow: (number) => blockAtOrBelow(db, number),
    ingest,
    rollBack: ({ number }) => rollBackTo(number - 1),
    async confirm({ number, timestamp }) {
      await ask<'confirm_blocks'>(engine, { kind: 'confirm_blocks', number, timestamp }, BLOCK_BUDGET_MS)
    },
    async complete(head, at) {
      await recordHead(db, chainId, head, at)
      await engine.inform({ kind: 'inform_pass', at })
    },
  }
}

async function commandOf(
  { db }: EngineRecordPorts,
  { block, from, facts, mismatches }: NextBlock,
): Promise<BlockCommand> {
  const { number, hash, parentHash, timestamp } = block
  return {
    kind: 'apply_block',
    block: { number, hash, parentHash, timestamp },
    from,
    facts: facts.map(({ log: { logIndex, txHash, address }, fact }) => ({
      log: { logIndex, txHash, address },
      fact,
    })),
    silent: mismatches,
    positions: [],
    gasUsed: await gasUsedBy(db, new Set(facts.map(({ log }) => log.txHash))),
  }
}

/** Gas of the exchange's own transactions. */
async function gasUsedBy(db: Db, hashes: ReadonlySet<string>): Promise<Map<string, number>> {
  if (hashes.size === 0) return new Map()
  const rows = await db
    .selectFrom('relayer_transactions')
    .select(['tx_hash', 'gas_used'])
    .where('tx_hash', '=', anyOf('text', hashes))
    .where('gas_used', 'is not', null)
    .execute()
  return new Map(rows.map(({ tx_hash, gas_used }) => [tx_hash, gas_used as number]))
}

/** Positions after this block: of its number, if the number still has its hash afterwards. */
async function readPositions(
  { chain }: EngineRecordPorts,
  { block, facts }: BlockCommand,
  { logIndex, accounts }: Extract<ChainAnswer, { kind: 'positions_needed' }>,
): Promise<ReadPosition[]> {
  const trader = facts.find(({ log }) => log.logIndex === logIndex)?.log.address as Address
  const positions = await Promise.all(
    accounts.map(async (account) => ({
      logIndex,
      account,
      position: await chain.position(trader, account, block.number),
    })),
  )
  const present = await chain.block(block.number)
  if (present?.hash !== block.hash)
    throw new InconsistentNodeError(`block ${block.number} changed while its positions were read`)
  return positions
}

/** The engine's mismatches of the block. The table also has mismatches of a block with the same number that has left the chain. */
async function mismatchesOf(db: Db, { block, facts, mismatches }: NextBlock): Promise<FoundMismatch[]> {
  const hashes = new Set([...facts.map(({ log }) => log.txHash), ...mismatches.map(({ txHash }) => txHash)])
  if (hashes.size === 0) return []
  const rows = await db
    .selectFrom('settlement_mismatches')
    .selectAll()
    .where('block', '=', block.number)
    .where('tx_hash', '=', anyOf('text', hashes))
    .execute()
  return rows.map((row) => ({
    kind: row.failure_kind as FailureKind,
    reason: row.failure_reason,
    marketId: row.market_id as FoundMismatch['marketId'],
    txHash: row.tx_hash,
    batchId: row.batch_id,
    part: row.part,
  }))
}
