/** What must hold of everything that the exchange tells once it is quiet. Each law names what it found wrong; an empty list is good. */
import type { Balance, Fill, OrderEvent, PlacedOrder, Position } from '../../../client/responses.ts'
import { type MarketSpec, priceOf, quantityOf } from '../../../domain/market/market.ts'
import { isConditional, isTriggered } from '../../../domain/orders/order.ts'
import type { Price, Steps } from '../../../domain/units.ts'
import type { History } from './history.ts'
import type { Paper, PaperOrder } from './paper.ts'

const ONE = 10n ** 18n

/** What one trader is told, all of one quiet moment. */
export interface Told {
  readonly orders: readonly PlacedOrder[]
  readonly fills: readonly Fill[]
  readonly events: readonly OrderEvent[]
  readonly positions: readonly Position[]
  readonly balance: Balance
}

export interface Trader {
  readonly paper: Paper
  readonly told: Told
}

export const raw = (text: string | null): bigint => BigInt(text ?? 0)
const signOf = (side: string): bigint => (side === 'LONG' ? 1n : -1n)
const hasEnded = ({ status }: PlacedOrder): boolean => ['FILLED', 'CANCELLED', 'EXPIRED'].includes(status)
export const isLive = (order: PlacedOrder): boolean => !hasEnded(order)
const stateOf = ({ status, status_reason }: PlacedOrder): string => `${status} ${status_reason}`
export const nameOf = ({ by, order, hash }: PaperOrder): string =>
  `order ${hash.slice(0, 10)} of trader ${by}, ${order.side} ${order.type} in market ${order.marketId}`
const sumOf = (values: readonly bigint[]): bigint => values.reduce((sum, value) => sum + value, 0n)
export const paired = ({ paper, told }: Trader): [PaperOrder, PlacedOrder][] =>
  paper.accepted.flatMap((mine) => {
    const order = told.orders.find(({ order_hash }) => order_hash === mine.hash)
    return order === undefined ? [] : [[mine, order]]
  })

// ---------------------------------------------------------------------- one order

/** Accepted is what is there, and nothing else is. */
function sameOrders({ paper, told }: Trader): string[] {
  const there = new Set(told.orders.map(({ order_hash }) => order_hash))
  const known = new Set(paper.accepted.map(({ hash }) => hash))
  const lost = paper.accepted.filter(({ hash }) => !there.has(hash)).map((mine) => `${nameOf(mine)} is lost`)
  const strange = told.orders.filter(({ order_hash }) => !known.has(order_hash))
  const twice = told.orders.length - there.size
  return [
    ...lost,
    ...strange.map(({ order_hash, status }) => `nobody placed ${order_hash}, ${status}`),
    ...(twice === 0 ? [] : [`${twice} orders are listed twice`]),
  ]
}

function sameTerms(mine: PaperOrder, told: PlacedOrder): string[] {
  const { spec, order, signer } = mine
  const expected = {
    ...{ id: mine.id, side: order.side, type: order.type, leverage: order.leverage, signer },
    ...{ price: priceOf(spec, order.price), trigger: priceOf(spec, order.trigger) },
    ...{ quantity: quantityOf(spec, order.quantity), reduceOnly: order.reduceOnly },
    ...{ expiration: order.expiration, salt: order.salt.toString() },
  }
  const found = {
    ...{ id: told.order_id, side: told.side, type: told.order_type, leverage: told.leverage },
    ...{ signer: told.signer, price: raw(told.price_e18_raw), trigger: raw(told.trigger_price_e18_raw) },
    ...{ quantity: raw(told.quantity_e18_raw), reduceOnly: told.reduce_only },
    ...{ expiration: told.expiration_seconds, salt: told.salt },
  }
  return Object.entries(expected)
    .filter(([name, value]) => found[name as keyof typeof found] !== value)
    .map(([name, value]) => `${name} is ${found[name as keyof typeof found]}, signed was ${value}`)
}

function sameFills({ told }: Trader, order: PlacedOrder): string[] {
  const fills = told.fills.filter(({ order_id }) => order_id === order.order_id)
  const filled = sumOf(fills.map(({ quantity_e18_raw }) => raw(quantity_e18_raw)))
  const wrong: string[] = []
  if (filled !== raw(order.filled_quantity_e18_raw))
    wrong.push(`filled ${order.filled_quantity}, its fills ${filled}`)
  if (raw(order.settling_quantity_e18_raw) !== 0n) wrong.push(`${order.settling_quantity} still settles`)
  if (filled > raw(order.quantity_e18_raw)) wrong.push('more is filled than was ordered')
  if ((order.status === 'FILLED') !== (filled === raw(order.quantity_e18_raw)))
    wrong.push(`${stateOf(order)} with ${order.filled_quantity} of ${order.quantity}`)
  const fee = sumOf(fills.map(({ fee_e18_raw }) => raw(fee_e18_raw)))
  if (fee !== raw(order.fee_e18_raw)) wrong.push(`fee ${order.fee}, its fills ${fee}`)
  const limit = raw(order.price_e18_raw)
  for (const { price_e18_raw, status } of fills) {
    if (status !== 'MINED' && status !== 'CONFIRMED') wrong.push(`a fill is ${status}`)
    if (limit !== 0n && signOf(order.side) * (raw(price_e18_raw) - limit) > 0n)
      wrong.push(`limit ${order.price}, filled at ${price_e18_raw}`)
  }
  return wrong
}

/** The only fee is the taker's, by the schedule of the contract with traders. */
function scheduledFee(spec: MarketSpec, fill: Fill): bigint {
  const [price, taker] = [raw(fill.price_e18_raw), raw(fill.taker_quantity_e18_raw)]
  if (spec.kind !== 'binary_future') return (price * taker * spec.takerFee) / ONE / ONE
  const perUnit = (((price * (ONE - price)) / ONE) * spec.takerFee) / ONE
  return (perUnit * taker) / ONE
}

/** Told is what the model has: status, reason, quantities, and what is held back. */
function stateLaw(history: History, { spec }: PaperOrder, told: PlacedOrder): string[] {
  const { orders, reservedBy } = history.market(spec.marketId)
  const order = orders.get(told.order_id)
  if (order === undefined) return ['is not in the log']
  const expected = {
    ...{ status: order.status, reason: order.reason },
    ...{
      filled: quantityOf(spec, order.filled as Steps),
      settling: quantityOf(spec, order.settling as Steps),
    },
    reserved: reservedBy(order),
  }
  const found = {
    ...{ status: told.status, reason: told.status_reason, filled: raw(told.filled_quantity_e18_raw) },
    ...{ settling: raw(told.settling_quantity_e18_raw), reserved: raw(told.reserved_margin_e18_raw) },
  }
  return Object.entries(expected)
    .filter(([name, value]) => found[name as keyof typeof found] !== value)
    .map(([name, value]) => `${name} is ${found[name as keyof typeof found]}; the model: ${value}`)
}

function triggerLaw(
  { spec, order }: PaperOrder,
  { trigger, status }: PlacedOrder,
  filled: boolean,
): string[] {
  if (!isConditional(order.type)) return trigger === null ? [] : ['triggered, and does not wait for anything']
  if (trigger === null) return status === 'OPEN' || filled ? ['in the book without a trigger'] : []
  if (status === 'PENDING_TRIGGER') return ['waits, although it has been triggered']
  const mark = raw(trigger.mark_price_e18_raw) as Price
  return isTriggered(order, mark, spec.tick) ? [] : [`triggered by a mark of ${trigger.mark_price}`]
}

/** What ended stays as it was. */
function endLaw(mine: PaperOrder, told: PlacedOrder): string[] {
  if (mine.ended === null) {
    if (hasEnded(told)) mine.ended = told
    return []
  }
  const [before, now] = [mine.ended, told].map(
    (order) => `${stateOf(order)} ${order.filled_quantity_e18_raw}`,
  )
  return before === now ? [] : [`had ended as ${before}, is ${now}`]
}

function eventLaw({ told: { events } }: Trader, order: PlacedOrder): string[] {
  const own = events.filter(({ order_id }) => order_id === order.order_id).map(({ kind }) => kind)
  const [created, ...more] = own.toReversed()
  const fills = more.filter((kind) => kind === 'PARTIALLY_FILLED' || kind === 'FILLED').length
  const ends = more.filter((kind) => kind !== 'PARTIALLY_FILLED')
  const wrong: string[] = []
  if (created !== 'CREATED' || more.includes('CREATED')) wrong.push(`its events are ${own}`)
  if (hasEnded(order) ? ends.length !== 1 || ends[0] !== order.status : ends.length > 0)
    wrong.push(`${stateOf(order)}, and its events are ${own}`)
  if (fills > 0 !== raw(order.filled_quantity_e18_raw) > 0n) wrong.push(`filled, and its events are ${own}`)
  return wrong
}

export function orderLaws(trader: Trader, history: History): string[] {
  const of = ([mine, told]: [PaperOrder, PlacedOrder]): string[] => {
    const wrong = [
      ...sameTerms(mine, told),
      ...sameFills(trader, told),
      ...stateLaw(history, mine, told),
      ...triggerLaw(mine, told, raw(told.filled_quantity_e18_raw) > 0n),
      ...endLaw(mine, told),
      ...eventLaw(trader, told),
    ]
    return wrong.map((what) => `${nameOf(mine)}: ${what}`)
  }
  const ids = trader.told.events.map(({ event_id }) => event_id)
  const repeated = ids.length - new Set(ids).size
  return [
    ...sameOrders(trader),
    ...paired(trader).flatMap(of),
    ...(repeated === 0 ? [] : [`${repeated} events are listed twice`]),
  ]
}

// ---------------------------------------------------------------------- one account

const sizeIn = ({ told }: Trader, spec: MarketSpec): bigint =>
  raw(told.positions.find(({ market_id }) => market_id === spec.marketId)?.size_e18_raw ?? null) / spec.step

export function accountLaws(trader: Trader, specs: readonly MarketSpec[], history: History): string[] {
  const { paper, told } = trader
  const who = `trader ${paper.address.slice(0, 8)}`
  const wrong: string[] = []
  for (const spec of specs) {
    const fills = told.fills.filter(({ market_id }) => market_id === spec.marketId)
    const size = sumOf(fills.map((fill) => signOf(fill.side) * raw(fill.quantity_e18_raw))) / spec.step
    const { mined, model } = history.market(spec.marketId)
    const sizes = [
      sizeIn(trader, spec),
      size,
      mined.get(paper.account)?.size ?? 0,
      model.sizeOf(paper.account),
    ]
    if (new Set(sizes.map(BigInt)).size > 1)
      wrong.push(`${who} in market ${spec.marketId}: position, fills, mined, matched are ${sizes}`)
    for (const fill of fills) {
      if (raw(fill.fee_e18_raw) !== scheduledFee(spec, fill))
        wrong.push(`${who}: fee ${fill.fee} of fill ${fill.fill_id}`)
    }
  }
  const earned = sumOf(told.fills.map((fill) => raw(fill.realized_pnl_e18_raw) - raw(fill.fee_e18_raw)))
  const { balance } = told
  for (const [name, found, expected] of [
    ['total', balance.total_e18_raw, paper.deposited + earned],
    ['free', balance.free_e18_raw, history.free.get(paper.account)],
    ['reserved', balance.reserved_e18_raw, history.reserved(paper.account)],
    ['available', balance.available_e18_raw, history.available(paper.account)],
  ] as const) {
    if (raw(found) !== expected) wrong.push(`${who}: ${name} ${found}; the model: ${expected}`)
  }
  return wrong
}

// ---------------------------------------------------------------------- one market

/** Nothing comes from nowhere: sizes add up to nothing, and each batch sells at one price what it buys. */
export function marketLaws(spec: MarketSpec, traders: readonly Trader[]): string[] {
  const wrong: string[] = []
  const size = sumOf(traders.map((trader) => sizeIn(trader, spec)))
  if (size !== 0n) wrong.push(`market ${spec.marketId}: positions add up to ${size} steps`)
  const fills = traders
    .flatMap(({ told }) => told.fills)
    .filter(({ market_id }) => market_id === spec.marketId)
  const batches = new Set(fills.map(({ batch_id }) => batch_id))
  for (const batch of batches) {
    const own = fills.filter(({ batch_id }) => batch_id === batch)
    const net = sumOf(own.map((fill) => signOf(fill.side) * raw(fill.quantity_e18_raw)))
    const prices = new Set(own.map(({ price_e18_raw }) => price_e18_raw))
    const transactions = new Set(own.map(({ part, tx_hash }) => `${part} ${tx_hash}`))
    const parts = new Set(own.map(({ part }) => part))
    if (net !== 0n) wrong.push(`batch ${batch} of market ${spec.marketId} buys ${net} more than it sells`)
    if (prices.size !== 1) wrong.push(`batch ${batch} of market ${spec.marketId} has ${prices.size} prices`)
    if (transactions.size !== parts.size)
      wrong.push(`batch ${batch} of market ${spec.marketId} settled twice`)
  }
  return wrong
}

/** The public book is what the traders have in it, level by level. `levels`: `LONG 100 -> quantity count`. */
export function bookLaw(
  spec: MarketSpec,
  traders: readonly Trader[],
  levels: ReadonlyMap<string, string>,
): string[] {
  const sums = new Map<string, { quantity: bigint; count: number }>()
  for (const order of traders.flatMap(({ told }) => told.orders)) {
    if (order.market_id !== spec.marketId || order.status !== 'OPEN' || order.price === 0) continue
    const name = `${order.side} ${order.price_e18_raw}`
    const { quantity, count } = sums.get(name) ?? { quantity: 0n, count: 0 }
    sums.set(name, { quantity: quantity + raw(order.remaining_quantity_e18_raw), count: count + 1 })
  }
  const names = new Set([...sums.keys(), ...levels.keys()])
  return [...names].flatMap((name) => {
    const sum = sums.get(name)
    const expected = sum === undefined ? 'nothing' : `${sum.quantity} ${sum.count}`
    const found = levels.get(name) ?? 'nothing'
    return expected === found
      ? []
      : [`book of market ${spec.marketId}, ${name}: ${found}, orders say ${expected}`]
  })
}
