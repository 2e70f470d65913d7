/** The command and the environment variables of each process. */
import type { DatabaseUrls } from './database-logins.ts'
import { type EngineFiles, membersOf } from './engine.ts'
import { AUDIENCE } from './issuer/terms.ts'
import type { Keys } from './keys.ts'
import { LOCAL_SIGNER } from './price-config.ts'
import { SEED_MARKETS } from './seed-markets.ts'
import type { StackAccount } from './stack-file.ts'
import type { ProcessSpec } from './supervisor.ts'

export interface Ports {
  /** The public port of the api. */
  readonly rest: number
  /** The port of the identity provider. */
  readonly issuer: number
  /** The port of health and metrics of each process. */
  readonly internal: Readonly<Record<'api' | 'keeper' | 'indexer' | 'backstop' | 'engine', number>>
}

export interface EnvironmentInput {
  readonly databaseUrls: DatabaseUrls
  readonly rpcUrl: string
  readonly deployment: {
    readonly chain_id: number
    readonly contracts: Record<'usdm' | 'marginBank' | 'accountManager' | 'forwarder', string>
  }
  readonly keys: Keys
  readonly ports: Ports
  /** Path of the keeper's price configuration. */
  readonly pricesFile: string
  /** Path of the identity provider's keys. */
  readonly issuerKeysFile: string
  /** Folder of the built page; null: the api serves none. */
  readonly pageDir: string | null
  readonly engine: EngineFiles & { readonly databaseUrl: string }
}

export interface Environment {
  readonly baseUrl: string
  readonly issuerUrl: string
  readonly issuer: ProcessSpec
  readonly engine: ProcessSpec
  readonly api: ProcessSpec
  readonly keeper: ProcessSpec
  readonly indexer: ProcessSpec
  /** `account`: that of the backstop; its key is a session key. */
  readonly backstop: (account: StackAccount) => ProcessSpec
}

/** High limits: on one machine all clients share an address, and a replay sends its orders from a few accounts. */
const LOCAL_RATE_LIMITS = {
  RATE_LIMIT_READS: '2000',
  RATE_LIMIT_ORDERS: '2000',
  RATE_LIMIT_BATCHES: '500',
  RATE_LIMIT_CANCELS: '2000',
  RATE_LIMIT_ADDRESS: '10000',
  HTTP_CONNECTIONS_PER_ADDRESS: '10000',
  RATE_LIMIT_AUTH_ADDRESS: '200',
  RATE_LIMIT_FAILURES: '200',
  RATE_LIMIT_FAUCET: '5',
  FAUCET_PER_ACCOUNT: '100',
  FAUCET_PER_ADDRESS: '1000',
  RATE_LIMIT_RELAYS: '20',
  RATE_LIMIT_ADJUSTMENTS: '20',
  RATE_LIMIT_PROOFS: '200',
}

export function environmentOf({
  databaseUrls,
  rpcUrl,
  deployment,
  keys,
  ports,
  pricesFile,
  issuerKeysFile,
  pageDir,
  engine,
}: EnvironmentInput): Environment {
  const { contracts, chain_id } = deployment
  const common = {
    RPC_URL: rpcUrl,
    CHAIN_ID: `${chain_id}`,
    INTERNAL_HOST: '127.0.0.1',
    LOG_LEVEL: process.env.LOG_LEVEL ?? 'info',
    ADDRESS_USDM: contracts.usdm,
    ADDRESS_MARGIN_BANK: contracts.marginBank,
    ADDRESS_ACCOUNT_MANAGER: contracts.accountManager,
    ADDRESS_FORWARDER: contracts.forwarder,
  }
  const service = (name: 'api' | 'keeper' | 'indexer', env: Record<string, string>): ProcessSpec => ({
    name,
    args: [`${name}/main.ts`],
    env: {
      ...common,
      ENGINE_URL: membersOf(engine).join(','),
      ENGINE_KEYS_FILE: engine.keys[name],
      DATABASE_URL: databaseUrls[name],
      INTERNAL_PORT: `${ports.internal[name]}`,
      ...env,
    },
    readyUrl: `http://127.0.0.1:${ports.internal[name]}/health/ready`,
  })
  const baseUrl = `http://127.0.0.1:${ports.rest}`
  const issuerUrl = `http://127.0.0.1:${ports.issuer}`
  const identity = { AUTH_JWKS_URL: `${issuerUrl}/jwks`, AUTH_ISSUER: issuerUrl, AUTH_AUDIENCE: AUDIENCE }
  const api = {
    ...{ HOST: '127.0.0.1', PORT: `${ports.rest}`, FAUCET: 'on', ...LOCAL_RATE_LIMITS, ...identity },
    ...(pageDir !== null && { PAGE_DIR: pageDir, PAGE_RPC_URLS: rpcUrl }),
  }
  return {
    baseUrl,
    issuerUrl,
    issuer: {
      name: 'issuer',
      args: ['stack/issuer/main.ts'],
      env: {
        ISSUER_URL: issuerUrl,
        PAGE_URL: baseUrl,
        ISSUER_KEYS_FILE: issuerKeysFile,
        RPC_URL: rpcUrl,
        CHAIN_ID: `${chain_id}`,
      },
      readyUrl: `${issuerUrl}/jwks`,
    },
    engine: {
      name: 'engine',
      args: ['keeper/engine/main.ts'],
      env: {
        ...common,
        DATABASE_URL: engine.databaseUrl,
        ENGINE_LISTEN: engine.socket,
        ENGINE_KEYS_FILE: engine.keys.engine,
        INTERNAL_PORT: `${ports.internal.engine}`,
      },
      readyUrl: `http://127.0.0.1:${ports.internal.engine}/health/ready`,
    },
    // Ready once clients can connect.
    api: { ...service('api', api), readyUrl: `${baseUrl}/health/ready` },
    keeper: service('keeper', {
      RELAYER_KEYS: JSON.stringify(relayerKeys(keys)),
      PRICES_FILE: pricesFile,
      ORACLE_KEYS: JSON.stringify({ [LOCAL_SIGNER]: keys.oracle.privateKey }),
    }),
    indexer: service('indexer', { RPC_WS_URL: rpcUrl.replace(/^http/, 'ws') }),
    backstop: ({ address, private_key, api_key }) => ({
      name: 'backstop',
      args: ['backstop/main.ts'],
      env: {
        BASE_URL: baseUrl,
        ADDRESS_BACKSTOP: address,
        BACKSTOP_SESSION_KEY: private_key,
        BACKSTOP_API_KEY: api_key,
        INTERNAL_HOST: '127.0.0.1',
        INTERNAL_PORT: `${ports.internal.backstop}`,
        LOG_LEVEL: common.LOG_LEVEL,
      },
      readyUrl: `http://127.0.0.1:${ports.internal.backstop}/health/ready`,
    }),
  }
}

/** One relayer per market, so that a stuck nonce stops only that market, one each for the faucet, heartbeats, adjustments, the ends of markets and owners' requests. */
const relayerKeys = (keys: Keys): Record<string, string> => ({
  ...Object.fromEntries(
    SEED_MARKETS.map(({ plan }) => [`m${plan.marketId}`, keys.relayer(plan.marketId).privateKey]),
  ),
  faucet: keys.faucet.privateKey,
  heartbeat: keys.heartbeat.privateKey,
  ending: keys.ending.privateKey,
  relay: keys.relay.privateKey,
  adjust: keys.adjust.privateKey,
})
