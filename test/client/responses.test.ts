import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { FillStatus, LiquidationDecision, OrderEventKind } from '../../client/responses.ts'
import type { LiquidationStep } from '../../domain/journal/liquidation-row.ts'
import type * as domain from '../../domain/orders/order-state.ts'

type AreSame<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

describe('client/responses', () => {
  it('when the exchange has a fill status, an event kind or a step of a liquidation, the client has the same one', () => {
    // The compiler checks this: the client does not import these types, so that it can be published alone.
    const same: [
      AreSame<FillStatus, domain.FillStatus>,
      AreSame<OrderEventKind, domain.OrderEventKind>,
      AreSame<LiquidationDecision['step'], LiquidationStep>,
    ] = [true, true, true]
    expect(same).to.deep.equal([true, true, true])
  })
})
