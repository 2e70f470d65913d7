/** Rows of the accounts' journal about dead-man switches and the nonces of relayers. */

/** An account has armed its switch, in place of one that was armed. Times in milliseconds. */
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

/** A connection to the live feed has armed its switch. Renewals, and with them the time at which it fires, are in no row. */
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

/** The switch of an account has fired, and when. */
export interface FiredSwitch {
  readonly user_id: number
  readonly fired_at: number
}

/** Switches that were due are no longer armed. */
export interface SwitchesFired {
  readonly kind: 'switches_fired'
  /** Orders that these accounts have placed until then are to be cancelled. */
  readonly fired: readonly FiredSwitch[]
  /** Accounts whose own switch was due. */
  readonly accounts: readonly number[]
  /** Connections whose switch was due. It fires nothing while another connection of the same credential is alive. */
  readonly connections: readonly string[]
}

/** All orders of these fired switches are cancelled. */
export interface SwitchesCompleted {
  readonly kind: 'switches_completed'
  readonly fired: readonly FiredSwitch[]
}

/** A relayer's key signs for a lane, from this nonce on unless higher ones are assigned. */
export interface LaneRegistered {
  readonly kind: 'lane_registered'
  readonly relayer: string
  readonly chain_id: number
  readonly lane: string
  readonly next_nonce: number
}

/** Nonces of the relayer are assigned to transactions that are not actions of a market; `next_nonce` is the first free one after them. */
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
