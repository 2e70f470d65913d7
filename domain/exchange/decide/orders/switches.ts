/**
 * Dead-man switches of accounts and of live-feed connections. Renewals of a connection's deadline write no row: the
 * engine's shell stores the deadline and names due connections.
 */
import type { FiredSwitch } from '../../../journal/switch-rows.ts'
import { leaveBook } from '../../../orders/open-order.ts'
import { orderIdOf } from '../../../orders/order.ts'
import { isClosable } from '../../../orders/order-state.ts'
import type { MarketId, Millis, UserId } from '../../../units.ts'
import { Continued, type Decider } from '../../decide.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'
import type { ExchangeState } from '../../state.ts'
import type { OrderRow } from '../../tables/orders.ts'
import { type ConnectionSwitchRow, keyOfFired } from '../../tables/switches.ts'
import { MAX_ORDERS_PER_STEP } from './cancel-all.ts'

/** Maximum fired switches per step; further switches follow in later steps. */
const MAX_SWITCHES = 500

// ---------------------------------------------------------------------- of accounts

export interface SetSwitchCommand {
  readonly kind: 'set_switch'
  readonly userId: UserId
  /** 0 disarms it. The api has checked the bounds. */
  readonly timeoutSeconds: number
}

export type SetSwitchAnswer =
  /** `fireAt`: null if the switch is not armed. */
  | { readonly kind: 'done'; readonly fireAt: Millis | null }
  | { readonly kind: 'refused'; readonly code: 'USER_NOT_FOUND'; readonly received: UserId }

export const decideSetSwitch: Decider<SetSwitchCommand, SetSwitchAnswer> = (draft, { now }, command) => {
  const { userId, timeoutSeconds } = command
  const { state } = draft
  if (!state.users.has(userId)) return { kind: 'refused', code: 'USER_NOT_FOUND', received: userId }
  if (timeoutSeconds === 0) {
    const isArmed = state.switches.get(String(userId)) !== undefined
    if (isArmed) draft.write(ACCOUNTS, { kind: 'switch_disarmed', user_id: userId })
    return { kind: 'done', fireAt: null }
  }
  const fireAt = (now + timeoutSeconds * 1_000) as Millis
  const armed = { timeout_seconds: timeoutSeconds, armed_at: now, fire_at: fireAt }
  draft.write(ACCOUNTS, { kind: 'switch_armed', user_id: userId, ...armed })
  return { kind: 'done', fireAt }
}

// ---------------------------------------------------------------------- of connections

export interface ConnectionSwitch {
  readonly connectionId: string
  readonly userId: UserId
  readonly timeoutSeconds: number
  /** Name of the API key that authenticated the connection; null for an identity token. */
  readonly keyName: string | null
  /**
   * Time from now until the deadline: the timeout, or more if the exchange has asked the client to delay its reconnect.
   */
  readonly fireInMs: number
}

/** Arms or renews switches. A switch that has fired meanwhile is armed again until its connection ends. */
export interface HoldConnectionsCommand {
  readonly kind: 'hold_connections'
  readonly connections: readonly ConnectionSwitch[]
}

/** `refused`: connections of unknown users. */
export interface HeldConnections {
  readonly refused: readonly string[]
}

type ArmedTerms = Pick<ConnectionSwitchRow, 'timeout_seconds' | 'key_name'>

/**
 * Writes rows only for switches that are not armed in the same way: a renewal changes nothing but the deadline.
 */
export const decideHoldConnections: Decider<HoldConnectionsCommand, HeldConnections> = (
  draft,
  _inputs,
  { connections },
) => {
  const { state } = draft
  const refused: string[] = []
  const known = new Map<string, ArmedTerms>()
  for (const { connectionId, userId, timeoutSeconds, keyName } of connections) {
    if (!state.users.has(userId)) {
      refused.push(connectionId)
      continue
    }
    const before = known.get(connectionId) ?? state.connectionSwitches.get(connectionId)
    if (before?.timeout_seconds === timeoutSeconds && (before.key_name ?? null) === keyName) continue
    known.set(connectionId, { timeout_seconds: timeoutSeconds, key_name: keyName })
    draft.write(ACCOUNTS, {
      kind: 'connection_switch_armed',
      connection_id: connectionId,
      user_id: userId,
      timeout_seconds: timeoutSeconds,
      key_name: keyName,
    })
  }
  return { refused }
}

export interface EndConnectionsCommand {
  readonly kind: 'end_connections'
  readonly connections: readonly string[]
}

export const decideEndConnections: Decider<EndConnectionsCommand, null> = (draft, _inputs, command) => {
  const { connectionSwitches } = draft.state
  const connections = command.connections.filter((id) => connectionSwitches.get(id) !== undefined)
  if (connections.length > 0) draft.write(ACCOUNTS, { kind: 'connection_switches_disarmed', connections })
  return null
}

// ---------------------------------------------------------------------- firing

export interface FireSwitchesCommand {
  readonly kind: 'fire_switches'
  /** Due connections with their deadlines. */
  readonly due: readonly { readonly connectionId: string; readonly fireAt: Millis }[]
}

/** Continues to cancel the orders of fired switches in the state. A new owner starts with this command. */
export interface CancelFiredCommand {
  readonly kind: 'cancel_fired'
}

/** Number of orders that the step cancelled. */
export interface FiredAnswer {
  readonly cancelled: number
}

export const decideFireSwitches: Decider<
  FireSwitchesCommand | CancelFiredCommand,
  FiredAnswer,
  CancelFiredCommand
> = (draft, { now }, command) => {
  if (command.kind === 'fire_switches') fire(draft, command, now)
  const fired = firedSwitches(draft.state)
  if (fired.length === 0) return { cancelled: 0 }
  const together = fired.slice(0, MAX_SWITCHES)
  const orders = ordersOfFired(draft.state, together)
  for (const order of orders) end(draft, order, now)
  const isCompleted = orders.length < MAX_ORDERS_PER_STEP
  if (isCompleted) draft.write(ACCOUNTS, { kind: 'switches_completed', fired: together })
  const answer = { cancelled: orders.length }
  const isDone = isCompleted && fired.length === together.length
  return isDone ? answer : new Continued(answer, { kind: 'cancel_fired' as const })
}

/** Whether a fired switch still has orders to cancel. */
export const hasFired = ({ firedSwitches: table }: ExchangeState): boolean => table.size > 0

/** Rows from before keys had names have no name. */
const keyNameOf = (row: ConnectionSwitchRow | undefined): string | null => row?.key_name ?? null

/**
 * Disarms due switches. A connection's switch fires unless a connection of the same account and credential has a switch
 * that is not due.
 */
function fire(draft: Draft, { due }: FireSwitchesCommand, now: Millis): void {
  const { state } = draft
  const accounts = state.switchIndex.due(now)
  const ended = due.flatMap(({ connectionId, fireAt }) => {
    const armed = state.connectionSwitches.get(connectionId)
    if (armed === undefined) return []
    return [{ account: armed.user_id, connectionId, keyName: keyNameOf(armed), fireAt }]
  })
  if (accounts.length + ended.length === 0) return
  const endedIds = new Set(ended.map(({ connectionId }) => connectionId))
  const fired = new Map<string, FiredSwitch>()
  const add = (user_id: number, fired_at: number): void => {
    const key = keyOfFired({ user_id, fired_at })
    if (state.firedSwitches.get(key) === undefined) fired.set(key, { user_id, fired_at })
  }
  for (const { user_id, fire_at } of accounts) add(user_id, fire_at)
  for (const [account, own] of Map.groupBy(ended, (one) => one.account)) {
    const alive = state.switchIndex.connectionsOf(account).filter((id) => !endedIds.has(id))
    const connected = new Set(alive.map((id) => keyNameOf(state.connectionSwitches.get(id))))
    const lost = own.filter(({ keyName }) => !connected.has(keyName))
    if (lost.length > 0) add(account, Math.max(...lost.map(({ fireAt }) => fireAt)))
  }
  draft.write(ACCOUNTS, {
    kind: 'switches_fired',
    fired: [...fired.values()].sort((a, b) => a.user_id - b.user_id || a.fired_at - b.fired_at),
    accounts: accounts.map(({ user_id }) => user_id).sort((a, b) => a - b),
    connections: [...endedIds].sort(),
  })
}

/** Fired switches, oldest first. */
const firedSwitches = (state: ExchangeState): readonly FiredSwitch[] =>
  [...state.firedSwitches.rows()].sort((a, b) => a.fired_at - b.fired_at || a.user_id - b.user_id)

/** At most one step's orders of these accounts that are older than the fired switch, market by market. */
function ordersOfFired(state: ExchangeState, fired: readonly FiredSwitch[]): readonly OrderRow[] {
  const firedAt = new Map(fired.map((one) => [one.user_id as UserId, one.fired_at]))
  const markets = [...state.heads.rows()].map(({ marketId }) => marketId).sort((a, b) => a - b)
  const orders: OrderRow[] = []
  for (const marketId of markets) {
    const own = marketId === ACCOUNTS ? [] : ordersIn(state, marketId, firedAt)
    orders.push(...own.slice(0, MAX_ORDERS_PER_STEP - orders.length))
    if (orders.length === MAX_ORDERS_PER_STEP) break
  }
  return orders
}

function ordersIn(
  state: ExchangeState,
  marketId: MarketId,
  firedAt: ReadonlyMap<UserId, number>,
): readonly OrderRow[] {
  const orders: OrderRow[] = []
  for (const [account, at] of firedAt) {
    if (state.exposures.of(marketId, account).orders === 0) continue
    for (const order of state.orderIndex.liveOf(marketId, account))
      if (isClosable(order) && !order.forced && order.acceptedAt <= at) orders.push(order)
  }
  return orders.sort((a, b) => a.seq - b.seq)
}

function end(draft: Draft, order: OrderRow, now: Millis): void {
  const orderId = orderIdOf(order.marketId, order.accepted)
  draft.write(order.marketId, leaveBook({ ...order, orderId, closedBy: null }, 'DEAD_MAN_SWITCH', now).row)
}
