/** Rows of dead-man switches and of relayer nonces. */
import { DocumentTable } from '../document-table.ts'
import type { StateCore } from '../table.ts'

export interface SwitchRow {
  readonly user_id: number
  readonly timeout_seconds: number
  readonly armed_at: number
  readonly fire_at: number
}

/** An armed switch of a connection. Its deadline depends on renewals, which are not in the state. */
export interface ConnectionSwitchRow {
  readonly connection_id: string
  readonly user_id: number
  readonly timeout_seconds: number
  /** Name of the API key that authenticated the connection; null for an identity token. */
  readonly key_name: string | null
}

/** A fired switch. The row lives until every order that the account had at that time is cancelled. */
export interface FiredSwitchRow {
  readonly user_id: number
  readonly fired_at: number
}

/** A relayer's key; lane and chain are null before it is registered. */
export interface LaneRow {
  readonly relayer: string
  readonly chain_id: number | null
  readonly lane: string | null
  readonly next_nonce: number
}

export const keyOfFired = ({ user_id, fired_at }: FiredSwitchRow): string => `${user_id}-${fired_at}`

export const createSwitchTables = (core: StateCore) => ({
  switches: new DocumentTable<SwitchRow>(core, {
    name: 'switches',
    seed: 23,
    keyOf: ({ user_id }) => String(user_id),
  }),
  connectionSwitches: new DocumentTable<ConnectionSwitchRow>(core, {
    name: 'connection switches',
    seed: 24,
    keyOf: ({ connection_id }) => connection_id,
  }),
  firedSwitches: new DocumentTable<FiredSwitchRow>(core, {
    name: 'fired switches',
    seed: 25,
    keyOf: keyOfFired,
  }),
  lanes: new DocumentTable<LaneRow>(core, { name: 'lanes', seed: 26, keyOf: ({ relayer }) => relayer }),
})

export type SwitchTables = ReturnType<typeof createSwitchTables>
