/** Uses of nonces: the first transaction signed with a nonce, and then its replacements. */
import { CHAIN } from '../../apply.ts'
import type { Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import type { ExchangeState } from '../../state.ts'
import { keyOfTransaction } from '../../tables/blocks.ts'

export interface FirstSignature {
  readonly relayer: string
  readonly nonce: number
  readonly hash: string
  readonly purpose: string
}

/** Whether the lane has assigned the nonce. */
export const isAssigned = (state: ExchangeState, relayer: string, nonce: number): boolean =>
  nonce < (state.lanes.get(relayer)?.next_nonce ?? 0)

/**
 * False if another transaction, for example a no-op, was signed with the nonce before, or if the nonce is not assigned.
 */
export function signFirst(draft: Draft, { now }: Inputs, signature: FirstSignature): boolean {
  const { relayer, nonce, hash, purpose } = signature
  const { state } = draft
  const attempt = 1
  const first = state.transactions.get(keyOfTransaction({ relayer, nonce, attempt }))
  if (first !== undefined) return first.tx_hash === hash
  if (!isAssigned(state, relayer, nonce)) return false
  draft.write(CHAIN, { kind: 'transaction_signed', relayer, nonce, attempt, tx_hash: hash, purpose, at: now })
  return true
}
