/** The environment of the keeper, read and checked once. */
import { isTestChain } from '../domain/test-chains.ts'
import type { Address } from '../domain/units.ts'
import { type Env, environment, type ProcessConfig, rejectVariable } from '../service/environment.ts'
import { JsonError } from '../service/json-reader.ts'
import { type KeyReader, keyReader, readAll, textOfFile } from '../service/keys/key-settings.ts'
import type { KeySource } from '../service/keys/key-source.ts'
import { redisUrlOf } from '../service/redis.ts'
import { type EngineAccess, engineAccess } from './engine/link/access.ts'
import { oracleKeysOf, type RelayerKeys, relayerKeysOf } from './key-config.ts'
import { type PriceFile, parsePriceFile } from './price-file.ts'

/** Where prices come from, and what signs them. */
export interface PricesConfig {
  /** The text of the file now; the publisher applies a changed file without a restart. */
  readonly read: () => string
  /** Throws a ConfigError. */
  readonly parse: (text: string) => PriceFile
  readonly load: () => PriceFile
  /** Keys of the signers in this process, by name. */
  readonly keys: ReadonlyMap<string, KeySource>
  /** Shared with the signers in other processes; null if there are none. */
  readonly secret: string | null
}

export interface Config extends ProcessConfig {
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly redisUrl: string | null
  readonly rpcUrl: string
  readonly chainId: number
  /**
   * Keys of each relayer lane, the present one first: `m<market_id>`, `adjust`, `faucet`, `heartbeat`, `ending` and `relay`. With
   * `RELAYER_KEYS_FILE` each call reads the file, so that a key can be added while the keeper runs; throws a ConfigError if the file has
   * become invalid.
   */
  readonly relayerKeys: RelayerKeys
  readonly collateralToken: string
  /** Where the lane `relay` sends owners' requests; null: this keeper relays none. */
  readonly forwarder: Address | null
  readonly faucet: { readonly collateral: bigint; readonly gas: bigint }
  readonly leaseMs: number
  readonly sweepMs: number
  /** Interval of receipt polling, for nodes that do not respond with the receipt. */
  readonly pollMs: number
  /** Interval at which new markets and new relayer keys are looked for. */
  readonly marketPollMs: number
  /** A relayer lane that makes no progress for so long fails the readiness check `lanes`. */
  readonly laneStallMs: number
  readonly maxInFlight: number
  readonly confirmations: number
  readonly gas: { readonly part: bigint; readonly order: bigint; readonly simple: bigint }
  readonly delivery: {
    readonly resendAfterMs: number
    readonly stuckAfterMs: number
    readonly feeCap: bigint
    readonly priorityFee: bigint
  }
  readonly rpcTimeoutMs: number
  readonly sendTimeoutMs: number
  /** Null: this keeper publishes no prices. */
  readonly prices: PricesConfig | null
  /** How long the inputs of a batch are kept: its proof is made from them. */
  readonly proofDays: number
  /** The engine, which takes the markets' turns and decides what workers write. */
  readonly engine: EngineAccess<'worker' | 'publisher'>
  /** Password of the page that shows the queue of lanes; null: there is no page. */
  readonly queuePagePassword: string | null
  /** Below this balance of a relayer an error is logged, wei. */
  readonly lowBalance: bigint
}

function pricesOf(env: Env, reader: KeyReader): PricesConfig | null {
  const { optional } = environment(env, 'keeper')
  const file = optional('PRICES_FILE')
  if (file === null) return null
  const keys = oracleKeysOf(env, reader)
  const secret = optional('SIGNER_SECRET')
  const read = (): string => textOfFile('PRICES_FILE', file)
  const parse = (text: string): PriceFile => checkSigners(parsePrices(text), keys, secret)
  const load = (): PriceFile => parse(read())
  load()
  return { read, parse, load, keys, secret }
}

function parsePrices(text: string): PriceFile {
  try {
    return parsePriceFile(text)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return rejectVariable('PRICES_FILE', `is invalid: ${error.message}`)
  }
}

function checkSigners(
  prices: PriceFile,
  keys: ReadonlyMap<string, KeySource>,
  secret: string | null,
): PriceFile {
  for (const { name, remote } of prices.signers) {
    if (remote === null && !keys.has(name))
      rejectVariable('ORACLE_KEYS', `has no key of the signer ${name}, which has no url in PRICES_FILE`)
    if (remote !== null && secret === null)
      rejectVariable('SIGNER_SECRET', `is not set: the signer ${name} is another process`)
  }
  return prices
}

const LEAST_PASSWORD = 16

/** An error never repeats the password. */
function queuePagePasswordOf(env: Env): string | null {
  const { optional } = environment(env, 'keeper')
  const file = optional('QUEUE_PAGE_PASSWORD_FILE')
  const password =
    file === null ? optional('QUEUE_PAGE_PASSWORD') : textOfFile('QUEUE_PAGE_PASSWORD_FILE', file).trim()
  if (password === null || password.length >= LEAST_PASSWORD) return password
  return rejectVariable(
    file === null ? 'QUEUE_PAGE_PASSWORD' : 'QUEUE_PAGE_PASSWORD_FILE',
    `has a password that is too short: expected at least ${LEAST_PASSWORD} characters`,
  )
}

const GWEI = 10n ** 9n
const ETHER = 10n ** 18n

/** A drain waits for the receipts of what is in flight, each at most `SEND_TIMEOUT_MS`. */
function checkDrain(drainMs: number, sendTimeoutMs: number): void {
  if (drainMs <= sendTimeoutMs)
    rejectVariable(
      'DRAIN_MS',
      `is "${drainMs}": expected more than SEND_TIMEOUT_MS, which is ${sendTimeoutMs}`,
    )
}

/** Elsewhere its gas would be paid out of real funds. */
function checkFaucet(keys: ReadonlyMap<string, unknown>, chainId: number): void {
  // 0: CHAIN_ID itself is wrong.
  if (chainId !== 0 && keys.has('faucet') && !isTestChain(chainId))
    rejectVariable(
      'RELAYER_KEYS',
      `has the lane faucet: expected none on chain ${chainId}, which is no test chain`,
    )
}

/** The keys of the keeper, and what signs prices. */
function keySettingsOf(env: Env, chainId: () => number): Pick<Config, 'relayerKeys' | 'prices'> {
  const reader = keyReader(env, 'keeper')
  const [, relayerKeys, prices] = readAll(
    reader.check,
    () => {
      const keys = relayerKeysOf(env, reader)
      checkFaucet(keys(), chainId())
      return keys
    },
    () => pricesOf(env, reader),
  )
  return { relayerKeys, prices }
}

/** Reads the environment. Throws a ConfigError with a line for each wrong key setting, which names the variable, and for the first other one; within `readWhole` for all. */
export function readConfig(env: Env): Config {
  const chainId = () => environment(env, 'keeper').count('CHAIN_ID')
  const [others, keys] = readAll(
    () => otherSettingsOf(env),
    () => keySettingsOf(env, chainId),
  )
  return { ...others, ...keys }
}

function otherSettingsOf(env: Env): Omit<Config, 'relayerKeys' | 'prices'> {
  const { optional, database, http, count, amount, address, process } = environment(env, 'keeper')
  const common = process(8081, 13_000)
  const sendTimeoutMs = count('SEND_TIMEOUT_MS', 11_000)
  checkDrain(common.drainMs, sendTimeoutMs)
  return {
    ...common,
    databaseUrl: database(),
    databaseConnections: count('DATABASE_CONNECTIONS', 16),
    redisUrl: redisUrlOf(env),
    rpcUrl: http('RPC_URL'),
    chainId: count('CHAIN_ID'),
    collateralToken: address('ADDRESS_USDM'),
    forwarder: optional('ADDRESS_FORWARDER') === null ? null : address('ADDRESS_FORWARDER'),
    faucet: {
      collateral: amount('FAUCET_COLLATERAL', 10_000n * ETHER),
      gas: amount('FAUCET_GAS', ETHER / 10n),
    },
    leaseMs: count('LEASE_MS', 1_500),
    sweepMs: count('SWEEP_MS', 2_000),
    pollMs: count('POLL_MS', 50),
    marketPollMs: count('MARKET_POLL_MS', 5_000),
    laneStallMs: count('LANE_STALL_MS', 60_000),
    maxInFlight: count('MAX_IN_FLIGHT', 8),
    engine: engineAccess(env, 'keeper', ['worker', 'publisher']),
    confirmations: count('CONFIRMATIONS', 1),
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
    sendTimeoutMs,
    queuePagePassword: queuePagePasswordOf(env),
    proofDays: count('PROOF_DAYS', 90),
    lowBalance: amount('LOW_BALANCE', ETHER / 10n),
  }
}
