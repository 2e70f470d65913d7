/**
 * Rebuilds positions, balances and fill states from the event of a settled part. Pure; inputs are not
 * changed.
 */
import { invariant } from '../invariant.ts'
import type { MarketSpec } from '../market/market.ts'
import { applyFill, FLAT, type Position } from '../positions/position.ts'
import type { Address, Millis, Price, Quote, Seconds, Steps } from '../units.ts'
import { CANCEL_GRACE } from './durations.ts'
import type { BatchSettled, SettledFill } from './settlement.ts'

// ---------------------------------------------------------------------- positions

/**
 * The position after one settled fill.
 * The event does not contain the margin basis of opening steps. Their margin is the part of the debit that
 * the fill's other amounts do not explain.
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
  invariant(verdict.ok, 'the rules accept the fill that the chain settled')
  const { position: after, opened, fee, freeDelta } = verdict.value
  const added = freeDelta - fill.freeDelta
  invariant(
    fee === fill.fee && added >= 0n && (opened > 0 || added === 0n),
    'the event matches the fee and the debit by the rules',
  )
  return { ...after, foldedMargin: (after.foldedMargin + added) as Quote }
}

/** Positions that the part changed, on top of `positions`. */
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
  /** Wei requested for withdrawal and not paid yet. */
  readonly pending: Quote
  /** Time of the latest request. */
  readonly requestedAt: Seconds
}

/**
 * Balance changes that the bank applies: one per run of neighbouring records of an account. A forced record
 * starts a new run.
 */
export function ledgerDeltas(event: BatchSettled): { account: Address; delta: Quote }[] {
  const deltas: { account: Address; delta: Quote }[] = []
  for (const { maker, freeDelta, isForced } of event.fills) {
    const last = deltas.at(-1)
    if (last?.account === maker && !isForced) last.delta = (last.delta + freeDelta) as Quote
    else deltas.push({ account: maker, delta: freeDelta })
  }
  return deltas
}

/** Total fees of the part, in wei. */
export const feesOf = (event: BatchSettled): Quote =>
  event.fills.reduce((sum, { fee }) => sum + fee, 0n) as Quote

/**
 * Whether a withdrawal requested at `requestedAt` still backs a batch: `asOf` <= request time +
 * `CANCEL_GRACE`.
 */
export const backsBatch = (requestedAt: Seconds, asOf: Millis): boolean =>
  asOf <= requestedAt * 1000 + CANCEL_GRACE

/**
 * Applies a change of the free balance; null if the funds are too small.
 * A debit uses the free balance first, then a pending withdrawal that still backs the batch.
 */
export function applyFreeDelta(account: LedgerAccount, delta: Quote, asOf: Millis): LedgerAccount | null {
  const free = account.free + delta
  if (free >= 0n) return { ...account, free: free as Quote }
  const pending = account.pending + free
  if (pending < 0n || !backsBatch(account.requestedAt, asOf)) return null
  return { ...account, free: 0n as Quote, pending: pending as Quote }
}

// ---------------------------------------------------------------------- fill states

/** State of an order on chain, identified by maker and salt. */
export interface FillState {
  readonly filled: Steps
  readonly isDead: boolean
}

export interface FillStates {
  /** Fill states by `saltKey`. */
  readonly orders: ReadonlyMap<string, FillState>
  /** Salt in each of a maker's partial slots, by `slotKey`. */
  readonly slots: ReadonlyMap<string, bigint>
}

export const saltKey = (maker: Address, salt: bigint): string => `${maker}:${salt}`
export const slotKey = (maker: Address, slot: number): string => `${maker}#${slot}`

/**
 * Fill states after the part.
 * A fill that reuses a slot marks the slot's previous order as dead. Forced orders have no fill state.
 */
export function applyFillStates(states: FillStates, event: BatchSettled): FillStates {
  const orders = new Map(states.orders)
  const slots = new Map(states.slots)
  for (const { maker, salt, fill, isDead, partialSlot, isForced } of event.fills) {
    if (isForced) continue
    const before = orders.get(saltKey(maker, salt))
    orders.set(saltKey(maker, salt), { filled: ((before?.filled ?? 0) + fill) as Steps, isDead })
    if (isDead || partialSlot === null) continue
    const heldSalt = slots.get(slotKey(maker, partialSlot))
    const killed =
      heldSalt === undefined || heldSalt === salt ? undefined : orders.get(saltKey(maker, heldSalt))
    if (heldSalt !== undefined && killed) orders.set(saltKey(maker, heldSalt), { ...killed, isDead: true })
    slots.set(slotKey(maker, partialSlot), salt)
  }
  return { orders, slots }
}
