/** The values that the immutables of each contract must have. */
import { encodeBytes32String, getCreateAddress, id, TypedDataEncoder, toBeHex, zeroPadValue } from 'ethers'
import { gridOf } from '../stack/deploy.ts'
import type { Creation } from './creations.ts'
import { contractOf, type Deployment } from './deployment.ts'
import type { ExchangeParameters } from './handover.ts'
import type { MarketFile } from './market-file.ts'

/** A deployed contract and everything that determines its code. */
export interface Subject {
  readonly name: string
  readonly address: string
  readonly deployment: Deployment
  readonly exchange: ExchangeParameters
  readonly chainId: bigint
  /** A reason if the creation is unknown. */
  readonly creation: Creation | string
  /** Undefined for a market without a description, and for contracts that all markets share. */
  readonly file?: MarketFile
}

/** By `Contract._NAME`: a word, or null if it depends on the description that is missing. */
type Values = Readonly<Record<string, string | null>>

/** `ExchangeAccess.SETUP`. */
const SETUP_SECONDS = 3 * 86_400
const NO_EXPIRY = 2n ** 256n - 1n

const word = (value: bigint | number): string => toBeHex(value, 32)
const addressWord = (address: string): string => zeroPadValue(address.toLowerCase(), 32)

/** A short string of OpenZeppelin's `ShortStrings`: its length is in the last byte. */
const shortString = (value: string): string =>
  `${encodeBytes32String(value).slice(0, -2)}${toBeHex(value.length, 1).slice(2)}`

const signingDomain =
  (name: string, version: string) =>
  ({ address, chainId }: Subject): Values => ({
    'EIP712._cachedDomainSeparator': TypedDataEncoder.hashDomain({
      name,
      version,
      chainId,
      verifyingContract: address,
    }),
    'EIP712._cachedChainId': word(chainId),
    'EIP712._cachedThis': addressWord(address),
    'EIP712._hashedName': id(name),
    'EIP712._hashedVersion': id(version),
    'EIP712._name': shortString(name),
    'EIP712._version': shortString(version),
  })

const deployed = (subject: Subject, name: string): string => addressWord(contractOf(subject.deployment, name))

const forwarderOf = (subject: Subject): Values => ({
  'ForwardedSender._FORWARDER': deployed(subject, 'Forwarder'),
})

function termsOf({ file }: Subject): Values {
  const grid = file && gridOf(file.spec)
  const of = <Value>(value: Value | undefined, encode: (value: Value) => string): string | null =>
    value === undefined ? null : encode(value)
  return {
    'IsolatedTrader._KIND': of(grid?.kind, word),
    'IsolatedTrader._TICK': of(grid?.tick, word),
    'IsolatedTrader._STEP': of(grid?.step, word),
    'IsolatedTrader._FEED_ID': of(grid?.feedId, String),
    'IsolatedTrader._SESSION_FEED_ID': of(grid?.sessionFeedId, String),
    'IsolatedTrader._EXPIRES_AT': of(grid?.expiresAt, (at) => word(at === 0 ? NO_EXPIRY : at)),
  }
}

const VALUES: Readonly<Record<string, (subject: Subject) => Values>> = {
  ExchangeAccess: ({ exchange, creation }) => ({
    'ExchangeAccess._MINIMUM_DELAY': word(exchange.roleDelay),
    'ExchangeAccess._SETUP_END':
      typeof creation === 'string' ? creation : word(creation.time + SETUP_SECONDS),
  }),
  Forwarder: signingDomain('Forwarder', '1'),
  TestUSDM: signingDomain('MegaUSD (test)', '1'),
  AccountManager: forwarderOf,
  SignedPriceOracle: (subject) => ({
    ...signingDomain('SignedPriceOracle', '1')(subject),
    'SignedPriceOracle._NOTICE': word(subject.exchange.oracleNotice),
  }),
  MarginBank: (subject) => ({
    'MarginBank._TOKEN': addressWord(collateralOf(subject)),
    'MarginBank._LATCH': addressWord(latchOf(subject.address)),
    'MarginBank._LISTING_DELAY': word(subject.exchange.listingDelay),
  }),
  PauseLatch: (subject) => ({ 'PauseLatch._BANK': deployed(subject, 'MarginBank') }),
  Backstop: (subject) => ({
    'Backstop._BANK': deployed(subject, 'MarginBank'),
    'Backstop._ACCOUNT_MANAGER': deployed(subject, 'AccountManager'),
  }),
  MarketExtension: ({ address }) => ({ 'MarketExtension._SELF': addressWord(address) }),
  IsolatedTrader: (subject) => ({
    ...signingDomain('IsolatedTrader', '2.0')(subject),
    ...termsOf(subject),
    ...forwarderOf(subject),
    'IsolatedTrader._BANK': deployed(subject, 'MarginBank'),
    'IsolatedTrader._ACCOUNT_MANAGER': deployed(subject, 'AccountManager'),
    'IsolatedTrader._ORACLE': deployed(subject, 'SignedPriceOracle'),
    'MarketDelegator._EXTENSION': deployed(subject, 'MarketExtension'),
  }),
}

/** The bank creates its latch first. */
export const latchOf = (bank: string): string => getCreateAddress({ from: bank, nonce: 1 })

export const collateralOf = ({ exchange, deployment }: Pick<Subject, 'exchange' | 'deployment'>): string =>
  exchange.usdm ?? contractOf(deployment, 'TestUSDM')

export const valuesOf = (subject: Subject): Values => ({
  library_deploy_address: addressWord(subject.address),
  ...VALUES[subject.name]?.(subject),
})
