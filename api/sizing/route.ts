/** From what a trader has in mind to a quantity. Places nothing. */
import { callerOf } from '../http/access.ts'
import { type App, answers } from '../http/types.ts'
import { Estimate, EstimateBody, Quantity, QuantityBody } from './schema.ts'
import type { Sizing } from './sizing.ts'

const tags = ['orders']
const own = { access: 'user' } as const

export function sizingRoutes(app: App, { sizing }: { readonly sizing: Sizing }): void {
  app.post(
    '/v0/orders/estimate',
    {
      config: own,
      schema: {
        tags,
        summary: 'Size an order, and estimate what it would come to',
        description:
          'The maximum is what a placement accepts at this moment; one step more is refused for the reason that is told.',
        operationId: 'estimateOrder',
        body: EstimateBody,
        response: answers(Estimate),
      },
    },
    (request) => sizing.estimate(callerOf(request), request.body),
  )
  app.post(
    '/v0/orders/calculate-quantity',
    {
      config: own,
      schema: {
        tags,
        summary: 'The quantity that a budget in USDM buys',
        description: 'Kept for older clients: `POST /v0/orders/estimate` says more.',
        operationId: 'calculateQuantity',
        body: QuantityBody,
        response: answers(Quantity),
      },
    },
    (request) => sizing.quantity(callerOf(request), request.body),
  )
}
