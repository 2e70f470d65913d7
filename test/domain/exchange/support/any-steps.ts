/** Steps of random trading in two markets. */
import fc from 'fast-check'

export const USERS = 4
export type Step =
  | {
      readonly kind: 'place'
      readonly market: number
      readonly by: number
      readonly isLong: boolean
      readonly steps: number
    }
  | { readonly kind: 'cancel'; readonly pick: number }
  | { readonly kind: 'match'; readonly market: number; readonly steps: number }
  | { readonly kind: 'settle' | 'void' | 'rollback' | 'confirm'; readonly pick: number }
  | { readonly kind: 'deposit'; readonly by: number; readonly amount: number }
  | { readonly kind: 'arm'; readonly by: number }
  | { readonly kind: 'release'; readonly market: number }

export const anySteps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('place' as const),
        market: fc.nat(1),
        by: fc.nat(USERS - 1),
        isLong: fc.boolean(),
        steps: fc.integer({ min: 1, max: 9 }),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick: fc.nat(20) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('match' as const),
        market: fc.nat(1),
        steps: fc.integer({ min: 1, max: 9 }),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constantFrom('settle', 'settle', 'void', 'rollback', 'confirm'),
        pick: fc.nat(5),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('deposit' as const),
        by: fc.nat(USERS - 1),
        amount: fc.integer({ min: 1, max: 1000 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('arm' as const), by: fc.nat(USERS - 1) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('release' as const), market: fc.nat(1) }) },
  ) as fc.Arbitrary<Step>,
  { maxLength: 60 },
)
