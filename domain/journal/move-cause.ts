/**
 * Why positions changed outside batches: inherited by the backstop; deleveraged; adjusted by the owner; or, after the market's end, reported
 * as a deficit, covered or claimed.
 */
export type MoveCause =
  | 'inherited'
  | 'deleveraged'
  | 'margin_adjusted'
  | 'leverage_adjusted'
  | 'insolvency_reported'
  | 'deficit_covered'
  | 'claimed'

/** Whether the owner of the position has adjusted it: its size stays. */
export const isAdjustment = ({ cause }: { readonly cause: MoveCause }): boolean =>
  cause === 'margin_adjusted' || cause === 'leverage_adjusted'
