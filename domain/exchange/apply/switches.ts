/** Applies rows of dead-man switches and relayer nonces. */
import type {
  ConnectionSwitchArmed,
  ConnectionSwitchesDisarmed,
  LaneRegistered,
  NoncesAssigned,
  SwitchArmed,
  SwitchDisarmed,
  SwitchesCompleted,
  SwitchesFired,
} from '../../journal/switch-rows.ts'
import type { ExchangeState } from '../state.ts'
import { keyOfFired } from '../tables/switches.ts'

/** Rows of several shards assign nonces, so the highest nonce wins, independent of the interleaving. */
export function assignNonces(state: ExchangeState, relayer: string, nextNonce: number): void {
  const lane = state.lanes.get(relayer) ?? { relayer, chain_id: null, lane: null, next_nonce: 0 }
  if (nextNonce > lane.next_nonce) state.lanes.put({ ...lane, next_nonce: nextNonce })
}

function registerLane(state: ExchangeState, { relayer, chain_id, lane, next_nonce }: LaneRegistered): void {
  const before = state.lanes.get(relayer)?.next_nonce ?? 0
  state.lanes.put({ relayer, chain_id, lane, next_nonce: Math.max(before, next_nonce) })
}

function fireSwitches(state: ExchangeState, { fired, accounts, connections }: SwitchesFired): void {
  for (const account of accounts) state.switches.remove(String(account))
  for (const connection of connections) state.connectionSwitches.remove(connection)
  for (const { user_id, fired_at } of fired) state.firedSwitches.put({ user_id, fired_at })
}

export const SWITCH_HANDLERS = {
  switch_armed: (state: ExchangeState, { user_id, timeout_seconds, armed_at, fire_at }: SwitchArmed) =>
    state.switches.put({ user_id, timeout_seconds, armed_at, fire_at }),
  switch_disarmed: (state: ExchangeState, { user_id }: SwitchDisarmed) =>
    state.switches.remove(String(user_id)),
  connection_switch_armed: (
    state: ExchangeState,
    { connection_id, user_id, timeout_seconds, key_name = null }: ConnectionSwitchArmed,
  ) => state.connectionSwitches.put({ connection_id, user_id, timeout_seconds, key_name }),
  connection_switches_disarmed(state: ExchangeState, { connections }: ConnectionSwitchesDisarmed): void {
    for (const connection of connections) state.connectionSwitches.remove(connection)
  },
  switches_fired: fireSwitches,
  switches_completed(state: ExchangeState, { fired }: SwitchesCompleted): void {
    for (const one of fired) state.firedSwitches.remove(keyOfFired(one))
  },
  lane_registered: registerLane,
  nonces_assigned: (state: ExchangeState, { relayer, next_nonce }: NoncesAssigned) =>
    assignNonces(state, relayer, next_nonce),
}
