/** Invalidates the caller's signed adjustments below a nonce, and reads the lowest valid nonce. */
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { FORWARD_ERRORS } from '../relays/errors.ts'
import type { MarginNonces } from './margin-nonces.ts'
import { InvalidateBody, Invalidated, Minimum, MinimumQuery } from './schema.ts'

export interface MarginNonceRoutePorts {
  readonly marginNonces: MarginNonces
  readonly markets: Pick<MarketDirectory, 'byId'>
}

const tags = ['account']

export function marginNonceRoutes(app: App, { marginNonces, markets }: MarginNonceRoutePorts): void {
  app.post(
    '/v0/account/invalidate-margin-nonces',
    {
      config: {
        access: 'user',
        bucket: 'relays',
        errors: [
          ...FORWARD_ERRORS,
          'MARKET_NOT_FOUND',
          'MARGIN_NONCE_NOT_RAISED',
          'RELAY_PENDING',
          'RELAY_FAILED',
        ],
      },
      schema: {
        tags,
        summary: "Invalidate the caller's signed adjustments below a nonce",
        description:
          'Relays `invalidateMarginNonces` of the market for its owner and answers once it is on the chain. Otherwise the answer is 408 with ' +
          'the `operation_id`; repeating the same request resolves it. The nonce of the request is `next_forward_nonce` of `minimum-margin-nonce`.',
        operationId: 'invalidateMarginNonces',
        body: InvalidateBody,
        response: { 200: Invalidated },
      },
    },
    async (request) => {
      const spec = await markets.byId(request.body.market_id)
      const { minimum, txHash } = await marginNonces.invalidate(callerOf(request), spec, request.body)
      return {
        success: true,
        market_id: spec.marketId,
        perpetual_address: spec.trader,
        minimum_margin_nonce: minimum.toString(),
        tx_hash: txHash,
      }
    },
  )
  app.get(
    '/v0/account/minimum-margin-nonce',
    {
      config: { access: 'user', errors: ['NOT_YOURS', 'MARKET_NOT_FOUND'] },
      schema: {
        tags,
        summary: "Get the lowest valid nonce of the caller's adjustments",
        operationId: 'getMinimumMarginNonce',
        querystring: MinimumQuery,
        response: { 200: Minimum },
      },
    },
    async (request) => {
      const { market_id: marketId, address } = request.query
      const own = callerOf(request).address
      if (address.toLowerCase() !== own)
        throw new ApiError('NOT_YOURS', { field: 'address', expected: own, received: address })
      const spec = await markets.byId(marketId)
      return {
        market_id: spec.marketId,
        address: own,
        perpetual_address: spec.trader,
        minimum_margin_nonce: (await marginNonces.minimum(spec, own)).toString(),
        next_forward_nonce: await marginNonces.nextForwardNonce(own),
      }
    },
  )
}
