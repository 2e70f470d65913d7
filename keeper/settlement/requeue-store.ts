/** Restarts a market's queue behind an action that will not be mined as it was signed, in one transaction. */
import {
  type ActionRow,
  endActions,
  fundingStepOf,
  isSingle,
  loadPending,
  noteFailure,
  partOf,
  requeueActions,
  type SingleRow,
} from '../../db/actions.ts'
import { loadTerms } from '../../db/batches.ts'
import type { Db, Tx } from '../../db/client.ts'
import { checkFence } from '../../db/fence.ts'
import { loadMinedFunding } from '../../db/funding.ts'
import { appendRows, lockShard } from '../../db/journal.ts'
import { resetActionId } from '../../db/markets.ts'
import { loadPositions, minedPosition, setMatchedPositions } from '../../db/positions.ts'
import { recordRevert } from '../../db/relayers.ts'
import { loadChainTerms } from '../../db/terms.ts'
import { fundingAfter } from '../../domain/actions/queue.ts'
import { matchedPosition } from '../../domain/auction/batch-plan.ts'
import { invariant } from '../../domain/invariant.ts'
import type { ActionDropped } from '../../domain/journal/action-rows.ts'
import { marketShard } from '../../domain/journal/journal-row.ts'
import { specAt } from '../../domain/market/changes.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { fromStoredTerms } from '../../domain/market/stored-terms.ts'
import { FLAT, type Position } from '../../domain/positions/position.ts'
import { type PartFill, type QueuedFills, replayParts } from '../../domain/settlement/replay-parts.ts'
import type { FundingIndex, Millis, Steps, Ticks, UserId } from '../../domain/units.ts'
import type { QueueRestart, RequeueStore } from './ports.ts'

/** Notes why single actions end. Returns their journal rows. */
export async function noteDropped(
  tx: Tx,
  actions: readonly SingleRow[],
  reason: string,
  at: Millis,
): Promise<ActionDropped[]> {
  for (const action of actions) await noteFailure(tx, action, reason)
  return actions.map(({ kind, queue_no }) => ({
    kind: 'action_dropped',
    action: kind,
    queue_no,
    reason,
    at,
    rematched: [],
  }))
}

async function drop(tx: Tx, action: ActionRow, { error, at }: QueueRestart): Promise<ActionDropped[]> {
  invariant(isSingle(action), 'a part of a batch is voided with its batch, not dropped')
  const isReverted = action.status !== 'QUEUED'
  await endActions(tx, action.market_id, [action.queue_no], isReverted ? 'REVERTED' : 'VOIDED')
  const rows = await noteDropped(tx, [action], error, at)
  return isReverted ? rows.map((row) => ({ ...row, is_reverted: true })) : rows
}

// ---------------------------------------------------------------------- matched positions

async function queuedFills(
  tx: Tx,
  { market_id, batch_id, part }: { market_id: number; batch_id: number; part: number },
  fundingIndex: FundingIndex,
): Promise<QueuedFills> {
  const { price, oracle, makerFee, takerFee } = await loadTerms(tx, market_id, batch_id)
  const fills = await tx
    .selectFrom('fills')
    .innerJoin('orders', 'orders.order_id', 'fills.order_id')
    .select([
      'fills.user_id',
      'fills.side',
      'fills.steps',
      'fills.taker_steps',
      'orders.price',
      'orders.leverage',
    ])
    .where('fills.market_id', '=', market_id)
    .where('fills.batch_id', '=', batch_id)
    .where('fills.part', '=', part)
    .orderBy('fills.place')
    .execute()
  return {
    terms: { price, oracle: oracle.price, makerFee, takerFee, fundingIndex },
    fills: fills.map(
      ({ user_id, side, steps, taker_steps, price, leverage }): PartFill => ({
        ...{ account: user_id as UserId, side, limit: price as Ticks, leverage },
        ...{ steps: steps as Steps, takerSteps: taker_steps as Steps },
      }),
    ),
  }
}

/** Computes and stores the matched positions of the queued parts on the funding without the dropped action. Null if a part can no longer settle. */
async function rematch(
  tx: Tx,
  spec: MarketSpec,
  actions: readonly ActionRow[],
): Promise<ReadonlyMap<UserId, Position> | null> {
  const chain = fromStoredTerms(await loadChainTerms(tx, spec.marketId), spec)
  let funding = await loadMinedFunding(tx, spec.marketId)
  const parts: QueuedFills[] = []
  for (const action of actions) {
    funding = fundingAfter(funding, [fundingStepOf(action)])
    const part = partOf(action)
    if (part === null) continue
    const fills = await queuedFills(tx, { market_id: spec.marketId, ...part }, funding.index)
    parts.push({ ...fills, spec: specAt(spec, chain, action.as_of as Millis) })
  }
  const accounts = new Set(parts.flatMap(({ fills }) => fills.map(({ account }) => account)))
  const mined = await loadPositions(tx, spec.marketId, accounts, minedPosition)
  const matched = replayParts(spec, parts, (account) => mined.get(account) ?? FLAT)
  if (matched !== null) await setMatchedPositions(tx, spec.marketId, matched)
  return matched
}

// ---------------------------------------------------------------------- restart

export const createRequeueStore = (db: Db): RequeueStore => ({
  restart: (spec, fence, restart) =>
    db.transaction().execute(async (tx) => {
      const { marketId } = spec
      const head = await lockShard(tx, marketShard(marketId))
      await checkFence(tx, fence)
      const actions = await loadPending(tx, marketId)
      const [first] = actions
      if (first?.queue_no !== restart.queueNo) return null
      if (first.nonce !== null) await recordRevert(tx, first.relayer, first.nonce, restart.error)
      const rows = restart.isDropped ? await drop(tx, first, restart) : []
      const rest = restart.isDropped ? actions.slice(1) : actions
      const numbered = rest.filter(({ action_id }) => action_id !== null).map(({ queue_no }) => queue_no)
      await requeueActions(tx, marketId, numbered)
      // Ids are reserved in the order of the queue: those of the first action and of all behind it are free again.
      if (first.action_id !== null) await resetActionId(tx, marketId, first.action_id - 1)
      // Each action truncates the funding of its interval, so a drop of any kind can change the index behind it.
      const rematched = restart.isDropped ? await rematch(tx, spec, rest) : new Map<UserId, Position>()
      const matched = [...(rematched ?? [])]
      const last_action_id = first.action_id === null ? null : first.action_id - 1
      await appendRows(tx, head, [
        ...rows.map((row) => ({
          ...row,
          // The book of a keeper reads the matched positions of these accounts again.
          rematched: matched.map(([account]) => account),
          matched: matched.map(([account, position]) => matchedPosition(account, position)),
        })),
        { kind: 'queue_restarted', requeued: numbered, last_action_id, at: restart.at },
      ])
      return { unsettleableFrom: rematched === null ? (rest[0]?.queue_no ?? null) : null }
    }),
})
