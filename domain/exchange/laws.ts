/**
 * Invariants of every state between two commands. They read the whole state: for tests, simulation and audits.
 */
import { isExit } from '../orders/brackets.ts'
import { isMarketType, orderIdOf } from '../orders/order.ts'
import { isInBook, isTerminal } from '../orders/order-state.ts'
import { bracketText } from './bracket-index.ts'
import type { ExchangeState } from './state.ts'
import type { OrderRow } from './tables/orders.ts'

/** One line per violated invariant; empty if all invariants hold. */
export function violations(state: ExchangeState): string[] {
  return [
    ...orderViolations(state),
    ...bracketViolations(state),
    ...reservationViolations(state),
    ...positionViolations(state),
  ]
}

const nameOf = ({ marketId, accepted }: OrderRow): string => `order ${orderIdOf(marketId, accepted)}`

/**
 * An order's settling steps and held amount equal the sums over its unmined fills. An ended order has
 * neither, and reserves nothing.
 */
function orderViolations(state: ExchangeState): string[] {
  const unsettled = new Map<string, { steps: number; held: bigint }>()
  for (const { marketId, accepted, steps, held, status } of state.fills.rows()) {
    if (status === 'MINED') continue
    const key = orderIdOf(marketId, accepted)
    const sum = unsettled.get(key) ?? { steps: 0, held: 0n }
    unsettled.set(key, { steps: sum.steps + steps, held: sum.held + held })
  }
  const found: string[] = []
  for (const order of state.orders.rows()) {
    const { steps, held } = unsettled.get(orderIdOf(order.marketId, order.accepted)) ?? { steps: 0, held: 0n }
    if (order.settling !== steps)
      found.push(`${nameOf(order)} settles ${order.settling} steps, its fills ${steps}`)
    if (order.held !== held) found.push(`${nameOf(order)} holds ${order.held} wei, its fills ${held}`)
    if (!isFilledWithinPrice(order))
      found.push(
        `${nameOf(order)} has filled ${order.filled} steps for ${order.filledValue}, fee ${order.fee}`,
      )
    if (order.filled + order.settling > order.quantity)
      found.push(`${nameOf(order)} has more fills than steps`)
    const isEnded = isTerminal(order.status)
    if (isEnded !== (order.endedAt !== null))
      found.push(`${nameOf(order)} is ${order.status} and ended at ${order.endedAt}`)
    if (isEnded && (order.reserved !== 0n || order.openable !== 0))
      found.push(`${nameOf(order)} has ended and reserves`)
  }
  return found
}

/** An order without a filled step has neither value nor fee. A limit order fills at its price or a better one. */
function isFilledWithinPrice({ type, side, price, filled, filledValue, fee }: OrderRow): boolean {
  if (filled === 0) return filledValue === 0n && fee === 0n
  const most = BigInt(price) * BigInt(filled)
  return isMarketType(type) || (side === 'LONG' ? filledValue <= most : filledValue >= most)
}

/**
 * An exit is dormant only while its entry is unmatched.
 * At most one exit of a bracket is in the book, and never together with its entry.
 */
function bracketViolations({ orders, brackets }: ExchangeState): string[] {
  const live = [...orders.rows()].filter(({ bracket, status }) => bracket > 0 && !isTerminal(status))
  const found =
    live.length === brackets.size
      ? []
      : [`${brackets.size} orders are in brackets, the index has ${live.length}`]
  for (const own of Map.groupBy(live, bracketText).values()) {
    const entries = own.filter((order) => !isExit(order))
    const inBook = own.filter((order) => isExit(order) && isInBook(order))
    if (inBook.length > 1) found.push(`${nameOf(inBook[0] as OrderRow)} is in the book beside another exit`)
    const beside = inBook.length > 0 ? entries.filter(isInBook) : []
    for (const entry of beside)
      found.push(`${nameOf(entry)} is in the book beside an exit that was triggered`)
    const isAwake = entries.every(({ filled, settling, unused }) => filled + settling + unused > 0)
    for (const order of own.filter(({ dormant }) => dormant && isAwake))
      found.push(`${nameOf(order)} is dormant without an unmatched entry`)
  }
  return found
}

/** An account's reservation equals the sum over its orders and adjustments. */
function reservationViolations(state: ExchangeState): string[] {
  const sums = new Map<number, bigint>()
  const add = (userId: number, amount: bigint): void => {
    if (amount !== 0n) sums.set(userId, (sums.get(userId) ?? 0n) + amount)
  }
  for (const { account, reserved, held } of state.orders.rows()) add(account, reserved + held)
  for (const { user_id, held } of state.attempts.rows()) add(user_id, BigInt(held))
  const found: string[] = []
  for (const { userId, reserved } of state.accounts.rows()) {
    const sum = sums.get(userId) ?? 0n
    if (reserved !== sum)
      found.push(`account ${userId} reserves ${reserved} wei, its orders and adjustments ${sum}`)
    sums.delete(userId)
  }
  for (const userId of sums.keys()) found.push(`account ${userId} has reservations and no funds`)
  return found
}

/**
 * A market's positions sum to zero, both mined and matched, until the wind-down lets accounts claim individually.
 */
function positionViolations(state: ExchangeState): string[] {
  const sums = new Map<number, { mined: number; matched: number }>()
  for (const { marketId, size, matchedSize } of state.positions.rows()) {
    const sum = sums.get(marketId) ?? { mined: 0, matched: 0 }
    sums.set(marketId, { mined: sum.mined + size, matched: sum.matched + matchedSize })
  }
  const found: string[] = []
  for (const [marketId, { mined, matched }] of sums) {
    if (state.markets.get(String(marketId))?.ended !== null) continue
    if (mined !== 0) found.push(`mined positions of market ${marketId} add up to ${mined}`)
    if (matched !== 0) found.push(`matched positions of market ${marketId} add up to ${matched}`)
  }
  return found
}
