/** A signed adjustment, and its form in JSON: amounts are decimal strings. */
import type { StoredAdjustment } from '../journal/adjustment-row.ts'
import type { Address, Quote, Seconds } from '../units.ts'
import { type Adjustment, isLeverage } from './adjustment-attempt.ts'

export interface SignedAdjustment {
  readonly adjustment: Adjustment
  readonly signer: Address
  readonly signature: string
  readonly deadline: Seconds
}

export function toStored({ adjustment, signer, signature, deadline }: SignedAdjustment): StoredAdjustment {
  const common = { signer, signature, deadline }
  if (isLeverage(adjustment)) {
    const { leverage, maxMarginIn, minMarginOut } = adjustment
    return { ...common, leverage, max_margin_in: `${maxMarginIn}`, min_margin_out: `${minMarginOut}` }
  }
  const { amount, removeMode, minAmount } = adjustment
  return { ...common, amount: `${amount}`, remove_mode: removeMode, min_amount: `${minAmount}` }
}

const wei = (amount: string | undefined): Quote => BigInt(amount ?? 0) as Quote

export function fromStored(stored: StoredAdjustment): SignedAdjustment {
  const { signer, signature, deadline, leverage, amount, remove_mode = 'exact' } = stored
  const common = { signer: signer as Address, signature, deadline: deadline as Seconds }
  if (leverage !== undefined) {
    const bounds = { maxMarginIn: wei(stored.max_margin_in), minMarginOut: wei(stored.min_margin_out) }
    return { ...common, adjustment: { leverage, ...bounds } }
  }
  const change = { amount: wei(amount), removeMode: remove_mode, minAmount: wei(stored.min_amount) }
  return { ...common, adjustment: change }
}
