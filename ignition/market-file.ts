/** Reads and validates the description of a market: a JSON file in human units. */
import { getAddress, parseUnits, ZeroAddress } from 'ethers'
import { listingRefusals, type MarketKind, type MarketSpec } from '../domain/market/market.ts'
import type {
  Address,
  MarketId,
  Millis,
  Price,
  Quantity,
  Quote,
  Rate,
  Steps,
  Ticks,
} from '../domain/units.ts'
import type { ReportLimits } from '../stack/deploy.ts'
import { readJsonFile } from './json-file.ts'
import { isKeyPublic } from './public-keys.ts'

export interface MarketFile {
  readonly spec: MarketSpec
  readonly reports: ReportLimits
  /** Signers of its reports, ascending, and the number of signatures that a report needs. */
  readonly oracle: { readonly signers: readonly Address[]; readonly threshold: number }
  readonly operators: readonly Address[]
  /** Maximum notional of the backstop's position; 0: the market has no backstop. */
  readonly backstopCap: Quote
}

type Json = Readonly<Record<string, unknown>>

const KINDS: readonly MarketKind[] = ['perpetual', 'future', 'binary_future']
const NOWHERE = ZeroAddress as Address

/** Typed access to the fields of a JSON object. Errors name the path and the field. */
class Fields {
  readonly #json: Json
  readonly #path: string
  readonly #seen = new Set<string>()

  constructor(json: unknown, path: string) {
    if (typeof json !== 'object' || json === null || Array.isArray(json)) {
      throw new Error(`${path}: expected an object`)
    }
    this.#json = json as Json
    this.#path = path
  }

  #take(name: string): unknown {
    this.#seen.add(name)
    return this.#json[name]
  }

  #fail(name: string, expected: string): never {
    const received = JSON.stringify(this.#json[name]) ?? 'nothing'
    throw new Error(`${this.#path}: ${name} must be ${expected}; received ${received}`)
  }

  text(name: string): string {
    const value = this.#take(name)
    return typeof value === 'string' && value !== '' ? value : this.#fail(name, 'a text')
  }

  /** A decimal number as text, x 1e18. */
  amount(name: string, fallback?: string): bigint {
    const value = this.#take(name) ?? fallback
    if (typeof value !== 'string' || !/^\d+(\.\d{1,18})?$/.test(value)) {
      return this.#fail(name, 'a decimal number in quotes, such as "0.05"')
    }
    return parseUnits(value, 18)
  }

  count(name: string): number {
    const value = this.#take(name)
    const valid = typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
    return valid ? value : this.#fail(name, 'a whole number')
  }

  /** An ISO 8601 time in UTC as milliseconds; 0 if the field is missing. */
  moment(name: string): number {
    const value = this.#take(name)
    if (value === undefined) return 0
    const at =
      typeof value === 'string' && /^\d{4}-\d\d-\d\dT.*Z$/.test(value) ? Date.parse(value) : Number.NaN
    return Number.isNaN(at) ? this.#fail(name, 'a time such as "2035-01-01T00:00:00Z"') : at
  }

  flag(name: string): boolean {
    const value = this.#take(name) ?? false
    return typeof value === 'boolean' ? value : this.#fail(name, 'true or false')
  }

  kind(name: string): MarketKind {
    const kind = KINDS.find((each) => each === this.#take(name))
    return kind ?? this.#fail(name, `one of ${KINDS.join(', ')}`)
  }

  /** Accounts that the market trusts. */
  accounts(name: string, chainId: bigint): Address[] {
    const value = this.#take(name)
    if (!Array.isArray(value) || value.length === 0) return this.#fail(name, 'a list of addresses')
    const accounts = value.map((each) => {
      try {
        return getAddress(each).toLowerCase() as Address
      } catch {
        return this.#fail(name, `a list of addresses (not ${JSON.stringify(each)})`)
      }
    })
    const where = `${this.#path}: ${name} must be`
    for (const [index, account] of accounts.entries()) {
      const isRepeated = accounts.indexOf(account) < index
      if (account === ZeroAddress || isRepeated)
        throw new Error(
          `${where} different addresses other than zero; received ${account}${isRepeated ? ' twice' : ''}`,
        )
      if (isKeyPublic(account, chainId))
        throw new Error(`${where} accounts of yours; received ${account}, whose key is public`)
    }
    return accounts
  }

  object(name: string): Fields {
    return new Fields(this.#take(name), `${this.#path}: ${name}`)
  }

  /** Throws if the object has a field that was not read, such as a mistyped name. */
  end(): void {
    const unknown = Object.keys(this.#json).filter((name) => !this.#seen.has(name))
    if (unknown.length > 0) throw new Error(`${this.#path}: unknown field ${unknown.join(', ')}`)
  }
}

const EXAMPLE = 'ignition/markets/local/btc-perp.json'

export function readMarketFile(path: string, chainId: bigint): MarketFile {
  const fields = new Fields(readJsonFile(path, '--market', EXAMPLE), path)
  const spec = readSpec(fields, chainId)
  const refusals = listingRefusals(spec)
  if (refusals.length > 0)
    throw new Error(`${path}: cannot be listed: ${refusals.join(', ')} (domain/market/market.ts)`)

  const reports = fields.object('reports')
  const oracle = fields.object('oracle')
  const file = {
    spec,
    reports: {
      maxAge: reports.count('max_age_ms'),
      moveBase: reports.amount('move_base') as Rate,
      moveSlope: reports.amount('move_per_second') as Rate,
      moveWindow: reports.count('move_window_ms'),
    },
    oracle: { signers: oracle.accounts('signers', chainId).sort(), threshold: oracle.count('threshold') },
    operators: fields.accounts('operators', chainId),
    backstopCap: fields.amount('backstop_cap', '0') as Quote,
  }
  for (const part of [reports, oracle, fields]) part.end()
  if (file.oracle.threshold < 1 || file.oracle.threshold > file.oracle.signers.length) {
    throw new Error(`${path}: oracle: threshold must be 1 to ${file.oracle.signers.length}`)
  }
  return file
}

function readSpec(fields: Fields, chainId: bigint): MarketSpec {
  const [tick, step] = [fields.amount('tick') as Price, fields.amount('step') as Quantity]
  const inSteps = (name: string): Steps => Number(fields.amount(name) / (step || 1n)) as Steps
  return {
    marketId: fields.count('market_id') as MarketId,
    symbol: fields.text('symbol'),
    kind: fields.kind('type'),
    trader: NOWHERE,
    chainId,
    tick,
    step,
    minPrice: Number(fields.amount('min_price') / (tick || 1n)) as Ticks,
    minQuantity: inSteps('min_quantity'),
    maxQuantity: inSteps('max_quantity'),
    maxLeverage: fields.count('max_leverage'),
    imr: fields.amount('imr') as Rate,
    mmr: fields.amount('mmr') as Rate,
    mtbLong: fields.amount('mtb_long') as Rate,
    mtbShort: fields.amount('mtb_short') as Rate,
    makerFee: fields.amount('maker_fee') as Rate,
    takerFee: fields.amount('taker_fee') as Rate,
    fundingCap: fields.amount('funding_cap', '0') as Rate,
    fundingSession: fields.flag('funding_session'),
    finalLow: fields.amount('final_low', '0') as Price,
    finalHigh: fields.amount('final_high', '0') as Price,
    expiresAt: fields.moment('expires_at') as Millis,
    disputeWindow: fields.count('dispute_window_ms') as Millis,
  }
}
