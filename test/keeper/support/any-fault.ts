/** What traders match, what is queued, and what node, keys and clock do in a fault run. */
import fc from 'fast-check'
import type { Side } from '../../../domain/orders/order.ts'
import type { Shares } from '../../support/legal-deleveraging.ts'

export type Fault =
  /** A batch between alice and bob; if `isBad`, the buy is signed with a key that has no right to sign. */
  | { readonly kind: 'match'; readonly steps: number; readonly isBad: boolean }
  /** Buys that rest below the price and expire together, one second later. */
  | { readonly kind: 'expire'; readonly count: number }
  /** A funding update; if `isBad`, of a rate above the market's bound. */
  | { readonly kind: 'fund'; readonly isBad: boolean }
  /** Carol buys with the highest leverage, the price falls by 3 %, and the backstop inherits; then the price is back. */
  | { readonly kind: 'liquidate' }
  /**
   * Dave opens with the highest leverage, the price moves beyond the margin, and an account without equity is closed against some of its
   * counterparties; then the price is back. `moved`: ticks.
   */
  | {
      readonly kind: 'deleverage_insolvent'
      readonly side: Side
      readonly moved: number
      readonly shares: Shares
    }
  /**
   * Dave opens with the highest leverage, the price falls below the liquidation threshold, and a forced order closes this long, and others
   * that crossed it, as far as bob bids; then the price is back. `bid`: steps. `turns`: of the keeper at the low price.
   */
  | { readonly kind: 'force'; readonly bid: number; readonly turns: number }
  /** An action that the contract refuses: alice's position is healthy, and the market is not settling. */
  | { readonly kind: 'inherit' | 'deleverage' | 'finalize' }
  | { readonly kind: 'step' | 'follow' | 'foreign' | 'restart' }
  /** The last blocks are replaced; if `isForeign`, by one with a transaction of the relayer's key that the keeper has not signed. */
  | { readonly kind: 'fork'; readonly depth: number; readonly isForeign: boolean }
  | { readonly kind: 'clock'; readonly ms: number }

const kind = <K extends string>(...names: readonly K[]) => fc.constantFrom(...names)
const rarely = fc.constantFrom(false, false, true)

/** The margin at the highest leverage is 50 ticks. */
const insolvency = fc.record({
  kind: kind('deleverage_insolvent'),
  side: fc.constantFrom<Side>('LONG', 'SHORT'),
  moved: fc.integer({ min: 52, max: 60 }),
  shares: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 }),
})

/** Of the chain, of the relayer's key, of the keeper's process and of its clock. */
const aroundActions = [
  { weight: 8, arbitrary: fc.record({ kind: kind('step') }) },
  { weight: 4, arbitrary: fc.record({ kind: kind('follow') }) },
  { weight: 3, arbitrary: fc.record({ kind: kind('foreign', 'foreign', 'restart') }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: kind('fork'), depth: fc.integer({ min: 1, max: 8 }), isForeign: rarely }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: kind('clock'), ms: fc.constantFrom(5_000, 3_600_000, -5_000, -3_600_000) }),
  },
]

export const anyFault = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: kind('match'), steps: fc.integer({ min: 1, max: 20 }), isBad: rarely }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind('expire'), count: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('fund'), isBad: rarely }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('liquidate') }) },
  {
    weight: 3,
    arbitrary: fc.record({
      ...{ kind: kind('force'), bid: fc.integer({ min: 10, max: 40 }) },
      turns: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('inherit', 'deleverage', 'finalize') }) },
  { weight: 3, arbitrary: insolvency },
  ...aroundActions,
) as fc.Arbitrary<Fault>

/** While only the last action of a market is left to be mined. */
export const anyLateFault = fc.oneof(...aroundActions) as fc.Arbitrary<Fault>
