/** Public reads of the exchange itself: contracts, time, status. */
import type { Db } from '../../db/client.ts'
import { fromStoredSpec } from '../../db/markets.ts'
import { toMarketTerms } from '../../db/terms.ts'
import { modeInForce } from '../../domain/market/changes.ts'
import type { Millis } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import type { Config } from '../config.ts'
import { markImmutable } from '../http/caching.ts'
import type { App } from '../http/types.ts'
import { isoTime } from '../wire/amounts.ts'
import { exchangeStatus, type StatusRow } from './query.ts'
import { ServerTime, ServiceStatus, SharedContracts } from './schema.ts'

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
  const view = (row: StatusRow, now: Millis, isChainFresh: boolean) => {
    const age = row.observed_at === null ? null : Math.max(0, now - row.observed_at)
    const mode = modeInForce(toMarketTerms(row, fromStoredSpec(row.spec)), now)
    const isFresh = age !== null && age <= config.oracleMaxAgeMs
    return {
      market_id: row.market_id,
      symbol: row.symbol,
      mode,
      oracle_age_ms: age,
      oracle_fresh: isFresh,
      last_batch_id: row.last_batch_id,
      placements: isFresh && isChainFresh && mode === 'open',
      read_model_lag: row.lag,
    }
  }
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
    async () => {
      const { markets, chain } = await exchangeStatus(db)
      const now = clock.now()
      const seen = chain === null ? null : Math.max(0, now - chain.completed_at)
      const fresh = seen !== null && seen <= config.chainMaxAgeMs
      const views = markets.map((row) => view(row, now, fresh))
      return {
        status: views.every(({ placements }) => placements) ? ('ok' as const) : ('degraded' as const),
        time: isoTime(now),
        chain: { chain_id: config.chainId, block: chain?.head ?? null, seen_ms_ago: seen, fresh },
        markets: views,
      }
    },
  )
}
