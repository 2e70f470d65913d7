/** Requests a payment of test collateral and gas. */
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import { networkOf } from '../http/network.ts'
import type { App } from '../http/types.ts'
import type { Faucet } from './faucet.ts'
import { FaucetAnswer, FaucetBody } from './schema.ts'

/** `faucet` is null on chains without a faucet: then the endpoint does not exist, with and without a credential. */
export function faucetRoutes(app: App, { faucet }: { readonly faucet: Faucet | null }): void {
  app.post(
    '/v0/faucet',
    {
      config: {
        access: faucet === null ? 'public' : 'user',
        bucket: 'faucet',
        errors: [
          'FAUCET_NOT_AVAILABLE',
          'FAUCET_PENDING',
          'FAUCET_LIMIT',
          'FAUCET_FAILED',
          'FAUCET_EMPTY',
          'FAUCET_REVERTED',
        ],
      },
      schema: {
        tags: ['exchange'],
        summary: 'Request test collateral and gas',
        description:
          'Available on test chains only. Mints to the wallet of the account and deposits nothing into the exchange. A request while another one waits for its payout is that one.',
        operationId: 'faucet',
        body: FaucetBody,
        response: { 200: FaucetAnswer },
      },
    },
    (request) => {
      if (faucet === null) throw new ApiError('FAUCET_NOT_AVAILABLE')
      return faucet(callerOf(request), networkOf(request.ip))
    },
  )
}
