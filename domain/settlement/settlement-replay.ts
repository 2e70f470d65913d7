/** What a settled part did, rebuilt from its log alone: positions, balances, fill states. Pure; nothing is changed in place. */
import { invariant } from '../invariant.ts'
import type { MarketSpec } from '../market/market.ts'
import { applyFill, FLAT, type Position } from '../positions/position.ts'
import type { Address, Millis, Price, Quote, Seconds, Steps } from '../units.ts'
import { CANCEL_GRACE } from './durations.ts'
import type { BatchSettled, SettledFill } from './settlement.ts'

// ---------------------------------------------------------------------- positions

/**
 * The position after one settled fill. The log does not say what an opened share was margined at; the margin is what the free
 * balance paid beyond the fill's other amounts.
 */
function positionAfter(
  position: Position,
  fill: SettledFill,
  event: BatchSettled,
  spec: MarketSpec,
): Position {
  const verdict = applyFill(
    spec,
    position,
    {
      side: fill.side,
      price: event.price,
      steps: fill.fill,
      takerSteps: fill.taker,
      leverage: fill.leverage,
      basis: 0n as Price,
    },
    event,
  )
  invariant(verdict.ok, 'what the chain settled can be applied')
  const { position: after, opened, fee, freeDelta } = verdict.value
  const added = freeDelta - fill.freeDelta
  invariant(
    fee === fill.fee && added >= 0n && (opened > 0 || added === 0n),
    'the log repeats what the chain did',
  )
  return { ...after, foldedMargin: (after.foldedMargin + added) as Quote }
}

/** The positions that the part changed, on top of `positions`. */
export function applySettled(
  positions: ReadonlyMap<Address, Position>,
  event: BatchSettled,
  spec: MarketSpec,
): Map<Address, Position> {
  const changed = new Map<Address, Position>()
  for (const fill of event.fills) {
    const before = changed.get(fill.maker) ?? positions.get(fill.maker) ?? FLAT
    changed.set(fill.maker, positionAfter(before, fill, event, spec))
  }
  return changed
}

// ---------------------------------------------------------------------- balances

/** An account's ledger at the bank. */
export interface LedgerAccount {
  readonly free: Quote
  /** Requested for withdrawal and not yet paid. */
  readonly pending: Quote
  /** Of the latest request. */
  readonly requestedAt: Seconds
}

/** What the bank is told: one change per run of neighbouring records of one account. A forced record begins a run. */
export function ledgerDeltas(event: BatchSettled): { account: Address; delta: Quote }[] {
  const deltas: { account: Address; delta: Quote }[] = []
  for (const { maker, freeDelta, isForced } of event.fills) {
    const last = deltas.at(-1)
    if (last?.account === maker && !isForced) last.delta = (last.delta + freeDelta) as Quote
    else deltas.push({ account: maker, delta: freeDelta })
  }
  return deltas
}

/** Σ of the fees that the part charged. */
export const feesOf = (event: BatchSettled): Quote =>
  event.fills.reduce((sum, { fee }) => sum + fee, 0n) as Quote

/** Whether a withdrawal requested then still backs a batch as of `asOf`. */
export const backsBatch = (requestedAt: Seconds, asOf: Millis): boolean =>
  asOf <= requestedAt * 1000 + CANCEL_GRACE

/** A debit takes free first, then what is pending and still backs the batch. Null if that is too little. */
export function applyFreeDelta(account: LedgerAccount, delta: Quote, asOf: Millis): LedgerAccount | null {
  const free = account.free + delta
  if (free >= 0n) return { ...account, free: free as Quote }
  const pending = account.pending + free
  if (pending < 0n || !backsBatch(account.requestedAt, asOf)) return null
  return { ...account, free: 0n as Quote, pending: pending as Quote }
}

// ---------------------------------------------------------------------- fill states

/** What is known of an order on the chain: identity is maker and salt. */
export interface FillState {
  readonly filled: Steps
  readonly isDead: boolean
}

export interface FillStates {
  /** By `saltKey`. */
  readonly orders: ReadonlyMap<string, FillState>
  /** Salt held by each of a maker's partial slots, by `slotKey`. */
  readonly slots: ReadonlyMap<string, bigint>
}

export const saltKey = (maker: Address, salt: bigint): string => `${maker}:${salt}`
export const slotKey = (maker: Address, slot: number): string => `${maker}#${slot}`

/** Fill states after the part: a fill that claims a slot kills the order that the slot held. A liquidation is no order. */
export function applyFillStates(states: FillStates, event: BatchSettled): FillStates {
  const orders = new Map(states.orders)
  const slots = new Map(states.slots)
  for (const { maker, salt, fill, isDead, partialSlot, isForced } of event.fills) {
    if (isForced) continue
    const before = orders.get(saltKey(maker, salt))
    orders.set(saltKey(maker, salt), { filled: ((before?.filled ?? 0) + fill) as Steps, isDead })
    if (isDead || partialSlot === null) continue
    const held = slots.get(slotKey(maker, partialSlot))
    const killed = held === undefined || held === salt ? undefined : orders.get(saltKey(maker, held))
    if (held !== undefined && killed) orders.set(saltKey(maker, held), { ...killed, isDead: true })
    slots.set(slotKey(maker, partialSlot), salt)
  }
  return { orders, slots }
}
