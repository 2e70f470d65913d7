/** What becomes of each command of a group: pure, on the state that the group's locks hold still. */
import type { Millis } from '../../domain/units.ts'
import { ApiError, itemError } from '../errors.ts'
import { cancel, cancelAll } from './cancel.ts'
import { type Command, type CommandResult, type Item, type Report, reused } from './command.ts'
import { GroupChanges } from './group-changes.ts'
import { type GroupState, requestKey } from './group-state.ts'
import { type Ages, place } from './place.ts'

export type Decided = { readonly result: unknown } | ApiError

export interface Decision {
  readonly draft: GroupChanges
  /** One per command, in their order; given only after the commit. */
  readonly answers: readonly Decided[]
}

/** Commands are taken in turn, and each sees what those before it have done. */
export function decide(commands: readonly Command[], state: GroupState, now: Millis, ages: Ages): Decision {
  const draft = new GroupChanges(state)
  return { draft, answers: commands.map((command) => decideOne(command, draft, now, ages)) }
}

/** Runs `work`, and gives the refusal that it ends with. */
function orRefusal<Value>(work: () => Value): Value | ApiError {
  try {
    return work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

function decideOne(command: Command, draft: GroupChanges, now: Millis, ages: Ages): Decided {
  return orRefusal(() => again(command, draft) ?? draft.attempt(() => anew(command, draft, now, ages)))
}

/** The answer to a command that has been done before. */
function again({ request, userId, replay }: Command, draft: GroupChanges): Decided | null {
  const known = request && draft.state.requests.get(requestKey(userId, request.id))
  if (!known) return null
  if (!known.digest.equals(request.digest)) throw reused(request)
  return { result: replay(known.answer, (hash) => draft.state.byHash.get(hash)) }
}

function anew(command: Command, draft: GroupChanges, now: Millis, ages: Ages): Decided {
  const { userId, request } = command
  const marketIds = command.markets.map(({ marketId }) => marketId)
  const outcomes = command.items.flatMap((item) => {
    const outcome = orRefusal(() => decideItem(item, command, draft, now, ages))
    return outcome instanceof ApiError ? [outcome] : outcome
  })
  if (command.isAtomic) refuseWhole(outcomes.map((outcome) => withoutTakenBack(outcome, outcomes)))
  const report: Report = {
    outcomes,
    balance: draft.funds(userId),
    read_after: draft.commandBookmark(userId, marketIds, now),
  }
  const { result, kept } = command.answer(report)
  if (request !== null && kept !== null) {
    draft.keep({ user_id: userId, client_request_id: request.id, digest: request.digest, answer: kept })
  }
  return { result }
}

function decideItem(
  item: Item,
  command: Command,
  draft: GroupChanges,
  now: Millis,
  ages: Ages,
): CommandResult[] {
  const { userId } = command
  switch (item.kind) {
    case 'place':
      return [place(item, userId, draft, now, ages)]
    case 'cancel':
      return [cancel(item, userId, draft, now)]
    case 'cancel_all':
      return cancelAll(
        item,
        { userId, marketIds: command.markets.map(({ marketId }) => marketId) },
        draft,
        now,
      )
    case 'refused':
      return [item.error]
  }
}

/** A refusal must not name an order that the command itself has placed, if the whole command is taken back. */
function withoutTakenBack(outcome: CommandResult, outcomes: readonly CommandResult[]): CommandResult {
  if (!(outcome instanceof ApiError) || outcome.context.order_id === undefined) return outcome
  const { order_id: id, order_hash: _, ...context } = outcome.context
  const first = outcomes.findIndex(
    (other) =>
      'kind' in other && other.kind === 'placed' && !other.isDuplicate && other.order.order_id === id,
  )
  return first === -1 ? outcome : new ApiError(outcome.code, { ...context, same_as: `orders.${first}` })
}

/** Throws where an item is refused: the first refusal, and all of them in it. */
export function refuseWhole(outcomes: readonly unknown[]): void {
  const refusals = outcomes.flatMap((outcome, index) =>
    outcome instanceof ApiError ? [{ index, error: outcome }] : [],
  )
  const [first] = refusals
  if (first === undefined) return
  const { code, context, retryAfter } = first.error
  const errors = refusals.map(({ index, error }) => ({ index, ...itemError(error) }))
  const field =
    context.field === undefined ? `orders.${first.index}` : `orders.${first.index}.${context.field}`
  throw new ApiError(code, { ...context, field, index: first.index, errors }, retryAfter)
}
