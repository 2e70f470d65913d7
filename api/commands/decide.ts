/** Decides every command of a group: a pure function of the state that was read under the group's locks. */
import type { Millis } from '../../domain/units.ts'
import type { PlacementOutcome } from '../error-catalogue.ts'
import { ApiError, itemError } from '../errors.ts'
import { cancel, cancelAll } from './cancel.ts'
import {
  type Command,
  type CommandReport,
  type Item,
  type ItemResult,
  MarketsMissed,
  reusedRequest,
} from './command.ts'
import { GroupChanges } from './group-changes.ts'
import type { GroupState } from './group-state.ts'
import { type FreshnessLimits, place } from './place.ts'
import { requestKey } from './state-keys.ts'

export type CommandDecision = { readonly result: unknown } | ApiError

export interface GroupDecision {
  readonly changes: GroupChanges
  /** One per command, in the order of the commands; resolved only after the commit. */
  readonly answers: readonly CommandDecision[]
}

/** Decides the commands in sequence; each one sees the changes of those before it. */
export function decide(
  commands: readonly Command[],
  state: GroupState,
  now: Millis,
  ages: FreshnessLimits,
): GroupDecision {
  const changes = new GroupChanges(state)
  return { changes, answers: commands.map((command) => decideOne(command, changes, now, ages)) }
}

/** Returns the result of `work`, or the ApiError that it throws. */
function resultOrError<Value>(work: () => Value): Value | ApiError {
  try {
    return work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

function decideOne(
  command: Command,
  changes: GroupChanges,
  now: Millis,
  ages: FreshnessLimits,
): CommandDecision {
  return resultOrError(
    () => replayStored(command, changes) ?? changes.attempt(() => decideNew(command, changes, now, ages)),
  )
}

/** The answer to a command that was executed before, else null. */
function replayStored({ request, userId, replay }: Command, changes: GroupChanges): CommandDecision | null {
  const known = request && changes.state.requests.get(requestKey(userId, request.id))
  if (!known) return null
  if (!known.digest.equals(request.digest)) throw reusedRequest(request)
  return { result: replay(known.answer, (hash) => changes.state.byHash.get(hash)) }
}

function decideNew(
  command: Command,
  changes: GroupChanges,
  now: Millis,
  ages: FreshnessLimits,
): CommandDecision {
  const { userId, request } = command
  const marketIds = command.markets.map(({ marketId }) => marketId)
  rejectMissedMarkets(command, marketIds, changes)
  const itemResults = command.items.flatMap((item) => {
    const itemResult = resultOrError(() => decideItem(item, command, changes, now, ages))
    return itemResult instanceof ApiError ? [itemResult] : itemResult
  })
  if (command.isAtomic)
    rejectWhole(itemResults.map((itemResult) => withoutRolledBackOrder(itemResult, itemResults)))
  const report: CommandReport = {
    itemResults,
    balance: changes.balance(userId, now),
    read_after: changes.commandBookmark(command, marketIds, now),
  }
  const { result, stored } = command.answer(report)
  if (request !== null && stored !== null) {
    changes.storeRequest({
      user_id: userId,
      client_request_id: request.id,
      digest: request.digest,
      answer: stored,
    })
  }
  return { result }
}

/** A cancel everywhere whose account has live orders in a market that is not locked changes nothing. */
function rejectMissedMarkets(
  { userId, items }: Command,
  marketIds: readonly number[],
  { state }: GroupChanges,
): void {
  if (!items.some((item) => item.kind === 'cancel_all' && item.isEverywhere)) return
  const markets = state.marketsWithOrders.get(userId) ?? []
  if (markets.some((id) => !marketIds.includes(id))) throw new MarketsMissed()
}

function decideItem(
  item: Item,
  command: Command,
  changes: GroupChanges,
  now: Millis,
  ages: FreshnessLimits,
): ItemResult[] {
  const { userId } = command
  switch (item.kind) {
    case 'place':
      return [place(item, userId, changes, now, ages)]
    case 'cancel':
      return [cancel(item, userId, changes, now)]
    case 'cancel_all':
      return cancelAll(
        item,
        { userId, marketIds: command.markets.map(({ marketId }) => marketId) },
        changes,
        now,
      )
    case 'refused':
      return [item.error]
  }
}

/** If the whole command is rolled back, an error must not name an order that the command itself had placed. */
function withoutRolledBackOrder(itemResult: ItemResult, itemResults: readonly ItemResult[]): ItemResult {
  if (!(itemResult instanceof ApiError) || itemResult.context.order_id === undefined) return itemResult
  const { order_id: id, order_hash: _, ...context } = itemResult.context
  const first = itemResults.findIndex(
    (other) =>
      'kind' in other && other.kind === 'placed' && !other.isDuplicate && other.order.order_id === id,
  )
  return first === -1 ? itemResult : new ApiError(itemResult.code, { ...context, same_as: `orders.${first}` })
}

/** If an item is rejected, throws the first error with the errors of all rejected items in it. */
export function rejectWhole(itemResults: readonly unknown[]): void {
  const rejected = itemResults.flatMap((itemResult, index) =>
    itemResult instanceof ApiError ? [{ index, error: itemResult }] : [],
  )
  const [first] = rejected
  if (first === undefined) return
  const { code, context, retryAfter } = first.error
  const errors = rejected.map(({ index, error }) => ({ index, ...itemError(error) }))
  const field =
    context.field === undefined ? `orders.${first.index}` : `orders.${first.index}.${context.field}`
  throw new ApiError(
    code,
    { ...context, field, index: first.index, errors },
    retryAfter,
    outcomeOfAll(rejected.map(({ error }) => error)),
  )
}

/** The outcome of a command that is rejected with these errors of its items. */
function outcomeOfAll(errors: readonly ApiError[]): PlacementOutcome {
  if (errors.some(({ outcome }) => outcome === 'placed' || outcome === 'unknown')) return 'unknown'
  return errors.some(({ outcome }) => outcome === 'not_read') ? 'not_read' : 'not_placed'
}
