/** Contracts, server time and state of the exchange. */
import Type from 'typebox'
import { MaintenanceWindow } from '../announcements/schema.ts'
import { MARKET_MODES } from '../markets/schema.ts'
import { named, nullable, Time, words } from '../wire/schema.ts'

export const SharedContracts = named('SharedContracts', {
  addressCollateralToken: Type.String(),
  addressMarginBank: Type.String(),
  addressAccountManager: Type.String(),
  addressForwarder: Type.String(),
  chain_id: Type.Integer(),
})

export const ServerTime = named('ServerTime', {
  time: Time('Time of this server.'),
  unix_ms: Type.Integer(),
  unix_seconds: Type.Integer(),
})

const MarketStatus = Type.Object({
  market_id: Type.Integer(),
  symbol: Type.String(),
  mode: words(MARKET_MODES, 'Mode of the market.'),
  oracle_age_ms: nullable(Type.Integer()),
  oracle_fresh: Type.Boolean(),
  last_batch_id: Type.Integer(),
  placements: Type.Boolean({ description: 'Whether the market accepts placements now.' }),
  read_model_lag: Type.Integer({ description: 'Journal rows that are not in the read model yet.' }),
})
export const ServiceStatus = named('ServiceStatus', {
  status: words(['ok', 'degraded'], 'degraded: at least one market rejects placements.'),
  time: Time('Time of this server.'),
  chain: Type.Object({
    chain_id: Type.Integer(),
    block: nullable(Type.Integer()),
    seen_ms_ago: nullable(Type.Integer()),
    fresh: Type.Boolean(),
  }),
  maintenance: Type.Array(MaintenanceWindow, {
    description: 'Announced maintenance windows that have not ended, by their ends; at most 20.',
  }),
  markets: Type.Array(MarketStatus),
})
