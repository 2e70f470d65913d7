/** Invariants of everything that REST returns while no change is due. Each check returns one line per violation. */
import type { Balance, Fill, OrderEvent, PlacedOrder, Position } from '../../../client/responses.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../../domain/market/market.ts'
import { type BookOrder, executableSteps } from '../../../domain/orders/executable.ts'
import { isConditional, isTriggered } from '../../../domain/orders/order.ts'
import type { Price, Seq, Steps, Ticks } from '../../../domain/units.ts'
import type { History } from './history.ts'
import type { SentOrder, TraderNotes } from './trader-notes.ts'

const ONE = 10n ** 18n

/** The reads of one account while no change is due. */
export interface AccountReads {
  readonly orders: readonly PlacedOrder[]
  readonly fills: readonly Fill[]
  readonly events: readonly OrderEvent[]
  readonly positions: readonly Position[]
  readonly balance: Balance
}

export interface TraderState {
  readonly notes: TraderNotes
  readonly reads: AccountReads
}

export const raw = (text: string | null): bigint => BigInt(text ?? 0)
const signOf = (side: string): bigint => (side === 'LONG' ? 1n : -1n)
const hasEnded = ({ status }: PlacedOrder): boolean => ['FILLED', 'CANCELLED', 'EXPIRED'].includes(status)
export const isLive = (order: PlacedOrder): boolean => !hasEnded(order)
const stateOf = ({ status, status_reason }: PlacedOrder): string => `${status} ${status_reason}`
export const nameOf = ({ by, order, hash }: SentOrder): string =>
  `order ${hash.slice(0, 10)} of trader ${by}, ${order.side} ${order.type} in market ${order.marketId}`
const sumOf = (values: readonly bigint[]): bigint => values.reduce((sum, value) => sum + value, 0n)
export const pairedOrders = ({ notes, reads }: TraderState): [SentOrder, PlacedOrder][] =>
  notes.accepted.flatMap((sentOrder) => {
    const order = reads.orders.find(({ order_hash }) => order_hash === sentOrder.hash)
    return order === undefined ? [] : [[sentOrder, order]]
  })

// ---------------------------------------------------------------------- one order

/** The listed orders must be exactly the accepted ones. */
function checkListing({ notes, reads }: TraderState): string[] {
  const listed = new Set(reads.orders.map(({ order_hash }) => order_hash))
  const known = new Set(notes.accepted.map(({ hash }) => hash))
  const missing = notes.accepted.filter(({ hash }) => !listed.has(hash))
  const unknown = reads.orders.filter(({ order_hash, forced }) => !forced && !known.has(order_hash))
  const twice = reads.orders.length - listed.size
  return [
    ...missing.map((sentOrder) => `${nameOf(sentOrder)} is not listed`),
    ...unknown.map(({ order_hash, status }) => `the trader did not send ${order_hash}, which is ${status}`),
    ...(twice === 0 ? [] : [`${twice} orders are listed twice`]),
  ]
}

function checkTerms(sentOrder: SentOrder, actual: PlacedOrder): string[] {
  const { spec, order, signer } = sentOrder
  const expected = {
    ...{ id: sentOrder.id, side: order.side, type: order.type, leverage: order.leverage, signer },
    ...{ price: priceOf(spec, order.price), trigger: priceOf(spec, order.trigger) },
    ...{ quantity: quantityOf(spec, order.quantity), reduceOnly: order.reduceOnly },
    ...{ expiration: order.expiration, salt: order.salt.toString() },
  }
  const found = {
    ...{ id: actual.order_id, side: actual.side, type: actual.order_type, leverage: actual.leverage },
    ...{
      signer: actual.signer,
      price: raw(actual.price_e18_raw),
      trigger: raw(actual.trigger_price_e18_raw),
    },
    ...{ quantity: raw(actual.quantity_e18_raw), reduceOnly: actual.reduce_only },
    ...{ expiration: actual.expiration_seconds, salt: actual.salt },
  }
  return Object.entries(expected)
    .filter(([name, value]) => found[name as keyof typeof found] !== value)
    .map(([name, value]) => `${name} is ${found[name as keyof typeof found]}; signed: ${value}`)
}

function checkFills({ reads }: TraderState, order: PlacedOrder): string[] {
  const fills = reads.fills.filter(({ order_id }) => order_id === order.order_id)
  const filled = sumOf(fills.map(({ quantity_e18_raw }) => raw(quantity_e18_raw)))
  const problems: string[] = []
  if (filled !== raw(order.filled_quantity_e18_raw))
    problems.push(`filled ${order.filled_quantity}; sum of its fills: ${filled}`)
  if (raw(order.settling_quantity_e18_raw) !== 0n)
    problems.push(`${order.settling_quantity} is still settling`)
  if (filled > raw(order.quantity_e18_raw)) problems.push('the fills exceed the quantity')
  if ((order.status === 'FILLED') !== (filled === raw(order.quantity_e18_raw)))
    problems.push(`${stateOf(order)} with ${order.filled_quantity} of ${order.quantity}`)
  const fee = sumOf(fills.map(({ fee_e18_raw }) => raw(fee_e18_raw)))
  if (fee !== raw(order.fee_e18_raw)) problems.push(`fee ${order.fee}; sum of its fills: ${fee}`)
  const limit = raw(order.price_e18_raw)
  for (const { price_e18_raw, status } of fills) {
    if (status !== 'MINED' && status !== 'CONFIRMED') problems.push(`a fill is ${status}`)
    if (limit !== 0n && signOf(order.side) * (raw(price_e18_raw) - limit) > 0n)
      problems.push(`filled at ${price_e18_raw}, beyond its limit ${order.price}`)
  }
  return problems
}

/** The only fee is the taker's, by the schedule of the contract with traders. */
function scheduledFee(spec: MarketSpec, fill: Fill): bigint {
  const [price, taker] = [raw(fill.price_e18_raw), raw(fill.taker_quantity_e18_raw)]
  if (spec.kind !== 'binary_future') return (price * taker * spec.takerFee) / ONE / ONE
  const perUnit = (((price * (ONE - price)) / ONE) * spec.takerFee) / ONE
  return (perUnit * taker) / ONE
}

/** Status, reason, quantities and reservation must be the model's. */
function checkState(history: History, { spec }: SentOrder, actual: PlacedOrder): string[] {
  const { orders, reservedBy } = history.market(spec.marketId)
  const order = orders.get(actual.order_id)
  if (order === undefined) return ['is not in the journal']
  const expected = {
    ...{ status: order.status, reason: order.reason },
    ...{
      filled: quantityOf(spec, order.filled as Steps),
      settling: quantityOf(spec, order.settling as Steps),
    },
    reserved: reservedBy(order),
  }
  const found = {
    ...{ status: actual.status, reason: actual.status_reason, filled: raw(actual.filled_quantity_e18_raw) },
    ...{ settling: raw(actual.settling_quantity_e18_raw), reserved: raw(actual.reserved_margin_e18_raw) },
  }
  return Object.entries(expected)
    .filter(([name, value]) => found[name as keyof typeof found] !== value)
    .map(([name, value]) => `${name} is ${found[name as keyof typeof found]}; the model: ${value}`)
}

function checkTrigger(
  { spec, order }: SentOrder,
  { trigger, status }: PlacedOrder,
  filled: boolean,
): string[] {
  if (!isConditional(order.type))
    return trigger === null ? [] : ['has a trigger, but its type is not conditional']
  if (trigger === null) return status === 'OPEN' || filled ? ['is in the book, but was not triggered'] : []
  if (status === 'PENDING_TRIGGER') return ['is PENDING_TRIGGER, but was triggered']
  const mark = raw(trigger.mark_price_e18_raw) as Price
  return isTriggered(order, mark, spec.tick)
    ? []
    : [`was triggered at mark price ${trigger.mark_price}, which does not reach its trigger`]
}

/** An ended order must not change. */
function checkEnd(sentOrder: SentOrder, actual: PlacedOrder): string[] {
  if (sentOrder.ended === null) {
    if (hasEnded(actual)) sentOrder.ended = actual
    return []
  }
  const [before, now] = [sentOrder.ended, actual].map(
    (order) => `${stateOf(order)} ${order.filled_quantity_e18_raw}`,
  )
  return before === now ? [] : [`ended as ${before} and is now ${now}`]
}

function checkEvents({ reads: { events } }: TraderState, order: PlacedOrder): string[] {
  const own = events.filter(({ order_id }) => order_id === order.order_id).map(({ kind }) => kind)
  const [created, ...more] = own.toReversed()
  const fills = more.filter((kind) => kind === 'PARTIALLY_FILLED' || kind === 'FILLED').length
  const ends = more.filter((kind) => kind !== 'PARTIALLY_FILLED')
  const problems: string[] = []
  if (created !== 'CREATED' || more.includes('CREATED'))
    problems.push(`its first event must be CREATED; events: ${own}`)
  if (hasEnded(order) ? ends.length !== 1 || ends[0] !== order.status : ends.length > 0)
    problems.push(`${stateOf(order)} does not match its events: ${own}`)
  if (fills > 0 !== raw(order.filled_quantity_e18_raw) > 0n)
    problems.push(`filled ${order.filled_quantity} does not match its events: ${own}`)
  return problems
}

export function checkOrders(trader: TraderState, history: History): string[] {
  const checkOne = ([sentOrder, actual]: [SentOrder, PlacedOrder]): string[] => {
    const problems = [
      ...checkTerms(sentOrder, actual),
      ...checkFills(trader, actual),
      ...checkState(history, sentOrder, actual),
      ...checkTrigger(sentOrder, actual, raw(actual.filled_quantity_e18_raw) > 0n),
      ...checkEnd(sentOrder, actual),
      ...checkEvents(trader, actual),
    ]
    return problems.map((problem) => `${nameOf(sentOrder)}: ${problem}`)
  }
  const ids = trader.reads.events.map(({ event_id }) => event_id)
  const repeated = ids.length - new Set(ids).size
  return [
    ...checkListing(trader),
    ...pairedOrders(trader).flatMap(checkOne),
    ...(repeated === 0 ? [] : [`${repeated} events are listed twice`]),
  ]
}

// ---------------------------------------------------------------------- one account

const sizeIn = ({ reads }: TraderState, spec: MarketSpec): bigint =>
  raw(reads.positions.find(({ market_id }) => market_id === spec.marketId)?.size_e18_raw ?? null) / spec.step

export function checkAccount(trader: TraderState, specs: readonly MarketSpec[], history: History): string[] {
  const { notes, reads } = trader
  const account = `trader ${notes.address.slice(0, 8)}`
  const problems: string[] = []
  for (const spec of specs) {
    const fills = reads.fills.filter(({ market_id }) => market_id === spec.marketId)
    const { mined, model, moved } = history.market(spec.marketId)
    const filled = sumOf(fills.map((fill) => signOf(fill.side) * raw(fill.quantity_e18_raw))) / spec.step
    const size = filled + BigInt(moved.get(notes.account)?.size ?? 0)
    const sizes = [
      sizeIn(trader, spec),
      size,
      mined.get(notes.account)?.size ?? 0,
      model.sizeOf(notes.account),
    ]
    if (new Set(sizes.map(BigInt)).size > 1)
      problems.push(`${account} in market ${spec.marketId}: position, fills, mined, matched are ${sizes}`)
    for (const fill of fills) {
      const [fee, due] = [raw(fill.fee_e18_raw), scheduledFee(spec, fill)]
      // The fee of a close is at most its proceeds, which are little where a position is liquidated.
      if (fill.forced ? fee > due : fee !== due)
        problems.push(`${account}: fee ${fill.fee} of fill ${fill.fill_id} is not the schedule's`)
    }
  }
  const earned = sumOf(reads.fills.map((fill) => raw(fill.realized_pnl_e18_raw) - raw(fill.fee_e18_raw)))
  const outside = sumOf(
    specs.map((spec) => history.market(spec.marketId).moved.get(notes.account)?.value ?? 0n),
  )
  const { balance } = reads
  const hasFunding = specs.some(({ marketId }) => history.market(marketId).hasFunding)
  // The fills show no funding, which accrues between two reads; the audit compares margins with the contracts.
  const total = hasFunding ? raw(balance.total_e18_raw) : notes.deposited + earned + outside
  for (const [name, found, expected] of [
    ['total', balance.total_e18_raw, total],
    ['free', balance.free_e18_raw, history.free.get(notes.account)],
    ['reserved', balance.reserved_e18_raw, history.reserved(notes.account)],
    ['available', balance.available_e18_raw, history.available(notes.account)],
  ] as const) {
    if (raw(found) !== expected) problems.push(`${account}: ${name} ${found}; the model: ${expected}`)
  }
  return problems
}

// ---------------------------------------------------------------------- one market

/** Position sizes must add up to zero, and in each batch purchases must equal sales at one price. */
export function checkMarket(spec: MarketSpec, traders: readonly TraderState[], history: History): string[] {
  const problems: string[] = []
  const accounts = new Set(traders.map(({ notes }) => notes.account))
  const others = [...history.market(spec.marketId).mined].filter(([account]) => !accounts.has(account))
  const inherited = sumOf(others.map(([, { size }]) => BigInt(size)))
  const size = sumOf(traders.map((trader) => sizeIn(trader, spec))) + inherited
  if (size !== 0n) problems.push(`market ${spec.marketId}: positions add up to ${size} steps`)
  const fills = traders
    .flatMap(({ reads }) => reads.fills)
    .filter(({ market_id }) => market_id === spec.marketId)
  const batches = new Set(fills.map(({ batch_id }) => batch_id))
  for (const batch of batches) {
    const own = fills.filter(({ batch_id }) => batch_id === batch)
    const net = sumOf(own.map((fill) => signOf(fill.side) * raw(fill.quantity_e18_raw)))
    const prices = new Set(own.map(({ price_e18_raw }) => price_e18_raw))
    const transactions = new Set(own.map(({ part, tx_hash }) => `${part} ${tx_hash}`))
    const parts = new Set(own.map(({ part }) => part))
    if (net !== 0n) problems.push(`batch ${batch} of market ${spec.marketId} buys ${net} more than it sells`)
    if (prices.size !== 1)
      problems.push(`batch ${batch} of market ${spec.marketId} has ${prices.size} prices`)
    if (transactions.size !== parts.size)
      problems.push(`batch ${batch} of market ${spec.marketId} settled twice`)
  }
  return problems
}

/** The public book must promise what the orders can execute, level by level. `levels`: `LONG 100 -> quantity count`. */
export function checkBook(history: History, spec: MarketSpec, levels: ReadonlyMap<string, string>): string[] {
  const { model } = history.market(spec.marketId)
  const limits = model.orders.filter((order) => order.price > 0 && model.rests(order))
  const sums = new Map<string, { quantity: bigint; count: number }>()
  for (const [account, own] of Map.groupBy(limits, (order) => order.account)) {
    const bookOrders = own.map(
      (order): BookOrder => ({
        ...{
          seq: order.rank as Seq,
          side: order.side,
          limit: order.price as Ticks,
          reduceOnly: order.reduceOnly,
        },
        ...{ remaining: model.remaining(order) as Steps, openable: order.openable as Steps },
      }),
    )
    const executable = executableSteps(model.sizeOf(account) as Steps, bookOrders)
    for (const { seq, side, limit } of bookOrders) {
      const steps = executable.get(seq) ?? 0
      const name = `${side} ${priceOf(spec, limit)}`
      const { quantity, count } = sums.get(name) ?? { quantity: 0n, count: 0 }
      if (steps > 0)
        sums.set(name, { quantity: quantity + quantityOf(spec, steps as Steps), count: count + 1 })
    }
  }
  const names = new Set([...sums.keys(), ...levels.keys()])
  return [...names].flatMap((name) => {
    const sum = sums.get(name)
    const expected = sum === undefined ? 'none' : `${sum.quantity} ${sum.count}`
    const found = levels.get(name) ?? 'none'
    return expected === found
      ? []
      : [`book of market ${spec.marketId}, ${name}: ${found}; its orders: ${expected}`]
  })
}
