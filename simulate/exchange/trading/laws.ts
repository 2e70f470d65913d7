/** The laws of the engine, for commands of traders on the exchange's own state. */
import type { Entry } from '../../../domain/exchange/apply.ts'
import type {
  Done,
  Item,
  OrdersCommand,
  PlaceItem,
  ReplaceItem,
} from '../../../domain/exchange/decide/orders/command.ts'
import { violations } from '../../../domain/exchange/laws.ts'
import type { ExchangeState } from '../../../domain/exchange/state.ts'
import type { OrderEnded, OrderEnding, OrderPlaced } from '../../../domain/journal/journal-row.ts'
import { isTerminal } from '../../../domain/orders/order-state.ts'
import type { ExchangeAnswer, ExchangeCommand } from '../../../keeper/engine/commands.ts'
import type { Group } from '../../../keeper/engine/ports.ts'
import { MOST_REPORTED, oneOwner } from '../group-laws.ts'
import type { Observed } from '../scenario.ts'
import { type Heads, ordersAnswer, type TradingAttempt } from './crowd.ts'
import { ACCOUNT_IDS, genesis } from './genesis.ts'

/** Groups between two checks of the whole state. */
const CHECKED_GROUPS = 25

export function checkLaws(
  { groups, attempts, faults, neverAnswered }: Observed<ExchangeCommand, Entry, ExchangeAnswer>,
  knownAt: (command: ExchangeCommand) => Heads,
): string[] {
  const rows = groups.flatMap((group) => group.rows)
  const found = [
    ...oneOwner(groups),
    ...sameDigest(groups),
    ...acknowledged(rows, attempts),
    ...refusedIsNothing(rows, attempts),
    ...allOrNothing(rows, attempts),
    ...executedOnce(rows, attempts),
    ...freshAnswers(attempts, knownAt),
    ...forwardInTime(rows),
    ...replacedAsOne(rows),
    ...flagsApplied(rows),
    ...reducedWithin(rows),
    ...neverAnswered.map((command) => `bounded: ${command.kind} was never answered`),
    ...faults.map((fault) => `recovery: ${fault}`),
  ]
  return found.slice(0, MOST_REPORTED)
}

/** A fold of the journal has the owner's digests, and the laws of the state hold in it. */
function sameDigest(groups: readonly Group<Entry>[]): string[] {
  const applied = genesis()
  for (const { number, rows, digest } of groups) {
    try {
      for (const row of rows) applied.apply(row)
    } catch (error) {
      return [`recovery: group ${number}: ${error instanceof Error ? error.message : error}`]
    }
    applied.forget(applied.position())
    if (applied.digest() !== digest) return [`same-digest: group ${number}`]
    if (number % CHECKED_GROUPS !== 0 && number !== groups.length) continue
    const broken = violations(applied.state).map((text) => `reservations: group ${number}: ${text}`)
    const overdrawn = ACCOUNT_IDS.filter((id) => {
      const { free, reserved } = applied.state.accounts.need(id)
      return reserved > free || reserved < 0n
    }).map((id) => `reservations: group ${number}: account ${id} reserves more than it has`)
    const found = [
      ...broken,
      ...overdrawn,
      ...sharedNames(applied.state),
      ...lostInIndex(applied.state),
      ...matchedOtherwise(applied.state),
    ]
    if (found.length > 0) return found
  }
  return []
}

/** No two live orders of an account have one label, and no two orders of a market one salt of the account. */
function sharedNames({ orders, signatures }: ExchangeState): string[] {
  const names = [...orders.rows()].flatMap(({ marketId, accepted, account, salt, status, labelHash }) => {
    const { clientOrderId } = signatures.need(marketId, accepted)
    const own = [`salt ${marketId}/${account}/${salt}`]
    return clientOrderId === null || labelHash === 0 || isTerminal(status)
      ? own
      : [...own, `label ${account}/${clientOrderId}`]
  })
  const seen = new Set<string>()
  return names
    .filter((name) => seen.has(name) || !seen.add(name))
    .map((name) => `unique-names: two orders have the ${name}`)
}

/** No fill is mined in a run, so that a matched position is the sum of its account's fills. */
function matchedOtherwise({ fills, positions }: ExchangeState): string[] {
  const sums = new Map<string, number>()
  for (const { marketId, account, side, steps } of fills.rows()) {
    const key = `${marketId}/${account}`
    sums.set(key, (sums.get(key) ?? 0) + (side === 'LONG' ? steps : -steps))
  }
  for (const { marketId, userId, matchedSize } of positions.rows()) {
    const key = `${marketId}/${userId}`
    sums.set(key, (sums.get(key) ?? 0) - matchedSize)
  }
  return [...sums]
    .filter(([, difference]) => difference !== 0)
    .map(([key, difference]) => `matched: position ${key} differs from its fills by ${difference}`)
}

/** Every order is found by its hash, every live one by its label, and no ended one by its label. */
function lostInIndex({ orders, signatures, orderIndex }: ExchangeState): string[] {
  return [...orders.rows()].flatMap(({ marketId, accepted, account, status, labelHash }) => {
    const { hash, clientOrderId } = signatures.need(marketId, accepted)
    const isFound = orderIndex.withHash(hash)?.accepted === accepted
    const labelled = clientOrderId === null ? undefined : orderIndex.liveWithLabel(account, clientOrderId)
    const isListed = labelled?.accepted === accepted && labelled.marketId === marketId
    // The label of a replaced order has moved to its successor, also while the order settles.
    const hasLabel = clientOrderId !== null && labelHash !== 0
    const isRight = clientOrderId === null || isListed === (hasLabel && !isTerminal(status))
    return isFound && isRight ? [] : [`index: order ${hash} is found otherwise than the table has it`]
  })
}

const ordersCommand = ({ command }: TradingAttempt): OrdersCommand | null =>
  command.kind === 'orders' ? command : null

const isNewOrder = (item: Item): item is PlaceItem | ReplaceItem =>
  item.kind === 'place' || item.kind === 'replace'

const placementsOf = (command: OrdersCommand): (PlaceItem | ReplaceItem)[] => command.items.filter(isNewOrder)

function placedRows(rows: readonly Entry[]): Map<string, (Entry & { readonly row: OrderPlaced })[]> {
  const placed = rows.filter(
    (entry): entry is Entry & { readonly row: OrderPlaced } => entry.row.kind === 'order_placed',
  )
  return Map.groupBy(placed, ({ row }) => row.hash)
}

function doneOf(attempt: TradingAttempt): Done | null {
  const answer = ordersAnswer(attempt)
  return answer?.kind === 'done' ? answer : null
}

/** Every answered placement and cancel is in the journal once, as it was answered. */
function acknowledged(rows: readonly Entry[], attempts: readonly TradingAttempt[]): string[] {
  const placed = placedRows(rows)
  const ended = new Set(
    rows.flatMap(({ row }) =>
      row.kind === 'order_ended' || row.kind === 'order_ending' ? [row.order_id] : [],
    ),
  )
  const doubled = [...placed]
    .filter(([, own]) => own.length > 1)
    .map(([hash, own]) => `acknowledged: order ${hash} was placed ${own.length} times`)
  const lost = attempts.flatMap((attempt) =>
    (doneOf(attempt)?.results ?? []).flatMap((result): string[] => {
      if (result.kind === 'placed') {
        const { hash } = result.facts.signature
        const own = placed.get(hash)?.[0]
        if (own === undefined) return [`acknowledged: placement of ${hash} is not in the journal`]
        const { order } = result.facts
        const { readAfter } = result
        const isCovered = readAfter.marketId === order.marketId && readAfter.seq >= own.seq
        const isSame = own.seq === order.accepted && own.row.quantity === order.quantity
        return isSame && isCovered ? [] : [`acknowledged: placement of ${hash} differs from the journal`]
      }
      // Orders that a batch has ended have no row of their own: a repeated cancel finds them.
      if (result.kind !== 'cancelled' || !result.cancelled || result.isDuplicate) return []
      if (result.facts === null) return []
      const { marketId, accepted } = result.facts.order
      return ended.has(`${marketId}-${accepted}`)
        ? []
        : [`acknowledged: cancel of ${result.hash} is not in the journal`]
    }),
  )
  return [...doubled, ...lost]
}

/** An order all of whose sendings were refused, or not executed, is in no row. */
function refusedIsNothing(rows: readonly Entry[], attempts: readonly TradingAttempt[]): string[] {
  const placed = placedRows(rows)
  const mayBePlaced = new Set<string>()
  const sent = new Set<string>()
  for (const attempt of attempts) {
    const command = ordersCommand(attempt)
    if (command === null) continue
    for (const [at, item] of command.items.entries()) {
      if (!isNewOrder(item)) continue
      sent.add(item.order.hash)
      const { reply } = attempt
      const answer = ordersAnswer(attempt)
      const isRefused =
        answer === null
          ? reply !== null && 'none' in reply && reply.none !== 'unknown'
          : answer.kind === 'refused' || (answer.kind === 'done' && answer.results[at]?.kind === 'refused')
      if (!isRefused) mayBePlaced.add(item.order.hash)
    }
  }
  return [...sent]
    .filter((hash) => !mayBePlaced.has(hash) && placed.has(hash))
    .map((hash) => `refused-is-nothing: order ${hash} was refused and is in the journal`)
}

/** Placements of an atomic command are all in the journal, or none is. */
function allOrNothing(rows: readonly Entry[], attempts: readonly TradingAttempt[]): string[] {
  const placed = placedRows(rows)
  return attempts.flatMap((attempt) => {
    const command = ordersCommand(attempt)
    if (command === null || !command.isAtomic) return []
    const hashes = placementsOf(command).map(({ order }) => order.hash)
    const count = hashes.filter((hash) => placed.has(hash)).length
    return count === 0 || count === hashes.length
      ? []
      : [`all-or-nothing: ${count} of ${hashes.length} placements: ${hashes[0]}`]
  })
}

/** A command with an id is executed once, and its repetitions say so. */
function executedOnce(rows: readonly Entry[], attempts: readonly TradingAttempt[]): string[] {
  const stored = rows.flatMap(({ row }) => (row.kind === 'request_completed' ? [row.client_request_id] : []))
  const done = attempts.flatMap((attempt) => {
    const id = ordersCommand(attempt)?.request?.id
    return id !== undefined && doneOf(attempt) !== null ? [id] : []
  })
  const repeated = (ids: readonly string[]): string[] => ids.filter((id, at) => ids.indexOf(id) !== at)
  const unstored = new Set(done)
  for (const id of stored) unstored.delete(id)
  return [
    ...repeated(stored).map((id) => `executed-once: request ${id} has two results`),
    ...repeated(done).map((id) => `executed-once: request ${id} was executed twice`),
    ...[...unstored].map((id) => `executed-once: the result of request ${id} is not stored`),
  ]
}

/** No answer is older than what some client had seen when its command was sent. */
function freshAnswers(
  attempts: readonly TradingAttempt[],
  knownAt: (command: ExchangeCommand) => Heads,
): string[] {
  return attempts.flatMap((attempt) => {
    const done = doneOf(attempt)
    if (done === null) return []
    const { marketId, seq } = done.readAfter
    const known = knownAt(attempt.command).get(marketId) ?? 0
    return seq >= known ? [] : [`fresh-answers: sequence ${seq} of market ${marketId} after ${known}`]
  })
}

/** A replaced order and its successor are neighbours in the journal, and neither is there without the other. */
function replacedAsOne(rows: readonly Entry[]): string[] {
  const byPlace = new Map(rows.map((entry) => [`${entry.shard}/${entry.seq}`, entry.row]))
  return rows.flatMap(({ shard, seq, row }): string[] => {
    if (row.kind === 'order_placed' && row.replaces !== undefined) {
      const before = byPlace.get(`${shard}/${seq - 1}`)
      return isReplacedEnd(before) && before.order_id === row.replaces
        ? []
        : [`replaced-as-one: order ${row.order_id} has no row of ${row.replaces} before it`]
    }
    if (!isReplacedEnd(row)) return []
    const next = byPlace.get(`${shard}/${seq + 1}`)
    return next?.kind === 'order_placed' && next.replaces === row.order_id
      ? []
      : [`replaced-as-one: order ${row.order_id} was replaced by none`]
  })
}

const isReplacedEnd = (row: Entry['row'] | undefined): row is OrderEnded | OrderEnding =>
  (row?.kind === 'order_ended' || row?.kind === 'order_ending') && row.reason === 'REPLACED'

/** A post-only order pays the taker rate in no fill, and an `ioc` order fills in one batch at most. */
function flagsApplied(rows: readonly Entry[]): string[] {
  const placed = new Map(
    rows.flatMap(({ row }) => (row.kind === 'order_placed' ? [[row.order_id, row] as const] : [])),
  )
  const batches = new Map<string, number>()
  return rows.flatMap(({ row }) => {
    if (row.kind !== 'batch_cleared') return []
    return row.fills.flatMap(({ order_id, taker_steps }): string[] => {
      const order = placed.get(order_id)
      const earlier = batches.get(order_id) ?? row.batch_id
      batches.set(order_id, earlier)
      if (order?.post_only && taker_steps > 0) return [`flags-applied: post-only order ${order_id} takes`]
      return order?.time_in_force === 'ioc' && earlier !== row.batch_id
        ? [`flags-applied: ioc order ${order_id} is in batches ${earlier} and ${row.batch_id}`]
        : []
    })
  })
}

/** Reduce-only orders of an account fill at most its matched position in a batch. No fill is mined or voided in a run. */
function reducedWithin(rows: readonly Entry[]): string[] {
  const reduceOnly = new Set(
    rows.flatMap(({ row }) => (row.kind === 'order_placed' && row.reduce_only ? [row.order_id] : [])),
  )
  const sizes = new Map<string, number>()
  return rows.flatMap(({ shard, row }) => {
    if (row.kind !== 'batch_cleared') return []
    const left = new Map<string, number>()
    for (const { order_id, user_id, side, steps } of row.fills) {
      if (!reduceOnly.has(order_id)) continue
      const key = `${shard}/${user_id}`
      const reducible = (side === 'LONG' ? -1 : 1) * (sizes.get(key) ?? 0)
      left.set(key, (left.get(key) ?? Math.max(0, reducible)) - steps)
    }
    for (const { user_id, size } of row.matched ?? []) sizes.set(`${shard}/${user_id}`, size)
    return [...left]
      .filter(([, steps]) => steps < 0)
      .map(([key, steps]) => `reduced-within: batch ${row.batch_id} reduces ${key} by ${-steps} too much`)
  })
}

function forwardInTime(rows: readonly Entry[]): string[] {
  let last = 0
  return rows.flatMap(({ row }) => {
    if (row.kind !== 'order_placed') return []
    const isLater = row.accepted_at >= last
    last = row.accepted_at
    return isLater ? [] : [`forward-in-time: order ${row.order_id}`]
  })
}
