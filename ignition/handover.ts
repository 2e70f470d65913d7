/** Reads the parameter file of a network: delays, treasury, and the holders of roles after the hand-over. */
import { getAddress, ZeroAddress } from 'ethers'
import type { Role } from '../stack/access.ts'
import { readJsonFile } from './json-file.ts'
import { isKeyPublic, TEST_CHAINS } from './public-keys.ts'

export interface ExchangeParameters {
  /** Seconds. */
  readonly roleDelay: number
  readonly oracleNotice: number
  readonly listingDelay: number
  readonly treasury: string
  /** Undefined if the exchange deploys its own test token. */
  readonly usdm?: string
}

export interface NetworkParameters {
  readonly exchange: ExchangeParameters
  readonly holders: Readonly<Record<Role, string>>
  /** Session keys that may trade for the backstop. */
  readonly backstopKeys: readonly string[]
}

type Json = Readonly<Record<string, unknown>>

const EXAMPLE = 'ignition/parameters/local.json'
const ROLE_NAMES: readonly Role[] = ['admin', 'listing', 'parameters', 'guardian', 'treasury']

export function readParameters(path: string): NetworkParameters {
  const file = readJsonFile(path, '--parameters', EXAMPLE) as Json
  const { Exchange: exchange, HandOver: handOver } = file as Readonly<Record<string, Json | undefined>>
  if (!exchange || !handOver) throw new Error(`${path}: expected "Exchange" and "HandOver"`)
  for (const name of ['roleDelay', 'oracleNotice', 'listingDelay'])
    if (!Number.isSafeInteger(exchange[name]))
      throw new Error(`${path}: Exchange.${name} must be a number of seconds; received ${exchange[name]}`)
  addressOf(exchange.treasury, `${path}: Exchange.treasury`)
  if (exchange.usdm !== undefined) addressOf(exchange.usdm, `${path}: Exchange.usdm`)
  const holders = Object.fromEntries(
    ROLE_NAMES.map((role) => [role, addressOf(handOver[role], `${path}: HandOver.${role}`)]),
  ) as Record<Role, string>
  const keys = (handOver.backstopKeys ?? []) as readonly unknown[]
  const backstopKeys = keys.map((key) => addressOf(key, `${path}: HandOver.backstopKeys`))
  return { exchange: exchange as unknown as ExchangeParameters, holders, backstopKeys }
}

const DAY = 86_400
/** Seconds, as in the constructors of ExchangeAccess, SignedPriceOracle and MarginBank. */
const BOUNDS = {
  roleDelay: [DAY, 30 * DAY],
  oracleNotice: [DAY, 30 * DAY],
  listingDelay: [7 * DAY, 60 * DAY],
} as const

/** Throws if a constructor would reject the delays: the contracts before it would be deployed in vain. */
export function requireDelays({ exchange }: NetworkParameters, path: string, chainId: bigint): void {
  for (const [name, [shortest, longest]] of Object.entries(BOUNDS)) {
    const least = TEST_CHAINS.includes(chainId) ? 0 : shortest
    const seconds = exchange[name as keyof typeof BOUNDS]
    if (seconds < least || seconds > longest)
      throw new Error(
        `${path}: Exchange.${name} must be ${least} to ${longest} seconds on chain ${chainId}; received ${seconds}`,
      )
  }
}

/** Throws if an account that the exchange would trust has a public key, as in the parameters of a local chain. */
export function requireOwnHolders(
  { exchange, holders, backstopKeys }: NetworkParameters,
  path: string,
  chainId: bigint,
): void {
  const accounts: [name: string, account: string][] = [
    ['Exchange.treasury', exchange.treasury],
    ...ROLE_NAMES.map((role): [string, string] => [`HandOver.${role}`, holders[role]]),
    ...backstopKeys.map((key): [string, string] => ['HandOver.backstopKeys', key]),
  ]
  for (const [name, account] of accounts)
    if (isKeyPublic(account, chainId))
      throw new Error(
        `${path}: ${name} must be an account of yours; received ${account}, whose key is public`,
      )
}

function addressOf(value: unknown, where: string): string {
  try {
    const address = getAddress(String(value))
    if (address !== ZeroAddress) return address
  } catch {}
  throw new Error(`${where} must be an address other than zero; received ${JSON.stringify(value)}`)
}
