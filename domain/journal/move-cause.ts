/**
 * Causes of position changes outside batches: inheritance, deleveraging, or adjustment by the owner;
 * after the market's end, a reported deficit, a coverage, or a claim.
 */
export type MoveCause =
  | 'inherited'
  | 'deleveraged'
  | 'margin_adjusted'
  | 'leverage_adjusted'
  | 'insolvency_reported'
  | 'deficit_covered'
  | 'claimed'

/** Whether the position's owner adjusted it; the size then stays. */
export const isAdjustment = ({ cause }: { readonly cause: MoveCause }): boolean =>
  cause === 'margin_adjusted' || cause === 'leverage_adjusted'
