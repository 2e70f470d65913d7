/** The input that the engine would have for the admission of a placement. */
import type { MarketSpec } from '../../domain/market/market.ts'
import type { AdmissionInput } from '../../domain/orders/admission.ts'
import type { UserId } from '../../domain/units.ts'
import { commandRefusalError, itemRefusalError } from '../commands/engine-refusals.ts'
import type { EngineCalls } from '../engine-reply.ts'

/** The input that admission would have for a placement of the account now. */
export type AdmissionInputOf = (spec: MarketSpec, userId: number) => Promise<AdmissionInput>

export const createAdmissionInputs =
  (engine: EngineCalls): AdmissionInputOf =>
  async ({ marketId }, userId) => {
    const answer = await engine.ask({ kind: 'admission_input', userId: userId as UserId, marketId })
    if (answer.ok) return answer.value
    const { refusal } = answer
    throw refusal.code === 'CHAIN_UNSEEN' ? itemRefusalError(refusal) : commandRefusalError(refusal, [])
  }
