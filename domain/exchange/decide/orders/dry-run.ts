/**
 * Dry run: decides placements without effect, and returns the admission input.
 * Both use the state on which a placement would be decided now.
 */
import type { AdmissionInput } from '../../../orders/admission.ts'
import type { MarketId, UserId } from '../../../units.ts'
import { refuse, type Verdict } from '../../../verdict.ts'
import type { Decider } from '../../decide.ts'
import { listedSpec } from '../../market-terms.ts'
import type { CommandRefusal, OrdersAnswer, OrdersCommand, PlaceRefusal } from './command.ts'
import { decideOrders } from './decide-orders.ts'
import { admissionInput } from './place.ts'

/** A dry run of placements; the answer equals the answer to a command with these items. */
export interface DryRunCommand extends Omit<OrdersCommand, 'kind'> {
  readonly kind: 'dry_run'
}

export interface AdmissionInputCommand {
  readonly kind: 'admission_input'
  readonly userId: UserId
  readonly marketId: MarketId
}

export type AdmissionInputAnswer = Verdict<
  AdmissionInput,
  | Extract<CommandRefusal, { readonly code: 'USER_NOT_FOUND' | 'MARKET_NOT_FOUND' }>
  | Extract<PlaceRefusal, { readonly code: 'CHAIN_UNSEEN' }>
>

export const decideDryRun: Decider<DryRunCommand, OrdersAnswer> = (draft, inputs, command) =>
  draft.attempt(
    () => decideOrders(draft, inputs, { ...command, kind: 'orders' }) as OrdersAnswer,
    () => false,
  )

export const readAdmissionInput: Decider<AdmissionInputCommand, AdmissionInputAnswer> = (
  { state },
  inputs,
  { userId, marketId },
) => {
  if (!state.users.has(userId)) return refuse({ code: 'USER_NOT_FOUND', received: userId })
  if (listedSpec(state, marketId) === undefined)
    return refuse({ code: 'MARKET_NOT_FOUND', received: marketId })
  return admissionInput(state, inputs, marketId, userId)
}
