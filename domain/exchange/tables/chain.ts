/**
 * Rows of changes by owners, signers and the chain besides positions:
 * keys, nonces, relays, adjustments, liquidations and funding.
 */
import type { RelayRequest, SessionKeyState } from '../../journal/accounts-row.ts'
import type { AdjustmentChanged, AdjustmentRequest } from '../../journal/adjustment-row.ts'
import type { Wei } from '../../journal/wei.ts'
import type { RelayFailure, RelayKind, RelayStatus } from '../../relays/operation.ts'
import type { RunningLiquidation } from '../../risk/running-liquidation.ts'
import { DocumentTable } from '../document-table.ts'
import type { StateCore } from '../table.ts'

export interface SessionKeyRow extends SessionKeyState {
  readonly owner: string
  readonly key: string
  /** Block of the last change. */
  readonly block: number
}

/** Next nonce of a signer at the forwarder; 0 for a signer without a row. */
export interface ForwarderNonceRow {
  readonly signer: string
  readonly next_nonce: number
  readonly block: number
}

/** The account's adjustments with a lower nonce are invalid. */
export interface NonceFloorRow {
  readonly market_id: number
  readonly account: string
  readonly minimum: Wei
  readonly block: number
}

/** The chain executed an adjustment with this nonce. */
export interface UsedNonceRow {
  readonly market_id: number
  readonly user_id: number
  readonly nonce: Wei
}

export interface RelayRow extends RelayRequest {
  readonly operation_id: string
  readonly user_id: number
  readonly kind: RelayKind
  readonly session_key: string | null
  readonly market_id: number | null
  readonly status: RelayStatus
  readonly failure: RelayFailure | null
  readonly reason: string | null
  readonly relayer: string | null
  readonly relayer_nonce: number | null
  readonly tx_hash: string | null
  readonly block: number | null
  readonly created_at: number
  readonly updated_at: number
}

export interface AttemptRow extends AdjustmentRequest {
  readonly adjustment_id: string
  readonly market_id: number
  readonly user_id: number
  readonly kind: AdjustmentChanged['adjustment']
  readonly status: AdjustmentChanged['status']
  readonly held: Wei
  readonly as_of: number | null
  readonly relayer: string | null
  readonly relayer_nonce: number | null
  readonly tx_hash: string | null
  readonly moved: Wei | null
  readonly max_removable: Wei | null
  readonly gas_used: number | null
  readonly failure_kind: AdjustmentChanged['failure_kind']
  readonly failure_reason: string | null
  /** Sequence of the liquidation's last row in the market's journal. */
  readonly seq: number
  readonly created_at: number
  readonly updated_at: number
}

export interface LiquidationRow extends RunningLiquidation {
  readonly marketId: number
}

/** Market funding after a mined action that changed it. The row with the highest action id is in force. */
export interface FundingRow {
  readonly market_id: number
  readonly action_id: number
  readonly as_of: number
  readonly funding_index: Wei
  readonly rate: Wei
  readonly valid_from: number
  readonly valid_until: number
}

/** End of the bank's last pause in Unix seconds; without a row there was no pause. */
export interface BankRow {
  readonly pause_ends_at: number
}

export const keyOfSessionKey = ({ owner, key }: Pick<SessionKeyRow, 'owner' | 'key'>): string =>
  `${owner}-${key}`

export const keyOfFloor = ({ market_id, account }: Pick<NonceFloorRow, 'market_id' | 'account'>): string =>
  `${market_id}-${account}`

export const keyOfNonce = ({ market_id, user_id, nonce }: UsedNonceRow): string =>
  `${market_id}-${user_id}-${nonce}`

export const keyOfLiquidation = (marketId: number, account: number): string => `${marketId}-${account}`

export const keyOfFunding = ({ market_id, action_id }: Pick<FundingRow, 'market_id' | 'action_id'>): string =>
  `${market_id}-${action_id}`

export const BANK = 'bank'

export const createChainTables = (core: StateCore) => ({
  sessionKeys: new DocumentTable<SessionKeyRow>(core, {
    name: 'session keys',
    seed: 13,
    keyOf: keyOfSessionKey,
  }),
  forwarderNonces: new DocumentTable<ForwarderNonceRow>(core, {
    name: 'forwarder nonces',
    seed: 14,
    keyOf: ({ signer }) => signer,
  }),
  nonceFloors: new DocumentTable<NonceFloorRow>(core, { name: 'nonce floors', seed: 15, keyOf: keyOfFloor }),
  usedNonces: new DocumentTable<UsedNonceRow>(core, { name: 'used nonces', seed: 16, keyOf: keyOfNonce }),
  relays: new DocumentTable<RelayRow>(core, {
    name: 'relays',
    seed: 17,
    keyOf: ({ operation_id }) => operation_id,
  }),
  attempts: new DocumentTable<AttemptRow>(core, {
    name: 'adjustment attempts',
    seed: 18,
    keyOf: ({ adjustment_id }) => adjustment_id,
  }),
  liquidations: new DocumentTable<LiquidationRow>(core, {
    name: 'liquidations',
    seed: 19,
    keyOf: ({ marketId, account }) => keyOfLiquidation(marketId, account),
  }),
  fundings: new DocumentTable<FundingRow>(core, { name: 'funding states', seed: 20, keyOf: keyOfFunding }),
  bank: new DocumentTable<BankRow>(core, { name: 'bank', seed: 21, keyOf: () => BANK }),
})

export type ChainTables = ReturnType<typeof createChainTables>
