/** Records blocks in the tables of the write side, in transactions of the indexer's own. */
import { blockAtOrBelow, loadProgress, recordHead } from '../../db/chain.ts'
import type { Db } from '../../db/client.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { KillPointHook } from '../../service/kill-point.ts'
import type { Chain, ChainBlock } from '../ports.ts'
import { type ApplyPorts, applySteps, loadOpenBlock } from './apply-steps.ts'
import { bindChain, confirmUpTo, ingestBlock, rollBackBlock } from './blocks.ts'
import type { ChainRecord, RecordOutcome } from './chain-record.ts'

export interface TableRecordPorts {
  readonly db: Db
  readonly chain: Pick<Chain, 'position'>
  readonly clock: Clock
  readonly killPoint: KillPointHook<'after-block-record' | 'after-step-commit'>
}

export interface TableRecordOptions {
  readonly chainId: number
  readonly startBlock: number
  readonly confirmations: number
  readonly stepFacts: number
}

/** Time of confirmation. It comes from the chain, so a replay yields the same journal. */
const confirmedAt = (head: ChainBlock): Millis => (head.timestamp * 1000) as Millis

const toOutcome = (outcome: Awaited<ReturnType<typeof ingestBlock>>): RecordOutcome =>
  typeof outcome === 'string' ? { kind: outcome } : { kind: 'recorded', mismatches: outcome }

export function createTableRecord(
  { db, chain, clock, killPoint }: TableRecordPorts,
  { chainId, startBlock, confirmations, stepFacts }: TableRecordOptions,
): ChainRecord {
  const applyPorts = (): ApplyPorts => ({ chain, now: clock.now(), killPoint, stepFacts })
  return {
    bind: (genesis, first) => bindChain(db, genesis, first),
    progress: () => loadProgress(db, chainId),
    blockAtOrBelow: (number) => blockAtOrBelow(db, number),
    openBlock: () => loadOpenBlock(db, chainId),
    finish: async (open) => toOutcome(await applySteps(db, { chainId, ...open }, applyPorts())),
    ingest: async (next) => toOutcome(await ingestBlock(db, { chainId, ...next }, applyPorts())),
    rollBack: (block) => rollBackBlock(db, chainId, block, startBlock),
    confirm: (head) => confirmUpTo(db, head.number - confirmations, confirmedAt(head)),
    complete: (head, at) => recordHead(db, chainId, head, at),
  }
}
