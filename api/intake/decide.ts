/** What becomes of each command of a group: pure, on the state that the group's locks hold still. */

import type { OrderEnded, OrderEnding, OrderPlaced } from '../../domain/log.ts'
import { type MarketSpec, tickStepValue } from '../../domain/market.ts'
import { leaveBook } from '../../domain/open-order.ts'
import { aliveUntil, type SignedOrder } from '../../domain/order.ts'
import { isInBook } from '../../domain/order-state.ts'
import type { FundingIndex, Millis, Price, Quote, Steps } from '../../domain/units.ts'
import { type Admission, type Admittance, admit, type Resting } from '../../domain/validate.ts'
import { toOpenOrder } from '../../indexer/db/orders.ts'
import { shardId } from '../../indexer/db/shard-log.ts'
import { ApiError } from '../errors.ts'
import type { OrderRow } from '../views/order.ts'
import type { BalanceParts } from '../views/position.ts'
import type { CancelCommand, Cancelled, Command, PlaceCommand, Placed } from './commands.ts'
import { refused } from './parse-order.ts'
import type { AccountNow, GroupState, StoredOrder } from './state.ts'

export interface Ages {
  readonly oracleMaxAgeMs: number
  readonly chainMaxAgeMs: number
}

/** No market accrues funding yet, so every funding index is 0. */
const NO_FUNDING = 0n as FundingIndex
const HALTED_RETRY = '5'
const STALE_RETRY = '1'

/** An order that ends, or waits for its batch to end. */
export interface EndedOrder {
  readonly order_id: string
  readonly status: string
  readonly status_reason: string | null
  readonly closing_reason: string | null
  readonly note: string | null
  readonly ended_at: number | null
}

/** What the group's transaction writes. Row i of `rows` gets the sequence `head + 1 + i`. */
export interface Writes {
  readonly rows: (OrderPlaced | OrderEnding | OrderEnded)[]
  readonly signatures: string[]
  readonly ended: EndedOrder[]
  readonly reservedDeltas: Map<number, bigint>
}

type Answer = Placed | Cancelled | ApiError

export interface Decision {
  readonly writes: Writes
  /** One answer per command, in their order; given only after the commit. */
  readonly answers: readonly Answer[]
}

export function decide(commands: readonly Command[], state: GroupState, now: Millis, ages: Ages): Decision {
  const writes: Writes = { rows: [], signatures: [], ended: [], reservedDeltas: new Map() }
  const answers = commands.map((command): Answer => {
    try {
      return command.kind === 'place'
        ? place(command, state, writes, now, ages)
        : cancel(command, state, writes, now)
    } catch (error) {
      if (error instanceof ApiError) return error
      throw error
    }
  })
  return { writes, answers }
}

const bookmarkAt = ({ head }: GroupState, seq: number) => ({
  shard_id: shardId(head),
  shard_seq: String(seq),
})

const balanceOf = ({ free, reserved, pendingWithdrawal, positionMargin }: AccountNow): BalanceParts => ({
  free,
  reserved,
  pendingWithdrawal,
  positionMargin,
})

function reserve(writes: Writes, userId: number, account: AccountNow, delta: bigint): void {
  if (delta === 0n) return
  account.reserved += delta
  account.ordersReserved += delta
  writes.reservedDeltas.set(userId, (writes.reservedDeltas.get(userId) ?? 0n) + delta)
}

// ---------------------------------------------------------------- placement

function restingOf(spec: MarketSpec, account: AccountNow): Resting {
  const { count, openable, openValue, ordersReserved, plainLong, plainShort, position } = account
  const opposing = position.size > 0 ? plainShort : plainLong
  return {
    count,
    reducing: Math.min(Math.abs(position.size), opposing) as Steps,
    openable: openable as Steps,
    openNotional: (openValue * tickStepValue(spec)) as Quote,
    reserved: ordersReserved as Quote,
  }
}

function admittance(
  spec: MarketSpec,
  account: AccountNow,
  { market }: GroupState,
  now: Millis,
  ages: Ages,
): Admittance {
  const { chainSeenAt, oracleAt, oraclePrice, mode } = market
  if (chainSeenAt === null || now - chainSeenAt > ages.chainMaxAgeMs) {
    throw new ApiError('CHAIN_UNSEEN', { last_seen_ms: chainSeenAt }, STALE_RETRY)
  }
  const isFresh = oracleAt !== null && now - oracleAt <= ages.oracleMaxAgeMs
  return {
    spec,
    mode,
    oracle: isFresh ? (oraclePrice as Price) : null,
    now,
    position: account.position,
    fundingIndex: NO_FUNDING,
    resting: restingOf(spec, account),
    available: (account.free - account.reserved) as Quote,
  }
}

const RETRY_AFTER: Readonly<Record<string, string>> = {
  MARKET_NOT_OPEN: HALTED_RETRY,
  ORACLE_STALE: STALE_RETRY,
}

function place(
  { order, spec, userId }: PlaceCommand,
  state: GroupState,
  writes: Writes,
  now: Millis,
  ages: Ages,
): Placed {
  const account = state.accounts.get(userId) as AccountNow
  const known = state.bySalt.get(`${order.maker}:${order.salt}`)
  if (known !== undefined) return duplicate(order, known, account, state)

  const verdict = admit(order, admittance(spec, account, state, now, ages))
  if (!verdict.ok) throw refused(verdict.refusal, RETRY_AFTER[verdict.refusal.code])

  const seq = state.head.head + writes.rows.length + 1
  const row = placedRow(order, verdict.value, userId, seq, now)
  writes.rows.push(row)
  writes.signatures.push(order.signature)
  reserve(writes, userId, account, verdict.value.reserved)
  rest(account, order, verdict.value)
  return {
    order: orderRow(order, row, seq),
    isDuplicate: false,
    balance: balanceOf(account),
    read_after: bookmarkAt(state, seq),
  }
}

/** Accepting the same signed order again is not an error; another order with its salt is. */
function duplicate(order: SignedOrder, known: StoredOrder, account: AccountNow, state: GroupState): Placed {
  if (known.hash !== order.hash) {
    const context = {
      field: 'salt',
      received: String(order.salt),
      order_id: known.order_id,
      order_hash: known.hash,
    }
    throw new ApiError('SALT_USED', context)
  }
  const read_after = bookmarkAt(state, state.head.head)
  return { order: known, isDuplicate: true, balance: balanceOf(account), read_after }
}

function rest(account: AccountNow, order: SignedOrder, { openable, reservedPrice }: Admission): void {
  account.count += 1
  account.openable += openable
  account.openValue += BigInt(openable) * BigInt(reservedPrice)
  if (order.reduceOnly) return
  if (order.side === 'LONG') account.plainLong += order.quantity
  else account.plainShort += order.quantity
}

function placedRow(
  order: SignedOrder,
  admission: Admission,
  userId: number,
  seq: number,
  now: Millis,
): OrderPlaced {
  return {
    kind: 'order_placed',
    order_id: `${order.marketId}-${seq}`,
    user_id: userId,
    maker: order.maker,
    signer: order.signer,
    hash: order.hash,
    salt: Number(order.salt),
    side: order.side,
    type: order.type,
    price: order.price,
    quantity: order.quantity,
    trigger: order.trigger,
    leverage: order.leverage,
    reduce_only: order.reduceOnly,
    expiration: order.expiration,
    alive_until: aliveUntil(order.expiration, null),
    status: admission.status,
    accepted_at: now,
    openable: admission.openable,
    reserved: admission.reserved.toString(),
    reserved_price: admission.reservedPrice,
  }
}

const orderRow = (order: SignedOrder, { kind: _, ...row }: OrderPlaced, seq: number): OrderRow => ({
  ...row,
  market_id: order.marketId,
  seq,
  status_reason: null,
  note: null,
  filled: 0,
  filled_value: 0n,
  settling: 0,
  fee: 0n,
  reserved: BigInt(row.reserved),
  triggered: null,
  updated_at: row.accepted_at,
})

// ---------------------------------------------------------------- cancel

function cancel(
  { hash, userId, reason }: CancelCommand,
  state: GroupState,
  writes: Writes,
  now: Millis,
): Cancelled {
  const stored = state.byHash.get(hash)
  if (stored === undefined) throw new ApiError('ORDER_NOT_FOUND', { field: 'order_hash', received: hash })
  if (stored.user_id !== userId) throw new ApiError('NOT_YOURS', { field: 'order_hash', received: hash })
  if (stored.ended_at !== null || stored.closing_reason !== null) {
    const cancelled = stored.status === 'CANCELLED' || stored.status === 'CANCEL_PENDING_FINALIZE'
    const read_after = bookmarkAt(state, state.head.head)
    return { order: stored, cancelled, isDuplicate: cancelled, read_after }
  }
  return end(stored, reason, state, writes, now)
}

function end(
  stored: StoredOrder,
  note: string | null,
  state: GroupState,
  writes: Writes,
  now: Millis,
): Cancelled {
  const open = toOpenOrder(stored)
  const wasInBook = isInBook(open)
  const { order, row } = leaveBook(open, 'USER_CANCELLED', now)
  const account = state.accounts.get(stored.user_id) as AccountNow
  const remaining = stored.quantity - stored.filled - stored.settling
  if (order.endedAt !== null) account.count -= 1
  account.openable -= stored.openable
  account.openValue -= BigInt(stored.openable) * BigInt(stored.reserved_price)
  if (wasInBook && !stored.reduce_only) {
    if (stored.side === 'LONG') account.plainLong -= remaining
    else account.plainShort -= remaining
  }
  reserve(writes, stored.user_id, account, -stored.reserved)

  writes.rows.push({ ...(row as OrderEnded | OrderEnding), note })
  const changed = {
    status: order.status,
    status_reason: order.statusReason,
    closing_reason: order.closingReason,
    note,
    ended_at: order.endedAt,
  }
  writes.ended.push({ order_id: stored.order_id, ...changed })
  const seq = state.head.head + writes.rows.length
  return {
    order: { ...stored, ...changed, openable: 0, reserved: 0n, updated_at: now } as OrderRow,
    cancelled: true,
    isDuplicate: false,
    read_after: bookmarkAt(state, seq),
  }
}
