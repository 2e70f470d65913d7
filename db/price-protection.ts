/** How tables store the width of a market's price protection and its announced change. */
import type { ProtectionSchedule } from '../domain/market/price-protection.ts'
import type { Millis, Rate } from '../domain/units.ts'

export interface ProtectionColumns {
  price_protection: bigint
  /** The announced width, in force from `next_price_protection_at` on; both are null if none is announced. */
  next_price_protection: bigint | null
  next_price_protection_at: number | null
}

export const toSchedule = (row: ProtectionColumns): ProtectionSchedule => ({
  inForce: row.price_protection as Rate,
  next:
    row.next_price_protection === null || row.next_price_protection_at === null
      ? null
      : { width: row.next_price_protection as Rate, at: row.next_price_protection_at as Millis },
})
