/** Deploys an exchange with one market in memory, one of its contracts by a forged creation, and checks it. */
import {
  AbstractSigner,
  concat,
  getCreateAddress,
  type Provider,
  type Signer,
  type TransactionRequest,
  toBeHex,
} from 'ethers'
import type { Address } from '../../../domain/units.ts'
import { type CheckInput, checkDeployment, differenceOf } from '../../../ignition/check.ts'
import type { Deployment } from '../../../ignition/deployment.ts'
import type { Finding } from '../../../ignition/finding.ts'
import { type MarketFile, readMarketFile } from '../../../ignition/market-file.ts'
import { deployMarket, deployShared, LIBRARIES } from '../../../stack/deploy.ts'
import type { chain } from '../../support/exchange.ts'

export type Connection = Awaited<ReturnType<typeof chain>>

/** The order in which `stack/deploy.ts` creates contracts. */
export const CREATED = [
  ...['ExchangeAccess', 'TestUSDM', 'Forwarder', 'AccountManager', 'SignedPriceOracle', 'MarginBank'],
  ...Object.keys(LIBRARIES).map((name) => name.slice(name.indexOf(':') + 1)),
  ...['MarketExtension', 'Backstop', 'IsolatedTrader'],
] as const

/** Replaces the creation code and arguments of one contract. */
export interface Forgery {
  /** Index in `CREATED`. */
  readonly contract: number
  /** `created`: the addresses of the contracts before it. */
  readonly forge: (genuine: string, created: readonly string[]) => Promise<string>
}

export interface Exchange {
  readonly deployment: Deployment
  readonly hashes: Map<string, string>
  readonly file: MarketFile
  readonly treasury: string
}

/** Sends every transaction with an account of the node, and records the creations. */
class RecordingSigner extends AbstractSigner {
  readonly created: { readonly address: string; readonly hash: string }[] = []
  readonly #account: Signer
  readonly #forgery: Forgery | undefined

  constructor(account: Signer, forgery?: Forgery) {
    super(account.provider)
    this.#account = account
    this.#forgery = forgery
  }

  override async sendTransaction(asked: TransactionRequest) {
    if (asked.to != null) return this.#account.sendTransaction(asked)
    const isForged = this.#forgery?.contract === this.created.length
    const created = this.created.map(({ address }) => address)
    const data = isForged ? await this.#forgery?.forge(asked.data as string, created) : asked.data
    const sent = await this.#account.sendTransaction({ ...asked, data: data as string })
    this.created.push({ address: getCreateAddress(sent), hash: sent.hash })
    return sent
  }

  override getAddress(): Promise<string> {
    return this.#account.getAddress()
  }

  override connect(): this {
    return this
  }

  override signTransaction(): Promise<string> {
    return this.#refuse()
  }

  override signMessage(): Promise<string> {
    return this.#refuse()
  }

  override signTypedData(): Promise<string> {
    return this.#refuse()
  }

  async #refuse(): Promise<never> {
    throw new Error('signs transactions only by sending them')
  }
}

export async function deployTampered(
  { ethers }: Connection,
  forgery?: Forgery,
  market = 'ignition/markets/local/btc-perp.json',
): Promise<Exchange> {
  const [first, operator] = await ethers.getSigners()
  if (first === undefined || operator === undefined) throw new Error('the chain has no accounts')
  const described = readMarketFile(market, 6343n)
  const file = { ...described, operators: [operator.address.toLowerCase() as Address] }
  const signer = new RecordingSigner(first, forgery)
  const shared = await deployShared(signer)
  await deployMarket(signer, shared, file.spec, {
    operators: [operator],
    oracleSigners: file.oracle.signers,
    threshold: file.oracle.threshold,
    reports: file.reports,
    backstopCap: file.backstopCap,
  })
  const addresses = signer.created.map(({ address }) => address)
  const contracts = Object.fromEntries(
    CREATED.slice(0, -1).map((name, index) => [name, addresses[index] ?? '']),
  )
  return {
    deployment: {
      id: 'tampered',
      contracts,
      markets: new Map([[file.spec.marketId, addresses.at(-1) ?? '']]),
    },
    hashes: new Map(signer.created.map(({ address, hash }) => [address.toLowerCase(), hash])),
    file,
    treasury: first.address,
  }
}

function inputOf(
  { deployment, hashes, treasury }: Exchange,
  compiled: CheckInput['compiled'],
  provider: Provider,
): Omit<CheckInput, 'handedOver' | 'markets'> {
  const holders = { admin: treasury, listing: treasury, parameters: treasury, guardian: treasury, treasury }
  return {
    provider,
    deployment,
    parameters: {
      exchange: { roleDelay: 0, oracleNotice: 0, listingDelay: 0, treasury },
      holders,
      backstopKeys: [],
    },
    creationHashes: hashes,
    compiled,
  }
}

/** Everything that the check finds wrong. */
export async function wrongIn(
  { ethers }: Connection,
  compiled: CheckInput['compiled'],
  exchange: Exchange,
  provider: Provider = ethers.provider,
): Promise<readonly Finding[]> {
  const input = inputOf(exchange, compiled, provider)
  const findings = await checkDeployment({ ...input, markets: [exchange.file], handedOver: false })
  return findings.filter(({ ok }) => !ok)
}

/** The reason why `complete-market --send` would send nothing; null if there is none. */
export const differenceIn = (
  { ethers }: Connection,
  compiled: CheckInput['compiled'],
  exchange: Exchange,
): Promise<string | null> => differenceOf(inputOf(exchange, compiled, ethers.provider), exchange.file)

/** A storage slot and its value. */
export type Write = readonly [slot: bigint, value: bigint]

/**
 * Creation code with the result of the genuine code, its storage and its events, and further writes to storage without an event. It
 * delegates to a contract whose code is the genuine creation code with its arguments.
 */
export const forgedCreation = (genuineAt: string, writes: readonly Write[]): string =>
  concat([
    `0x5f5f5f5f73${genuineAt.slice(2)}5af4503d5f5f3e`,
    ...writes.map(([slot, value]) => concat(['0x7f', toBeHex(value, 32), '0x7f', toBeHex(slot, 32), '0x55'])),
    '0x3d5ff3',
  ])
