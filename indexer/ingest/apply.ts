/** Applies facts of one block to the write side. The caller's transaction holds the lock of the chain's progress. */
import type { Tx } from '../../db/client.ts'
import { recordFunding } from '../../db/funding.ts'
import { createUsers } from '../../db/users.ts'
import {
  accountsOfAll,
  isSingleFact,
  makersOf,
  moves,
  type PositionMoveFact,
  type SingleFact,
} from '../../domain/chain/fact-accounts.ts'
import type { LedgerMoved, PartMined } from '../../domain/chain/facts.ts'
import type { BalanceChanged } from '../../domain/journal/accounts-row.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { FLAT } from '../../domain/positions/position.ts'
import { type Mismatch, NO_EVENTS } from '../../domain/settlement/receipt.ts'
import { reconcile } from '../../domain/settlement/reconcile.ts'
import {
  type MinedAt,
  type Movement,
  movementOf,
  settlePart,
  unmatchedMakers,
} from '../../domain/settlement/settle-part.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { Chain, ChainBlock, ChainLog } from '../ports.ts'
import { endAdjustment, failUndecodable } from './adjustments.ts'
import { applyParts, type LoggedPart, partMinedAt } from './apply-parts.ts'
import { applyBackstop, applyBankPause, isBackstopChange } from './backstop-and-pause.ts'
import { cancelSalts, cancelUncovered } from './cancel-orders.ts'
import type { BlockFact } from './fact-locks.ts'
import { writeLedger } from './ledger.ts'
import type { LockedOrders } from './lock-orders.ts'
import type { LockedShards, RowPlace } from './locked-shards.ts'
import { fixHaircut, reportFinalPrice } from './market-endings.ts'
import { applyEnding, applyTerms } from './market-terms.ts'
import { applyMove } from './move-positions.ts'
import { applyForwardRequest, applyMarginNonces } from './relays.ts'
import { updateSessionKey } from './session-keys.ts'
import { loadMoved } from './settling-orders.ts'
import { applySingle, mineAction, minedFunding } from './single-actions.ts'
import { StepAccounts } from './step-accounts.ts'
import { expectationOf, loadPart, writePart } from './write-part.ts'

export interface SettlementMismatch extends Mismatch {
  readonly marketId: number
  readonly txHash: string
  readonly batchId: number | null
  readonly part: number | null
}

export interface AppliedFacts {
  /** Of each fact, in order. */
  readonly places: readonly (RowPlace | null)[]
  readonly mismatches: readonly SettlementMismatch[]
}

/** Shared by the facts of one step. */
interface Context {
  readonly tx: Tx
  readonly block: ChainBlock
  /** Of the whole block. */
  readonly facts: readonly BlockFact[]
  readonly chain: Pick<Chain, 'position'>
  readonly shards: LockedShards
  readonly users: ReadonlyMap<Address, number>
  readonly accounts: StepAccounts
  readonly mismatches: SettlementMismatch[]
}

/** Creates the users of the accounts that have none. The caller has locked `accounts` if there is one. */
export async function createNewcomers(
  tx: Tx,
  facts: readonly BlockFact[],
  { shards, users: known }: Pick<LockedOrders, 'shards' | 'users'>,
  block: Pick<ChainBlock, 'timestamp'>,
): Promise<Map<Address, number>> {
  const newcomers = accountsOfAll(facts).filter((address) => !known.has(address))
  const created = await createUsers(tx, newcomers, block.timestamp * 1000)
  for (const row of created.rows) shards.append(ACCOUNTS_SHARD, row)
  return new Map([...known, ...created.users])
}

export interface Applying {
  readonly chain: Pick<Chain, 'position'>
  /** What `lockFacts` has locked for the facts. */
  readonly locked: LockedOrders
  /** All facts of the block, where only some are applied. */
  readonly blockFacts?: readonly BlockFact[]
}

/** Applies facts of one block, in their order. */
export async function applyFacts(
  tx: Tx,
  block: ChainBlock,
  facts: readonly BlockFact[],
  { chain, locked, blockFacts = facts }: Applying,
): Promise<AppliedFacts> {
  const { shards } = locked
  const users = await createNewcomers(tx, facts, locked, block)
  const accounts = new StepAccounts(tx, users.values(), { isLocked: locked.areAccountsLocked })
  if (!facts.every(isJoined)) await accounts.lock()
  const context: Context = { tx, block, facts: blockFacts, chain, shards, users, accounts, mismatches: [] }
  const places: (RowPlace | null)[] = []
  for (const group of groupsOf(facts)) places.push(...(await applyGroup(context, group)))
  await shards.write(tx)
  await accounts.write()
  return { places, mismatches: context.mismatches }
}

const isPart = (logged: BlockFact): logged is LoggedPart => logged.fact.kind === 'part_mined'

/** Parts are applied together, also with ignored facts between them. */
const isJoined = (logged: BlockFact): boolean => isPart(logged) || logged.fact.kind === 'ignored'

/** Facts in order: parts with the ignored facts between them, and every other fact alone. */
function groupsOf(facts: readonly BlockFact[]): BlockFact[][] {
  const groups: BlockFact[][] = []
  for (const logged of facts) {
    const last = groups.at(-1)
    if (isJoined(logged) && last?.some(isPart)) last.push(logged)
    else groups.push([logged])
  }
  return groups
}

async function applyGroup(context: Context, group: readonly BlockFact[]): Promise<(RowPlace | null)[]> {
  const parts = group.filter(isPart)
  const [first] = group
  if (parts.length === 0 && first !== undefined) {
    const place = await applyFact(context, first)
    await applyFunding(context.tx, first)
    return [place]
  }
  const places = await applyParts(context, parts, async (part) => {
    await context.accounts.lock()
    const place = await applyPart(context, part.fact, part.log)
    await applyFunding(context.tx, part)
    return place
  })
  const placeOf = new Map(parts.map((part, at) => [part as BlockFact, places[at] as RowPlace]))
  return group.map((logged) => placeOf.get(logged) ?? null)
}

async function applyFact(context: Context, { fact, log }: BlockFact): Promise<RowPlace | null> {
  const { block } = context
  if (moves(fact)) return applyMoving(context, fact, log)
  if (isSingleFact(fact)) return applyAction(context, fact, log)
  switch (fact.kind) {
    case 'ledger_moved':
      return applyLedger(context, fact, log)
    case 'salts_cancelled':
      await cancelSalts({ ...context, at: block.timestamp * 1000 }, fact, context.users.get(fact.maker))
      return null
    case 'session_key_updated':
      return updateSessionKey({ ...context, at: block.timestamp * 1000 }, fact, log)
    case 'forward_request_executed':
      return applyForwardRequest({ ...context, mined: minedAt(context, log) }, fact)
    case 'margin_nonces_invalidated':
      return applyMarginNonces({ ...context, mined: minedAt(context, log) }, fact)
    case 'ending_changed':
      return (fact.report === undefined ? applyEnding : reportFinalPrice)(
        { ...context, mined: minedAt(context, log) },
        fact,
      )
    case 'haircut_fixed':
      return fixHaircut({ ...context, mined: minedAt(context, log) }, fact)
    case 'terms_changed':
      if (isBackstopChange(fact)) return applyBackstop({ ...context, mined: minedAt(context, log) }, fact)
      return applyTerms({ ...context, mined: minedAt(context, log) }, fact, {
        ...{ log, facts: context.facts, blockTime: (block.timestamp * 1000) as Millis },
      })
    case 'bank_pause_changed':
      return applyBankPause({ ...context, mined: minedAt(context, log) }, fact)
    case 'undecodable':
      return noteUndecodable(context, fact.spec?.marketId ?? null, fact.problem, log)
    default:
      return null
  }
}

async function applyLedger(context: Context, fact: LedgerMoved, log: ChainLog): Promise<RowPlace> {
  const { tx, block, shards, users } = context
  const row: BalanceChanged = {
    kind: 'balance_changed',
    cause: fact.cause,
    rollback: false,
    user_id: users.get(fact.account) as number,
    free_delta: fact.freeDelta.toString(),
    pending_withdrawal_delta: fact.pendingDelta.toString(),
    block: block.number,
    tx_hash: log.txHash,
    log_index: log.logIndex,
    at: block.timestamp * 1000,
  }
  await writeLedger(tx, row)
  if (fact.cause === 'withdrawal_request') await cancelUncovered({ ...context, at: row.at }, row.user_id)
  return shards.append(ACCOUNTS_SHARD, row)
}

async function applyFunding(tx: Tx, { fact }: BlockFact): Promise<void> {
  const funding = minedFunding(fact)
  if (funding !== null && 'spec' in fact && fact.spec) {
    await recordFunding(tx, [{ marketId: fact.spec.marketId, funding }])
  }
}

const minedAt = ({ block }: Context, log: ChainLog): MinedAt => ({
  block: block.number,
  tx_hash: log.txHash,
  log_index: log.logIndex,
  at: block.timestamp * 1000,
})

async function applyMoving(context: Context, fact: PositionMoveFact, log: ChainLog): Promise<RowPlace> {
  const { place, failure } = await applyMove(context, fact, minedAt(context, log))
  const own = await endOwn(context, fact, log, failure === null)
  const reason = 'the positions do not follow from what the log says'
  const found = own === undefined && failure !== null ? { kind: failure, reason } : own
  if (found) context.mismatches.push({ ...found, ...placeOf(fact.spec, log) })
  return place
}

/** Ends what this exchange has sent. Returns its first mismatch; undefined if it has not sent the transaction. */
async function endOwn(
  { tx, shards, users, facts, block }: Context,
  fact: PositionMoveFact,
  log: ChainLog,
  movesPositions: boolean,
): Promise<Mismatch | null | undefined> {
  switch (fact.kind) {
    case 'position_inherited':
    case 'positions_deleveraged':
      return mineAction({ tx, shards }, fact, movesPositions)
    case 'position_adjusted': {
      const userId = users.get(fact.event.account) as number
      return endAdjustment({ tx, shards, at: block.timestamp * 1000, userId }, fact, {
        log,
        facts,
        movesPositions,
      })
    }
    default:
      return undefined
  }
}

async function applyAction(context: Context, fact: SingleFact, log: ChainLog): Promise<RowPlace> {
  const { tx, shards, mismatches } = context
  const found = await mineAction({ tx, shards }, fact, true)
  if (found) mismatches.push({ ...found, ...placeOf(fact.spec, log) })
  const row = await applySingle(tx, fact, minedAt(context, log))
  return shards.append(marketShard(fact.spec.marketId), row)
}

/** Where a mismatch occurred that is not of a batch. */
const placeOf = ({ marketId }: MarketSpec, log: ChainLog) => ({
  marketId,
  txHash: log.txHash,
  batchId: null,
  part: null,
})

async function applyPart(context: Context, { spec, settled }: PartMined, log: ChainLog): Promise<RowPlace> {
  const { tx, block, shards, mismatches } = context
  const { marketId } = spec
  const makers = new Set(settled.fills.map(({ maker }) => maker))
  const users = new Map([...context.users].filter(([address]) => makers.has(address)))
  const state = await loadPart(tx, marketId, settled, users)
  const movement = movementOf(spec, settled, state.positions)
  const expectation = await expectationOf(tx, marketId, settled, state.fills)
  const verdict = reconcile({ ...NO_EVENTS, settled, movesPositions: movement !== null }, expectation)
  if (!verdict.ok) {
    const { batchId, part } = settled
    mismatches.push({ ...verdict.refusal, marketId, txHash: log.txHash, batchId, part })
  }
  const mined = partMinedAt(block, { settled }, log)
  const moved = movement ?? (await movementOnChain(context, { spec, settled, kind: 'part_mined' }))
  const unmatched = [...unmatchedMakers(settled, state.fills)]
  const moving = unmatched.map(
    (maker) => [users.get(maker) as number, moved.positions.get(maker) ?? FLAT] as const,
  )
  const closing = await loadMoved(tx, marketId, new Map(moving), { part: settled, asOf: settled.asOf })
  const { row, orders } = settlePart(marketId, settled, moved, { ...state, ...closing }, mined)
  await writePart(tx, marketId, row, orders)
  return shards.append(marketShard(marketId), row)
}

/** The positions after the block, read from the contract: used if the domain's rules do not explain what the chain did. */
async function movementOnChain({ chain, block }: Context, fact: PartMined): Promise<Movement> {
  const makers = [...new Set(makersOf(fact))]
  const positions = await Promise.all(
    makers.map(
      async (maker) => [maker, await chain.position(fact.spec.trader, maker, block.number)] as const,
    ),
  )
  return { positions: new Map(positions), realised: [] }
}

async function noteUndecodable(
  context: Context,
  marketId: number | null,
  problem: string,
  { txHash }: ChainLog,
): Promise<RowPlace | null> {
  if (marketId === null) return null
  const verdict = reconcile({ ...NO_EVENTS, undecodable: problem }, null)
  if (verdict.ok) return null
  context.mismatches.push({ ...verdict.refusal, marketId, txHash, batchId: null, part: null })
  const ending = { ...context, at: context.block.timestamp * 1000 }
  return failUndecodable(ending, { marketId, txHash }, verdict.refusal)
}
