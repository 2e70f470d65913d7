/** The rules by which the keeper's side of a simulated market decides: those of `domain/`. A test replaces one to see a law notice it. */

import { clearAndMatch } from '../domain/auction/batch.ts'
import { decideBatch, heldFor } from '../domain/auction/batch-plan.ts'
import { admit } from '../domain/orders/admission.ts'
import { endsWith } from '../domain/orders/position-closing.ts'
import { recomputeReservations } from '../domain/orders/recompute-reservations.ts'
import { nextStep } from '../domain/risk/ladder.ts'
import type { MarketPositions } from '../domain/risk/market-positions.ts'
import type { RiskPrices } from '../domain/risk/score-bounds.ts'
import type { UserId } from '../domain/units.ts'

export interface Rules {
  readonly admit: typeof admit
  readonly clearAndMatch: typeof clearAndMatch
  readonly decideBatch: typeof decideBatch
  /** After an action has moved a position. After a batch, `decideBatch` recomputes. */
  readonly recomputeReservations: typeof recomputeReservations
  readonly endsWith: typeof endsWith
  readonly liquidatable: (positions: MarketPositions, prices: RiskPrices) => Iterable<UserId>
  readonly nextStep: typeof nextStep
  /** Widenings of a forced order after a batch that has filled none of it. */
  readonly widen: (widenings: number) => number
  /** Amount that a fill holds until it is mined. */
  readonly heldFor: typeof heldFor
}

export const RULES: Rules = {
  ...{ admit, clearAndMatch, decideBatch, heldFor, recomputeReservations, endsWith, nextStep },
  liquidatable: (positions, prices) => positions.scanner.liquidatable(prices, positions.of),
  widen: (widenings) => widenings + 1,
}
