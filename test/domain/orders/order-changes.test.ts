import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { leaveBook, type OpenOrder, reserve, withheldBy } from '../../../domain/orders/open-order.ts'
import { OrderChanges } from '../../../domain/orders/order-changes.ts'
import type { Millis, Quote, Seq, Steps } from '../../../domain/units.ts'
import { bySeq, openOrder } from '../support/open-orders.ts'
import { orders, roundMarket } from '../support/resting.ts'

const before = bySeq(
  orders('A buy 100 x10 by 1\nB buy 99 x4 by 2\nC sell 101 x6 by 1').all.map((order) =>
    openOrder(roundMarket, order),
  ),
)
const at = (seq: number): OpenOrder => before.get(seq as Seq) as OpenOrder
const AT = 5 as Millis

describe('OrderChanges', () => {
  it('when an order has changed, it returns the changed order, and when an order is not in the plan, it throws', () => {
    const changes = new OrderChanges(before)
    changes.put(leaveBook(changes.get(1 as Seq), 'EXPIRED', AT))
    expect(changes.get(1 as Seq).status).to.equal('EXPIRED')
    expect(changes.get(2 as Seq)).to.equal(at(2))
    expect([changes.has(2 as Seq), changes.has(9 as Seq)]).to.deep.equal([true, false])
    expect(() => changes.get(9 as Seq)).to.throw('the order belongs to the plan')
  })

  it('when an order changes several times, it lists the last state once and every row in sequence', () => {
    const changes = new OrderChanges(before)
    changes.putIf(reserve(changes.get(2 as Seq), { openable: 1 as Steps, amount: 7n as Quote }))
    changes.putIf(reserve(changes.get(2 as Seq), { openable: 1 as Steps, amount: 7n as Quote }))
    changes.put(leaveBook(changes.get(2 as Seq), 'EXPIRED', AT))
    expect(changes.changed().map(({ seq, status }) => [seq, status])).to.deep.equal([[2, 'EXPIRED']])
    expect(changes.rows.map(({ kind }) => kind)).to.deep.equal(['reservation_changed', 'order_ended'])
  })

  it('when reservations change, it sums the changes by account and omits accounts with a sum of 0', () => {
    const changes = new OrderChanges(before)
    changes.put(leaveBook(changes.get(1 as Seq), 'EXPIRED', AT))
    changes.put(leaveBook(changes.get(3 as Seq), 'EXPIRED', AT))
    const { reserved } = at(2)
    changes.set({ ...at(2), reserved: (reserved - 5n) as Quote, held: 5n as Quote })
    expect([...changes.reservedDeltas()]).to.deep.equal([[1, -(at(1).reserved + at(3).reserved)]])
  })

  it('when any orders change, each delta equals the withheld amount after the change less the amount before', () => {
    const anyChange = fc.record({
      seq: fc.constantFrom(1, 2, 3),
      reserved: fc.bigInt({ min: 0n, max: 1_000n }),
      held: fc.bigInt({ min: 0n, max: 1_000n }),
    })
    fc.assert(
      fc.property(fc.array(anyChange, { maxLength: 12 }), (amounts) => {
        const changes = new OrderChanges(before)
        for (const { seq, reserved, held } of amounts) {
          changes.set({ ...changes.get(seq as Seq), reserved: reserved as Quote, held: held as Quote })
        }
        for (const account of [1, 2]) {
          const own = [...before.values()].filter((order) => order.account === account)
          const change = own.reduce(
            (sum, order) => sum + withheldBy(changes.get(order.seq)) - withheldBy(order),
            0n,
          )
          expect(changes.reservedDeltas().get(account as never) ?? 0n).to.equal(change)
        }
      }),
    )
  })
})
