/** Reads and checks the keeper's environment once, at the start. */
import { isTestChain } from '../domain/test-chains.ts'
import type { Address } from '../domain/units.ts'
import { type Env, environment, type ProcessConfig, rejectVariable } from '../service/environment.ts'
import { JsonError } from '../service/json-reader.ts'
import { type KeyReader, keyReader, readAll, textOfFile } from '../service/keys/key-settings.ts'
import type { KeySource } from '../service/keys/key-source.ts'
import { operatorPasswordOf } from '../service/operator-password.ts'
import { redisUrlOf } from '../service/redis.ts'
import type { TraceExport } from '../service/spans.ts'
import { traceExportOf } from '../service/trace-settings.ts'
import { type EngineAccess, engineAccess } from './engine/link/access.ts'
import { oracleKeysOf, type RelayerKeys, relayerKeysOf } from './key-config.ts'
import { type PriceFile, parsePriceFile } from './price-file.ts'

/** Sources and signers of prices. */
export interface PricesConfig {
  /** Current text of the file. The publisher applies changes without a restart. */
  readonly read: () => string
  /** Parses the file. Throws a ConfigError. */
  readonly parse: (text: string) => PriceFile
  readonly load: () => PriceFile
  /** Keys of the signers in this process, by name. */
  readonly keys: ReadonlyMap<string, KeySource>
  /** Secret shared with signer processes; null if there are none. */
  readonly secret: string | null
}

export interface Config extends ProcessConfig {
  readonly databaseUrl: string
  readonly databaseConnections: number
  readonly redisUrl: string | null
  readonly rpcUrl: string
  readonly chainId: number
  /** The contract `MarginBank`. */
  readonly bank: Address
  /**
   * Keys by relayer lane, the present key first: `m<market_id>`, `adjust`, `faucet`, `heartbeat`, `ending`, `relay`.
   * With `RELAYER_KEYS_FILE` each call reads the file and may throw a ConfigError.
   */
  readonly relayerKeys: RelayerKeys
  readonly collateralToken: string
  /** Forwarder to which the lane `relay` sends owners' requests; null: this keeper does not relay. */
  readonly forwarder: Address | null
  readonly faucet: { readonly collateral: bigint; readonly gas: bigint }
  readonly leaseMs: number
  readonly sweepMs: number
  /** Interval of receipt polling, for nodes that do not respond with the receipt. */
  readonly pollMs: number
  /** Interval of the search for new markets and new relayer keys. */
  readonly marketPollMs: number
  /** Time without progress after which a relayer lane fails the readiness check `lanes`. */
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
  /** Days for which batch inputs, from which proofs are made, are kept. */
  readonly proofDays: number
  /** The engine, which decides market turns and writes of workers. */
  readonly engine: EngineAccess<'worker' | 'publisher'>
  /** Password of the page that shows the lane queue; null: no page. */
  readonly queuePagePassword: string | null
  /** Balance of a relayer in wei below which an error is logged. */
  readonly lowBalance: bigint
  /** Null: no spans. */
  readonly traces: TraceExport | null
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

const GWEI = 10n ** 9n
const ETHER = 10n ** 18n

/** A drain waits for receipts in flight, each for at most `SEND_TIMEOUT_MS`. */
function checkDrain(drainMs: number, sendTimeoutMs: number): void {
  if (drainMs <= sendTimeoutMs)
    rejectVariable(
      'DRAIN_MS',
      `is "${drainMs}": expected more than SEND_TIMEOUT_MS, which is ${sendTimeoutMs}`,
    )
}

/** On other chains the faucet would pay gas from real funds. */
function checkFaucet(keys: ReadonlyMap<string, unknown>, chainId: number): void {
  // 0: CHAIN_ID itself is wrong.
  if (chainId !== 0 && keys.has('faucet') && !isTestChain(chainId))
    rejectVariable(
      'RELAYER_KEYS',
      `has the lane faucet: expected none on chain ${chainId}, which is no test chain`,
    )
}

/** Relayer keys and price signers. */
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

/** Reads the environment. Throws a ConfigError with a line for each wrong key setting, and for the first other one; within `readWhole` for all. */
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
  const common = process(8081)
  const sendTimeoutMs = count('SEND_TIMEOUT_MS', 8_000)
  checkDrain(common.drainMs, sendTimeoutMs)
  return {
    ...common,
    databaseUrl: database(),
    databaseConnections: count('DATABASE_CONNECTIONS', 16),
    redisUrl: redisUrlOf(env),
    rpcUrl: http('RPC_URL'),
    chainId: count('CHAIN_ID'),
    bank: address('ADDRESS_MARGIN_BANK'),
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
    queuePagePassword: operatorPasswordOf(env, 'keeper'),
    proofDays: count('PROOF_DAYS', 90),
    lowBalance: amount('LOW_BALANCE', ETHER / 10n),
    traces: traceExportOf(env, 'keeper'),
  }
}
