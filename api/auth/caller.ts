/** The authenticated account of a request. */
import type { Address } from '../../domain/units.ts'

export interface Caller {
  readonly userId: number
  readonly address: Address
}
