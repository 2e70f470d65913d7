/** Public reads of the exchange itself: contracts, time, status. */
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import type { Config } from '../config.ts'
import { markImmutable } from '../http/caching.ts'
import type { App } from '../http/types.ts'
import { isoTime } from '../wire/amounts.ts'
import { ServerTime, ServiceStatus, SharedContracts } from './schema.ts'
import { readStatus } from './status.ts'

export interface ExchangePorts {
  readonly db: Db
  readonly clock: Clock
  readonly config: Config
}

const tags = ['exchange']

export function exchangeRoutes(app: App, ports: ExchangePorts): void {
  reference(app, ports)
  status(app, ports)
}

function reference(app: App, { config, clock }: ExchangePorts): void {
  const { contracts, chainId } = config
  app.get(
    '/v0/contracts/shared',
    {
      config: { cached: true },
      schema: {
        tags,
        summary: 'Get the addresses of the shared contracts',
        operationId: 'getSharedContracts',
        response: { 200: SharedContracts },
      },
    },
    (_request, reply) => {
      markImmutable(reply)
      return {
        addressCollateralToken: contracts.usdm,
        addressMarginBank: contracts.marginBank,
        addressAccountManager: contracts.accountManager,
        addressForwarder: contracts.forwarder,
        chain_id: chainId,
      }
    },
  )
  app.get(
    '/v0/time',
    {
      schema: { tags, summary: 'Get the server time', operationId: 'getTime', response: { 200: ServerTime } },
    },
    () => {
      const now = clock.now()
      return { time: isoTime(now), unix_ms: now, unix_seconds: Math.floor(now / 1000) }
    },
  )
}

function status(app: App, { db, clock, config }: ExchangePorts): void {
  app.get(
    '/v0/status',
    {
      schema: {
        tags,
        summary: 'Get the state of the exchange',
        operationId: 'getStatus',
        response: { 200: ServiceStatus },
      },
    },
    () => readStatus(db, clock.now(), config),
  )
}
