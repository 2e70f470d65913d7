/** Requests a payment of test collateral and gas. */
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import type { Faucet } from './faucet.ts'
import { FaucetAnswer, FaucetBody } from './schema.ts'

/** `faucet` is null on chains without a faucet. */
export function faucetRoutes(app: App, { faucet }: { readonly faucet: Faucet | null }): void {
  app.post(
    '/v0/faucet',
    {
      config: { access: 'user', bucket: 'faucet' },
      schema: {
        tags: ['exchange'],
        summary: 'Request test collateral and gas',
        description:
          'Available on test chains only. Mints to the wallet of the account and deposits nothing into the exchange.',
        operationId: 'faucet',
        body: FaucetBody,
        response: { 200: FaucetAnswer },
      },
    },
    (request) => {
      if (faucet === null) throw new ApiError('FAUCET_NOT_AVAILABLE')
      return faucet(callerOf(request))
    },
  )
}
