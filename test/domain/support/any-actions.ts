/** Generated actions of every kind. */
import fc from 'fast-check'
import type { SingleAction } from '../../../domain/actions/action.ts'
import type { OracleReport } from '../../../domain/settlement/settlement.ts'
import type { Address, HourlyFunding, Millis, Price, Steps } from '../../../domain/units.ts'

const millis = fc.integer({ min: 1, max: 2 ** 47 }) as fc.Arbitrary<Millis>
const hex = (bytes: number) =>
  fc
    .uint8Array({ minLength: bytes, maxLength: bytes })
    .map((value) => `0x${Buffer.from(value).toString('hex')}` as const)
const address = hex(20) as unknown as fc.Arbitrary<Address>
const signatures = hex(65)

const report: fc.Arbitrary<OracleReport> = fc.record({
  price: fc.bigInt({ min: 1n, max: 2n ** 90n }) as fc.Arbitrary<Price>,
  observedAt: millis,
  signatures,
})

const leg = fc.record({
  counterparty: address,
  steps: fc.integer({ min: 1, max: 2 ** 47 }) as fc.Arbitrary<Steps>,
})

export const anySingleAction: fc.Arbitrary<SingleAction> = fc.oneof(
  fc.record({
    kind: fc.constant('update_funding' as const),
    asOf: millis,
    rate: fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }) as fc.Arbitrary<HourlyFunding>,
    validUntil: millis,
    report,
    session: fc.option(fc.record({ endsAt: millis, observedAt: millis, signatures })),
  }),
  fc.record({
    ...{ kind: fc.constant('inherit_position' as const), asOf: millis, account: address },
    ...{ backstop: address, report },
  }),
  fc.record({
    ...{ kind: fc.constant('deleverage' as const), asOf: millis, account: address },
    ...{ legs: fc.array(leg, { minLength: 1, maxLength: 5 }), report },
  }),
  fc.record({ kind: fc.constant('finalize_market' as const), asOf: millis, report }),
)
