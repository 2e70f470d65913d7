/** Reads the parameter file of a network: delays, treasury, and the holders of roles after the hand-over. */
import { readFileSync } from 'node:fs'
import { getAddress, ZeroAddress } from 'ethers'
import type { Role } from '../stack/access.ts'

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

const ROLE_NAMES: readonly Role[] = ['admin', 'listing', 'parameters', 'guardian', 'treasury']

export function readParameters(path: string): NetworkParameters {
  const file = JSON.parse(readFileSync(path, 'utf8'))
  if (!file.Exchange || !file.HandOver) throw new Error(`${path}: expected "Exchange" and "HandOver"`)
  for (const name of ['roleDelay', 'oracleNotice', 'listingDelay']) {
    if (!Number.isSafeInteger(file.Exchange[name])) {
      throw new Error(
        `${path}: Exchange.${name} must be a number of seconds; received ${file.Exchange[name]}`,
      )
    }
  }
  addressOf(file.Exchange.treasury, `${path}: Exchange.treasury`)
  const holders = Object.fromEntries(
    ROLE_NAMES.map((role) => [role, addressOf(file.HandOver[role], `${path}: HandOver.${role}`)]),
  ) as Record<Role, string>
  const keys: unknown[] = file.HandOver.backstopKeys ?? []
  const backstopKeys = keys.map((key) => addressOf(key, `${path}: HandOver.backstopKeys`))
  return { exchange: file.Exchange, holders, backstopKeys }
}

function addressOf(value: unknown, where: string): string {
  try {
    const address = getAddress(String(value))
    if (address !== ZeroAddress) return address
  } catch {}
  throw new Error(`${where} must be an address other than zero; received ${JSON.stringify(value)}`)
}
