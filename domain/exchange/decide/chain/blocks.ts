/**
 * Decides block commands: begin, apply facts in slices, complete, confirm, and roll back a block that leaves the chain.
 */
import { accountsOf, accountsOfAll } from '../../../chain/fact-accounts.ts'
import type { LoggedFact } from '../../../chain/facts.ts'
import type { Millis } from '../../../units.ts'
import { CHAIN } from '../../apply.ts'
import { Continued } from '../../decide.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import type { ExchangeState } from '../../state.ts'
import { type BlockRow, type ChainPosition, CHAIN as POSITION } from '../../tables/blocks.ts'
import { applyFact } from './apply-fact.ts'
import type { FactContext, FoundMismatch, ReadPosition, WantedPositions } from './fact-context.ts'
import { rollBackFact } from './roll-back.ts'

export interface ChainRules {
  /** Number of blocks on top of a block that confirm it. */
  readonly confirmations: number
  /** Number of newest blocks that can be rolled back; at least `confirmations`. */
  readonly depth: number
  /** Maximum accounts that the facts of one slice change, unless a single fact changes more. */
  readonly sliceAccounts: number
  /** Minimum time between two recorded empty blocks. */
  readonly emptyBlocksMs: number
}

export interface BlockCommand {
  readonly kind: 'apply_block'
  readonly block: {
    readonly number: number
    readonly hash: string
    readonly parentHash: string
    /** Unix seconds. */
    readonly timestamp: number
  }
  /** First block of the empty run that ends before this block. */
  readonly from: number
  /** All facts of the block, by log index. */
  readonly facts: readonly LoggedFact[]
  /** Mismatches without a fact: actions that succeeded but emitted no event. */
  readonly silent: readonly FoundMismatch[]
  readonly positions: readonly ReadPosition[]
  readonly gasUsed: ReadonlyMap<string, number>
}

/** `above`: newest recorded block that is still on the chain. Later blocks have left the chain. */
export interface RollBackCommand {
  readonly kind: 'roll_back'
  readonly above: number
}

/** Head of the node. */
export interface ConfirmCommand {
  readonly kind: 'confirm_blocks'
  readonly number: number
  /** Unix seconds. */
  readonly timestamp: number
}

export type ChainCommand = BlockCommand | RollBackCommand | ConfirmCommand

export type ChainAnswer =
  | { readonly kind: 'done' | 'in_progress'; readonly nextBlock: number }
  /** An empty block without a row; the next recorded block states that this block was empty. */
  | { readonly kind: 'skipped'; readonly nextBlock: number }
  /** Another block is expected: this block is recorded already, or earlier blocks are missing. */
  | { readonly kind: 'not_next'; readonly nextBlock: number }
  /**
   * The block does not follow the newest recorded block, or facts of a block that left the chain are not
   * rolled back yet.
   */
  | { readonly kind: 'fork'; readonly tip: number }
  | ({ readonly kind: 'positions_needed' } & WantedPositions)
  | { readonly kind: 'fork_too_deep'; readonly keptFrom: number }

type Step = ChainAnswer | Continued<ChainAnswer, ChainCommand>

const positionOf = (state: ExchangeState): ChainPosition | undefined => state.chain.get(POSITION)

/** Newest block of the state. */
export function tipOf(state: ExchangeState): BlockRow | null {
  let tip: BlockRow | null = null
  for (const block of state.blocks.rows()) if (tip === null || block.number > tip.number) tip = block
  return tip
}

/** Nothing is admitted while the state is on an abandoned chain. */
export const isChainHalted = (state: ExchangeState): boolean =>
  (positionOf(state)?.forked_at ?? null) !== null

export function decideChain(rules: ChainRules, draft: Draft, inputs: Inputs, command: ChainCommand): Step {
  if (command.kind === 'apply_block') return applyBlock(rules, draft, inputs, command)
  if (command.kind === 'roll_back') return rollBack(rules, draft, inputs, command)
  return confirmBlocks(rules, draft, command)
}

// ---------------------------------------------------------------------- forward

function applyBlock(rules: ChainRules, draft: Draft, inputs: Inputs, command: BlockCommand): Step {
  const { block, from, facts, silent } = command
  const tip = tipOf(draft.state)
  const isOpen = tip?.status === 'open' && tip.number === block.number && tip.hash === block.hash
  if (!isOpen) {
    const refusal = refusalOf(draft.state, tip, command)
    if (refusal !== null) return refusal
    const isEmpty = facts.length === 0 && silent.length === 0
    const position = positionOf(draft.state)
    const since = inputs.now - (position?.begun_at ?? 0)
    if (isEmpty && position !== undefined && since < rules.emptyBlocksMs)
      return { kind: 'skipped', nextBlock: from }
    const { number, hash, parentHash: parent_hash, timestamp } = block
    const begun = { number, from, hash, parent_hash, timestamp, is_empty: isEmpty, at: inputs.now }
    draft.write(CHAIN, { kind: 'block_begun', ...begun })
    if (isEmpty) return { kind: 'done', nextBlock: number + 1 }
    createUsers(draft, inOrder(facts), (timestamp * 1000) as Millis)
  }
  return applySlice(rules, draft, inputs, command)
}

/** Refusal of the block; null if it is the expected block. */
function refusalOf(
  state: ExchangeState,
  tip: BlockRow | null,
  { block, from }: BlockCommand,
): ChainAnswer | null {
  const next = positionOf(state)?.next_block
  if (next === undefined || tip === null)
    return next !== undefined && next !== from ? { kind: 'not_next', nextBlock: next } : null
  if (tip.status !== 'complete') return { kind: 'fork', tip: tip.number }
  if (next !== from || block.number < from) return { kind: 'not_next', nextBlock: next ?? from }
  const follows = tip.number !== block.number - 1 || tip.hash === block.parentHash
  return follows ? null : { kind: 'fork', tip: tip.number }
}

const inOrder = (facts: readonly LoggedFact[]): LoggedFact[] =>
  [...facts].sort((a, b) => a.log.logIndex - b.log.logIndex)

function createUsers(draft: Draft, facts: readonly LoggedFact[], at: Millis): void {
  for (const address of accountsOfAll(facts)) {
    const { userIds, newestUser } = draft.state
    if (userIds.get(address) !== undefined) continue
    draft.write(ACCOUNTS, { kind: 'user_created', user_id: newestUser.next(), address, at })
  }
}

function applySlice(rules: ChainRules, draft: Draft, inputs: Inputs, command: BlockCommand): Step {
  const { block, silent, positions, gasUsed } = command
  const facts = inOrder(command.facts)
  const { number } = block
  const context: FactContext = { draft, block, facts, positions, gasUsed, mismatches: [] }
  const { next_log } = draft.state.blocks.need(String(number))
  const waiting = facts.filter(({ log }) => log.logIndex >= next_log)
  let accounts = 0
  for (const [at, fact] of waiting.entries()) {
    accounts += 1 + accountsOf(fact.fact).length
    const isFull = at > 0 && accounts > rules.sliceAccounts
    const wanted = isFull ? null : applyFact(context, fact)
    if (!isFull && wanted === null) continue
    // Nothing of this fact is applied yet.
    draft.write(CHAIN, { kind: 'block_advanced', number, next_log: fact.log.logIndex })
    noteMismatches(draft, inputs, number, context.mismatches)
    if (wanted !== null) return { kind: 'positions_needed', ...wanted }
    return new Continued<ChainAnswer, ChainCommand>({ kind: 'in_progress', nextBlock: number }, command)
  }
  draft.write(CHAIN, { kind: 'block_completed', number })
  noteMismatches(draft, inputs, number, [...context.mismatches, ...silent])
  return { kind: 'done', nextBlock: number + 1 }
}

/** Records the mismatches and stops their markets until an operator has resolved them. */
function noteMismatches(
  draft: Draft,
  { now }: Inputs,
  block: number,
  mismatches: readonly FoundMismatch[],
): void {
  for (const { marketId, txHash, batchId, part, kind, reason } of mismatches) {
    draft.write(CHAIN, {
      kind: 'settlement_mismatched',
      market_id: marketId,
      block,
      tx_hash: txHash,
      batch_id: batchId,
      part,
      failure_kind: kind,
      failure_reason: reason,
      found_at: now,
    })
    restrictToCancels(draft, marketId, 'mismatch')
  }
}

/** Stops placements and batches of an open market. A stricter mode stays. */
export function restrictToCancels(draft: Draft, marketId: number, why: 'mismatch' | 'reverts'): void {
  if (draft.state.markets.need(String(marketId)).mode !== 'open') return
  draft.write(marketId as Parameters<Draft['write']>[0], {
    kind: 'market_restricted',
    mode: 'cancel_only',
    why,
  })
}

// ---------------------------------------------------------------------- back

function rollBack(rules: ChainRules, draft: Draft, inputs: Inputs, command: RollBackCommand): Step {
  const { above } = command
  const position = positionOf(draft.state)
  if (position === undefined) return { kind: 'done', nextBlock: above + 1 }
  if (above < position.kept_from - 1) {
    if (position.forked_at === null)
      draft.write(CHAIN, { kind: 'chain_halted', forked_at: above, at: inputs.now })
    return { kind: 'fork_too_deep', keptFrom: position.kept_from }
  }
  let accounts = 0
  for (let tip = tipOf(draft.state); tip !== null && tip.number > above; tip = tipOf(draft.state)) {
    const { number, timestamp } = tip
    const facts = draft.state.factsOfBlock.of(String(number)).sort((a, b) => b.log_index - a.log_index)
    if (accounts > 0 && accounts + facts.length > rules.sliceAccounts)
      return new Continued<ChainAnswer, ChainCommand>({ kind: 'in_progress', nextBlock: number }, command)
    for (const fact of facts) {
      if (accounts >= rules.sliceAccounts) {
        if (tip.status !== 'leaving') draft.write(CHAIN, { kind: 'block_leaving', number })
        return new Continued<ChainAnswer, ChainCommand>({ kind: 'in_progress', nextBlock: number }, command)
      }
      accounts += 1 + ('positions' in fact.row ? fact.row.positions.length : 0)
      rollBackFact(draft, fact, timestamp * 1000)
    }
    draft.write(CHAIN, { kind: 'block_left', number, next_block: nextBelow(draft.state, number, position) })
  }
  return { kind: 'done', nextBlock: positionOf(draft.state)?.next_block ?? above + 1 }
}

/** Next block after the newest recorded block below; blocks between are empty. */
function nextBelow(state: ExchangeState, number: number, { kept_from }: ChainPosition): number {
  let next = kept_from
  for (const block of state.blocks.rows()) if (block.number < number) next = Math.max(next, block.number + 1)
  return next
}

// ---------------------------------------------------------------------- confirmed

/** The time comes from the chain. A block is confirmed before its facts are dropped. */
function confirmBlocks(rules: ChainRules, draft: Draft, head: ConfirmCommand): Step {
  const position = positionOf(draft.state)
  const tip = tipOf(draft.state)
  if (position === undefined || tip === null) return { kind: 'done', nextBlock: head.number + 1 }
  const upTo = Math.min(head.number - rules.confirmations, position.next_block - 1)
  const keptFrom = Math.max(position.kept_from, Math.min(upTo, tip.number - rules.depth) + 1)
  const blocks = [...draft.state.blocks.rows()]
    .filter(({ number }) => number > position.confirmed_to && number <= upTo)
    .sort((a, b) => a.number - b.number)
  let confirmed = 0
  for (const { number } of blocks) {
    const facts = draft.state.factsOfBlock.of(String(number)).sort((a, b) => a.log_index - b.log_index)
    if (confirmed > 0 && confirmed + facts.length > rules.sliceAccounts) {
      draft.write(CHAIN, { kind: 'blocks_confirmed', up_to: number - 1, kept_from: position.kept_from })
      return new Continued<ChainAnswer, ChainCommand>(
        { kind: 'in_progress', nextBlock: position.next_block },
        head,
      )
    }
    confirmed += facts.length
    for (const { market_id, row } of facts) {
      if (row.kind !== 'part_settled') continue
      const { batch_id, part, block } = row
      const at = head.timestamp * 1000
      draft.write(market_id as Parameters<Draft['write']>[0], {
        kind: 'part_confirmed',
        batch_id,
        part,
        block,
        at,
      })
    }
  }
  const isForgetting = [...draft.state.blocks.rows()].some(({ number }) => number < keptFrom)
  if (blocks.length > 0 || isForgetting)
    draft.write(CHAIN, {
      kind: 'blocks_confirmed',
      up_to: Math.max(upTo, position.confirmed_to),
      kept_from: keptFrom,
    })
  return { kind: 'done', nextBlock: position.next_block }
}
