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

describe('domain/draft', () => {
  it('shows an order as it has become, and knows no other', () => {
    const draft = new OrderChanges(before)
    draft.put(leaveBook(draft.get(1 as Seq), 'EXPIRED', AT))
    expect(draft.get(1 as Seq).status).to.equal('EXPIRED')
    expect(draft.get(2 as Seq)).to.equal(at(2))
    expect([draft.has(2 as Seq), draft.has(9 as Seq)]).to.deep.equal([true, false])
    expect(() => draft.get(9 as Seq)).to.throw('a plan knows the orders it changes')
  })

  it('lists each changed order once, as it is at the end, and the rows in turn', () => {
    const draft = new OrderChanges(before)
    draft.putIf(reserve(draft.get(2 as Seq), { openable: 1 as Steps, amount: 7n as Quote }))
    draft.putIf(reserve(draft.get(2 as Seq), { openable: 1 as Steps, amount: 7n as Quote }))
    draft.put(leaveBook(draft.get(2 as Seq), 'EXPIRED', AT))
    expect(draft.changed().map(({ seq, status }) => [seq, status])).to.deep.equal([[2, 'EXPIRED']])
    expect(draft.rows.map(({ kind }) => kind)).to.deep.equal(['reservation_changed', 'order_ended'])
  })

  it('sums what changes by account, and leaves out where that is nothing', () => {
    const draft = new OrderChanges(before)
    draft.put(leaveBook(draft.get(1 as Seq), 'EXPIRED', AT))
    draft.put(leaveBook(draft.get(3 as Seq), 'EXPIRED', AT))
    const { reserved } = at(2)
    draft.set({ ...at(2), reserved: (reserved - 5n) as Quote, held: 5n as Quote })
    expect([...draft.reservedDeltas()]).to.deep.equal([[1, -(at(1).reserved + at(3).reserved)]])
  })

  it('conserves: the deltas are what is held back after less what was before', () => {
    const anyChange = fc.record({
      seq: fc.constantFrom(1, 2, 3),
      reserved: fc.bigInt({ min: 0n, max: 1_000n }),
      held: fc.bigInt({ min: 0n, max: 1_000n }),
    })
    fc.assert(
      fc.property(fc.array(anyChange, { maxLength: 12 }), (changes) => {
        const draft = new OrderChanges(before)
        for (const { seq, reserved, held } of changes) {
          draft.set({ ...draft.get(seq as Seq), reserved: reserved as Quote, held: held as Quote })
        }
        for (const account of [1, 2]) {
          const own = [...before.values()].filter((order) => order.account === account)
          const change = own.reduce(
            (sum, order) => sum + withheldBy(draft.get(order.seq)) - withheldBy(order),
            0n,
          )
          expect(draft.reservedDeltas().get(account as never) ?? 0n).to.equal(change)
        }
      }),
    )
  })
})
