/** Accounts rows about dead-man switches and relayer nonces. */

/** An account armed its switch, replacing an armed switch. Times in milliseconds. */
export interface SwitchArmed {
  readonly kind: 'switch_armed'
  readonly user_id: number
  readonly timeout_seconds: number
  readonly armed_at: number
  readonly fire_at: number
}

export interface SwitchDisarmed {
  readonly kind: 'switch_disarmed'
  readonly user_id: number
}

/** A connection to the live feed armed its switch. No row states renewals or the resulting deadline. */
export interface ConnectionSwitchArmed {
  readonly kind: 'connection_switch_armed'
  readonly connection_id: string
  readonly user_id: number
  readonly timeout_seconds: number
  /** Name of the API key that authenticated the connection; absent or null for an identity token. */
  readonly key_name?: string | null
}

export interface ConnectionSwitchesDisarmed {
  readonly kind: 'connection_switches_disarmed'
  readonly connections: readonly string[]
}

/** A fired switch of an account, with the time. */
export interface FiredSwitch {
  readonly user_id: number
  readonly fired_at: number
}

/** Due switches were disarmed. */
export interface SwitchesFired {
  readonly kind: 'switches_fired'
  /** Accounts with the times of their fired switches; orders placed until then must be cancelled. */
  readonly fired: readonly FiredSwitch[]
  /** Accounts with a due account switch. */
  readonly accounts: readonly number[]
  /**
   * Connections with a due switch. A switch fires nothing while another connection of the same credential is alive.
   */
  readonly connections: readonly string[]
}

/** All orders of these fired switches are cancelled. */
export interface SwitchesCompleted {
  readonly kind: 'switches_completed'
  readonly fired: readonly FiredSwitch[]
}

/** A relayer key signs for a lane, from this nonce on unless higher nonces are assigned. */
export interface LaneRegistered {
  readonly kind: 'lane_registered'
  readonly relayer: string
  readonly chain_id: number
  readonly lane: string
  readonly next_nonce: number
}

/**
 * Relayer nonces were assigned to transactions other than market actions. `next_nonce` is the first free
 * nonce after them.
 */
export interface NoncesAssigned {
  readonly kind: 'nonces_assigned'
  readonly relayer: string
  readonly next_nonce: number
}

export type SwitchRow =
  | SwitchArmed
  | SwitchDisarmed
  | ConnectionSwitchArmed
  | ConnectionSwitchesDisarmed
  | SwitchesFired
  | SwitchesCompleted
  | LaneRegistered
  | NoncesAssigned
