/**
 * A market's on-chain parameters and mode with announced changes, and the changes in force at a given time.
 * Twin of `changed` in ActionLib and of the announcements in ChangeLib.
 */
import { type Closing, modeAt } from '../risk/ending.ts'
import type { Millis } from '../units.ts'
import type { MarketMode, MarketSpec } from './market.ts'
import { isStricter, type MarketParameters, stricterOf } from './parameters.ts'

export interface ParametersChange {
  readonly parameters: MarketParameters
  /** The change applies to actions with `asOf` at or after this time. */
  readonly activeFrom: Millis
}

export interface ModeChange {
  readonly mode: MarketMode
  readonly activeFrom: Millis
}

/** Terms that the contract stores. A due change stays pending until an action stores it. */
export interface ChainTerms {
  readonly parameters: MarketParameters
  readonly mode: MarketMode
  readonly pending: {
    readonly parameters: ParametersChange | null
    readonly mode: ModeChange | null
    /** Restriction by the guardian, which can only make the mode stricter. */
    readonly restriction: ModeChange | null
  }
}

export const NO_CHANGES: ChainTerms['pending'] = { parameters: null, mode: null, restriction: null }

/** Terms of a newly listed market. */
export const listedTerms = (parameters: MarketParameters): ChainTerms => ({
  parameters,
  mode: 'open',
  pending: NO_CHANGES,
})

const isDue = (change: { readonly activeFrom: Millis } | null, asOf: Millis): boolean =>
  change !== null && asOf >= change.activeFrom

/**
 * Terms after the changes due at `asOf`; later changes stay pending. Returns the same object if no change is
 * due.
 */
export function applyDue(terms: ChainTerms, asOf: Millis): ChainTerms {
  const { parameters, mode, restriction } = terms.pending
  const due = [parameters, mode, restriction].some((change) => isDue(change, asOf))
  if (!due) return terms
  // A restriction drops a laxer mode announced before it. A pending laxer mode was announced after the
  // restriction and replaces it.
  const restricted = isDue(restriction, asOf)
    ? stricterOf(terms.mode, (restriction as ModeChange).mode)
    : terms.mode
  return {
    parameters: isDue(parameters, asOf) ? (parameters as ParametersChange).parameters : terms.parameters,
    mode: isDue(mode, asOf) ? (mode as ModeChange).mode : restricted,
    pending: {
      parameters: isDue(parameters, asOf) ? null : parameters,
      mode: isDue(mode, asOf) ? null : mode,
      restriction: isDue(restriction, asOf) ? null : restriction,
    },
  }
}

// ---------------------------------------------------------------------- events of the contract

export type TermsEvent =
  | { readonly kind: 'parameters_scheduled'; readonly change: ParametersChange }
  | { readonly kind: 'schedule_cancelled' }
  | { readonly kind: 'mode_scheduled'; readonly change: ModeChange }
  | { readonly kind: 'mode_restricted'; readonly change: ModeChange }
  /** Changes due at `asOf` are stored. The event's parameters and mode are authoritative. */
  | {
      readonly kind: 'changes_applied'
      readonly parameters: MarketParameters
      readonly mode: MarketMode
      readonly asOf: Millis
    }

/** Terms after the event. The contract stored earlier due changes with an event of their own. */
export function afterEvent(terms: ChainTerms, event: TermsEvent): ChainTerms {
  const { pending } = terms
  switch (event.kind) {
    case 'parameters_scheduled':
      return { ...terms, pending: { ...pending, parameters: event.change } }
    case 'schedule_cancelled':
      return { ...terms, pending: { ...pending, parameters: null } }
    case 'mode_scheduled':
      return { ...terms, pending: { ...pending, mode: event.change } }
    case 'mode_restricted': {
      const isDropped = pending.mode !== null && isStricter(event.change.mode, pending.mode.mode)
      return {
        ...terms,
        pending: { ...pending, restriction: event.change, mode: isDropped ? null : pending.mode },
      }
    }
    case 'changes_applied':
      return { ...applyDue(terms, event.asOf), parameters: event.parameters, mode: event.mode }
  }
}

// ---------------------------------------------------------------------- in force

/** Market terms as stored in the database. */
export interface TermsState {
  /** The exchange's own restriction, for example after a mismatch. The contract does not store it. */
  readonly mode: MarketMode
  readonly chain: ChainTerms
  readonly closing: Closing
}

/**
 * Mode in force: the stricter of the contract's mode and the exchange's restriction; settling from the close
 * on.
 */
export const modeInForce = ({ mode, chain, closing }: TermsState, asOf: Millis): MarketMode =>
  modeAt(stricterOf(mode, applyDue(chain, asOf).mode), closing, asOf)

/** Specification with the parameters in force. Returns the same object while the listed parameters apply. */
export function specAt(listed: MarketSpec, chain: ChainTerms, asOf: Millis): MarketSpec {
  const { parameters } = applyDue(chain, asOf)
  if (isAsListed(listed, parameters)) return listed
  const { reports: _, ...inForce } = parameters
  return { ...listed, ...inForce }
}

/** Compared without intermediate objects: every order of a batch asks for the terms in force. */
function isAsListed(listed: MarketSpec, parameters: MarketParameters): boolean {
  for (const name of Object.keys(parameters) as (keyof MarketParameters)[])
    if (name !== 'reports' && parameters[name] !== listed[name]) return false
  return true
}

// ---------------------------------------------------------------------- announced

/** An announced change that is not in force yet. */
export type UpcomingChange =
  | ({ readonly kind: 'parameters' } & ParametersChange)
  | ({ readonly kind: 'mode' } & ModeChange)
  /** The market closes: at its expiry, or at the scheduled mode settling. */
  | { readonly kind: 'wind_down'; readonly activeFrom: Millis }

/** Announced changes that are not in force at `at`, earliest first. */
export function upcomingChanges({ chain, closing }: TermsState, at: Millis): UpcomingChange[] {
  const { parameters, mode, restriction } = applyDue(chain, at).pending
  const modes = [mode, restriction].filter((change) => change !== null)
  const close = closing.settlingAt
  const changes: UpcomingChange[] = [
    ...(parameters === null ? [] : [{ kind: 'parameters' as const, ...parameters }]),
    ...modes
      .filter((change) => change.mode !== 'settling')
      .map((change) => ({ kind: 'mode' as const, ...change })),
    ...(close > at ? [{ kind: 'wind_down' as const, activeFrom: close }] : []),
  ]
  return changes.sort((a, b) => a.activeFrom - b.activeFrom)
}
