/**
 * The operator's actions in a market. The contract executes them in the order of their action ids; `asOf` is
 * the time at which each one takes effect.
 */
import type { Feed } from '../prices/feed.ts'
import type { OracleReport } from '../settlement/settlement.ts'
import type { Address, HourlyFunding, Millis, Price, Steps } from '../units.ts'

/** Report of the session feed: end of the running session; 0 outside a session. */
export interface SessionReport {
  readonly endsAt: Millis
  readonly observedAt: Millis
  readonly signatures: `0x${string}`
}

/** Sets the funding rate that applies from `asOf` until `validUntil`. */
export interface UpdateFunding {
  readonly kind: 'update_funding'
  readonly asOf: Millis
  readonly rate: HourlyFunding
  readonly validUntil: Millis
  readonly report: OracleReport
  /** Null if the market has no session. */
  readonly session: SessionReport | null
}

/** Moves the whole position of `account` to the backstop. */
export interface InheritPosition {
  readonly kind: 'inherit_position'
  readonly asOf: Millis
  readonly account: Address
  /** The market's backstop when the action was queued. */
  readonly backstop: Address
  readonly report: OracleReport
}

/** Closes the position of `account` against the counterparties, in list order. */
export interface Deleverage {
  readonly kind: 'deleverage'
  readonly asOf: Millis
  readonly account: Address
  readonly legs: readonly { readonly counterparty: Address; readonly steps: Steps }[]
  readonly report: OracleReport
}

/** Ends the market at the final report in force on the contract. */
export interface FinalizeMarket {
  readonly kind: 'finalize_market'
  readonly asOf: Millis
  /** The final report in force when the action was queued. */
  readonly report: OracleReport
}

/** An action that is not part of a batch. */
export type SingleAction = UpdateFunding | InheritPosition | Deleverage | FinalizeMarket

/** One part of a batch in the queue. Terms and fills are copied from the batch. */
export interface QueuedPart {
  readonly kind: 'settle_part'
  readonly asOf: Millis
  readonly batchId: number
  /** From 1 to `parts`. */
  readonly part: number
  readonly parts: number
  readonly report: Pick<OracleReport, 'price' | 'observedAt'>
}

export type QueuedAction = QueuedPart | SingleAction
export type ActionKind = QueuedAction['kind']
export type SingleKind = SingleAction['kind']

export const ACTION_KINDS: readonly ActionKind[] = [
  ...(['settle_part', 'update_funding', 'inherit_position', 'deleverage', 'finalize_market'] as const),
]

/** The price report that becomes the market's last report when the action executes; null if there is none. */
export const reportOf = (action: QueuedAction): { price: Price; observedAt: Millis } | null =>
  action.kind === 'finalize_market' ? null : action.report

/** Every report that a single action uses, with its feed. */
export function reportsOf(
  action: SingleAction,
): readonly { readonly feed: Feed; readonly report: OracleReport }[] {
  const { kind, report } = action
  if (kind === 'finalize_market') return [{ feed: 'final', report }]
  const index = { feed: 'index' as const, report }
  if (kind !== 'update_funding' || action.session === null) return [index]
  const { endsAt, observedAt, signatures } = action.session
  return [index, { feed: 'session', report: { price: BigInt(endsAt) as Price, observedAt, signatures } }]
}

/** Accounts with a position that the action may change; for a part, the makers of its fills. */
export function touchedAccounts(action: SingleAction): readonly Address[] {
  switch (action.kind) {
    case 'inherit_position':
      return [action.account, action.backstop]
    case 'deleverage':
      return [action.account, ...action.legs.map(({ counterparty }) => counterparty)]
    default:
      return []
  }
}
