/** The environment of the keeper, read and checked once. */
import { type Env, environment, fail } from '../service/environment.ts'

export interface Config {
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly redisUrl: string | null
  readonly rpcUrl: string
  readonly chainId: number
  readonly host: string
  readonly port: number
  readonly logLevel: string
  /** Private key of each lane: `m<market_id>`, and `faucet`. */
  readonly relayerKeys: ReadonlyMap<string, string>
  readonly collateralToken: string
  readonly faucet: { readonly collateral: bigint; readonly gas: bigint }
  readonly auctionIntervalMs: number
  readonly leaseMs: number
  readonly sweepMs: number
  /** How often a transaction is asked for whose receipt did not come with the answer. */
  readonly pollMs: number
  readonly maxInFlight: number
  readonly sealDepth: number
  readonly gas: { readonly part: bigint; readonly order: bigint; readonly simple: bigint }
  readonly delivery: {
    readonly resendAfterMs: number
    readonly stuckAfterMs: number
    readonly feeCap: bigint
    readonly priorityFee: bigint
  }
  readonly rpcTimeoutMs: number
  readonly sendTimeoutMs: number
  /** A relayer that has less is reported. */
  readonly lowBalance: bigint
  readonly killAt: string | null
}

/** The value itself is never repeated in an error: it is secret. */
function readKeys(text: string): Map<string, string> {
  const name = 'RELAYER_KEYS'
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return fail(name, 'is not a JSON object of lane to private key')
  }
  const keys = new Map(Object.entries(parsed as Record<string, string>))
  for (const [lane, key] of keys) {
    if (!/^(m\d+|faucet)$/.test(lane)) fail(name, `names an unknown lane: ${lane}`)
    if (!/^0x[0-9a-fA-F]{64}$/.test(key)) fail(name, `has no private key of 32 bytes for ${lane}`)
  }
  return keys
}

const GWEI = 10n ** 9n
const ETHER = 10n ** 18n

/** Reads the environment. Throws a ConfigError that names the variable. */
export function readConfig(env: Env): Config {
  const { text, optional, database, http, count, amount, address } = environment(env, 'keeper')
  return {
    databaseUrl: database(),
    databaseConnections: count('DATABASE_CONNECTIONS', 16),
    redisUrl: optional('REDIS_URL'),
    rpcUrl: http('RPC_URL'),
    chainId: count('CHAIN_ID'),
    host: text('HOST', '127.0.0.1'),
    port: count('PORT', 8081),
    logLevel: text('LOG_LEVEL', 'info'),
    relayerKeys: readKeys(text('RELAYER_KEYS')),
    collateralToken: address('ADDRESS_USDM'),
    faucet: {
      collateral: amount('FAUCET_COLLATERAL', 10_000n * ETHER),
      gas: amount('FAUCET_GAS', ETHER / 10n),
    },
    auctionIntervalMs: count('AUCTION_INTERVAL_MS', 200),
    leaseMs: count('LEASE_MS', 3_000),
    sweepMs: count('SWEEP_MS', 500),
    pollMs: count('POLL_MS', 50),
    maxInFlight: count('MAX_IN_FLIGHT', 8),
    sealDepth: count('SEAL_DEPTH', 1),
    gas: {
      part: amount('GAS_PART', 400_000n),
      order: amount('GAS_ORDER', 150_000n),
      simple: amount('GAS_SIMPLE', 300_000n),
    },
    delivery: {
      resendAfterMs: count('RESEND_AFTER_MS', 1_000),
      stuckAfterMs: count('STUCK_AFTER_MS', 3_000),
      feeCap: amount('FEE_CAP', 100n * GWEI),
      priorityFee: amount('PRIORITY_FEE', 1_000_000n),
    },
    rpcTimeoutMs: count('RPC_TIMEOUT_MS', 3_000),
    sendTimeoutMs: count('SEND_TIMEOUT_MS', 11_000),
    lowBalance: amount('LOW_BALANCE', ETHER / 10n),
    killAt: optional('CLEARBATCH_KILL_AT'),
  }
}
