/** Decides a command with one or more placements and cancels. */

import { marketShard } from '../../../journal/journal-row.ts'
import type { Json } from '../../../journal/request-rows.ts'
import type { MarketId, Quote } from '../../../units.ts'
import type { Decider } from '../../decide.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import { listedSpec } from '../../market-terms.ts'
import type { ExchangeState } from '../../state.ts'
import { balanceOf } from './balance.ts'
import { cancel, sought } from './cancel.ts'
import {
  type Balance,
  type Bookmark,
  type CommandRefusal,
  type Done,
  type Item,
  type ItemResult,
  type LookAgain,
  MAX_ITEMS,
  type OrdersAnswer,
  type OrdersCommand,
  type RefusedAt,
  type StandingOrder,
} from './command.ts'
import { place } from './place.ts'
import { replace } from './replace.ts'
import { knownRequest, requestRow } from './requests.ts'

export const decideOrders: Decider<OrdersCommand, OrdersAnswer> = (draft, inputs, command) => {
  const { userId, items, request } = command
  const { state } = draft
  if (!state.users.has(userId)) return refusedCommand({ code: 'USER_NOT_FOUND', received: userId })
  if (items.length > MAX_ITEMS)
    return refusedCommand({ code: 'TOO_MANY_ITEMS', received: items.length, most: MAX_ITEMS })
  const known = request === null ? null : knownRequest(state, userId, request)
  if (known !== null) return known
  return draft.attempt(
    () => decideNew(draft, inputs, command),
    ({ kind }) => kind === 'done',
  )
}

const refusedCommand = (refusal: CommandRefusal): OrdersAnswer => ({ kind: 'refused', refusal })

function decideNew(draft: Draft, inputs: Inputs, command: OrdersCommand): OrdersAnswer {
  const { userId, items, request, isAtomic } = command
  const before = balanceOf(draft.state, userId, inputs.now)
  const marketIds = marketsOf(draft.state, command)
  const results: ItemResult[] = []
  for (const item of items) {
    const result = decideItem(draft, inputs, command, item)
    if (result.kind === 'look_again') return result
    results.push(result)
  }
  const refused = isAtomic ? refusedItems(results) : []
  if (refused.length > 0) return refusedCommand({ code: 'ITEMS_REFUSED', items: refused })
  const done: Done = {
    kind: 'done',
    results,
    balance: { ...before, reserved: reservedAfter(draft, before, command, results) },
    readAfter: commandBookmark(draft, { userId, marketIds, now: inputs.now }),
  }
  if (request !== null) draft.write(ACCOUNTS, requestRow(userId, request, done, inputs.now))
  return done
}

function decideItem(
  draft: Draft,
  inputs: Inputs,
  { userId }: OrdersCommand,
  item: Item,
): ItemResult | LookAgain {
  switch (item.kind) {
    case 'place':
      return place(draft, inputs, userId, item)
    case 'replace':
      return replace(draft, inputs, userId, item)
    case 'cancel':
      return cancel(draft, item, { userId, now: inputs.now })
    case 'refused':
      return { kind: 'refused', refusal: { code: 'FROM_API', refusal: item.refusal as Json } }
    case 'answered':
      return item
  }
}

/** Known markets of all items, ascending. */
function marketsOf(state: ExchangeState, { items, userId }: OrdersCommand): readonly MarketId[] {
  const ids = items.flatMap((item): MarketId[] => {
    if (item.kind === 'refused' || item.kind === 'answered') return []
    if (item.kind === 'place' || item.kind === 'replace')
      return listedSpec(state, item.order.marketId) === undefined ? [] : [item.order.marketId]
    const order = sought(state, item.target, userId)
    if (order !== undefined) return [order.marketId]
    const ended = 'hash' in item.target ? item.target.ended : null
    return ended !== null && 'found' in ended ? [ended.found.marketId] : []
  })
  return ids.length < 2 ? ids : [...new Set(ids)].sort((a, b) => a - b)
}

/**
 * The account's reservations after the command. For a single result, the value is computed without applying its row.
 */
function reservedAfter(
  draft: Draft,
  before: Balance,
  { userId }: OrdersCommand,
  results: readonly ItemResult[],
): Quote {
  const [only] = results
  if (results.length !== 1 || only === undefined) return draft.state.accounts.need(userId).reserved
  if (only.kind === 'placed' && !only.isDuplicate)
    return (before.reserved + only.facts.order.reserved - (only.replaced?.released ?? 0n)) as Quote
  return only.kind === 'cancelled' ? ((before.reserved - only.released) as Quote) : before.reserved
}

/**
 * Bookmark of a command: its only journal, or a `command_spanned` row of the accounts that covers several journals.
 */
export function commandBookmark(draft: Draft, { userId, marketIds, now }: SpannedCommand): Bookmark {
  const heads = marketIds.map((marketId) => ({ marketId, seq: draft.lastSeq(marketId) }))
  const [only] = heads
  if (heads.length === 1 && only !== undefined) return only
  if (heads.length === 0) return { marketId: ACCOUNTS, seq: draft.lastSeq(ACCOUNTS) }
  const shards = Object.fromEntries(heads.map(({ marketId, seq }) => [marketShard(marketId), seq]))
  const seq = draft.write(ACCOUNTS, { kind: 'command_spanned', user_id: userId, shards, at: now })
  return { marketId: ACCOUNTS, seq }
}

export interface SpannedCommand extends Pick<OrdersCommand, 'userId'> {
  readonly marketIds: readonly MarketId[]
  readonly now: Inputs['now']
}

/**
 * Refused items of an atomic command. The command has no effect, so no refusal may name an order that it had placed.
 */
function refusedItems(results: readonly ItemResult[]): RefusedAt[] {
  const placedAt = new Map<string, number>()
  for (const [index, result] of results.entries())
    if (result.kind === 'placed' && !result.isDuplicate) placedAt.set(result.facts.signature.hash, index)
  return results.flatMap((result, index): RefusedAt[] => {
    if (result.kind !== 'refused') return []
    const { refusal } = result
    if (!('order' in refusal)) return [{ index, refusal }]
    return [{ index, refusal: { ...refusal, order: withoutOwn(refusal.order, placedAt) } }]
  })
}

function withoutOwn(order: StandingOrder, placedAt: ReadonlyMap<string, number>): StandingOrder {
  const sameAs = 'hash' in order ? placedAt.get(order.hash) : undefined
  return sameAs === undefined ? order : { sameAs }
}
