/** Sizing helpers: compute a quantity from a sizing intent or a budget. They place nothing. */
import { callerOf } from '../http/access.ts'
import { COMPUTATION } from '../http/cost-budget.ts'
import type { App } from '../http/types.ts'
import { FLAG_ERRORS, PRICE_ERRORS, REFUSALS, TERM_ERRORS } from '../order-entry/errors.ts'
import { Estimate, EstimateBody, Quantity, QuantityBody } from './schema.ts'
import type { Sizing } from './sizing.ts'

const tags = ['orders']
const own = { access: 'user', readOnly: true } as const

export function sizingRoutes(app: App, { sizing }: { readonly sizing: Sizing }): void {
  app.post(
    '/v0/orders/estimate',
    {
      config: {
        ...own,
        costOfItems: () => COMPUTATION,
        errors: [...TERM_ERRORS, ...FLAG_ERRORS, 'ORACLE_STALE', 'READ_MODEL_FILLING'],
      },
      schema: {
        tags,
        summary: 'Compute the quantity of an order and estimate its result',
        description:
          '`maximum` is the largest quantity that a placement accepts now; `maximum.binding` states why one step more is rejected. ' +
          'A post-only order is not compared with the book: `POST /v0/orders/validate` does that.',
        operationId: 'estimateOrder',
        body: EstimateBody,
        response: { 200: Estimate },
      },
    },
    (request) => sizing.estimate(callerOf(request), request.body),
  )
  app.post(
    '/v0/orders/calculate-quantity',
    {
      config: {
        ...own,
        costOfItems: () => COMPUTATION,
        errors: [...PRICE_ERRORS, ...REFUSALS, 'MAX_ORDER_SIZE', 'READ_MODEL_FILLING'],
      },
      schema: {
        tags,
        summary: 'Compute the quantity that a budget in USDM buys',
        description: 'For older clients; `POST /v0/orders/estimate` returns more.',
        operationId: 'calculateQuantity',
        body: QuantityBody,
        response: { 200: Quantity },
      },
    },
    (request) => sizing.quantity(callerOf(request), request.body),
  )
}
