/** Signing vectors of adjustments, forward requests and price reports. Part of `docs/signing-vectors.json`. */
import { getBytes, TypedDataEncoder, type TypedDataField, type Wallet } from 'ethers'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { feedIdOf, finalFeedIdOf, sessionFeedIdOf } from '../../../stack/deploy.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { addressOf, wallet } from '../../support/exchange.ts'
import { binary, e18, future, perpetual } from '../../support/markets.ts'
import { FORWARD_REQUEST, forwardDomainOf } from './forward.ts'

const fieldsOf = (text: string): TypedDataField[] =>
  text.split(', ').map((field) => {
    const [type = '', name = ''] = field.split(' ')
    return { name, type }
  })

export const ADJUST_MARGIN = fieldsOf(
  'address account, int256 amount, uint8 removeMode, uint256 minAmount, uint256 nonce, uint256 deadline',
)
export const ADJUST_LEVERAGE = fieldsOf(
  'address account, uint256 leverage, uint256 maxMarginIn, uint256 minMarginOut, uint256 nonce, uint256 deadline',
)
export const PRICE_REPORT = fieldsOf('bytes32 feedId, uint256 price, uint256 observedAt')

/** Addresses of contracts in the vectors; they need no code. */
export const FORWARDER = '0x4444444444444444444444444444444444444444'
export const ORACLE = '0x5555555555555555555555555555555555555555'
const ACCOUNT_MANAGER = '0x6666666666666666666666666666666666666666'
const CHAIN_ID = 6343n

const owner = wallet('signing vectors')
const sessionKey = wallet('session key of the vectors')
const LAST_NONCE = 2n ** 53n - 1n
const DEADLINE = 1_900_000_000

export interface TypedVector {
  readonly primary_type: string
  readonly what: string
  readonly domain: Readonly<Record<string, string>>
  /** Numbers as text. */
  readonly struct: Readonly<Record<string, string>>
  readonly struct_hash: string
  readonly digest: string
  /** 65 bytes: an EIP-712 signature of the digest. */
  readonly signature: string
}

type Values = Readonly<Record<string, string | bigint | number>>

interface Given {
  readonly type: string
  readonly fields: TypedDataField[]
  readonly domain: Readonly<Record<string, string>>
  readonly signer?: Wallet
}

function vectorOf(
  { type, fields, domain, signer = owner }: Given,
  what: string,
  values: Values,
): TypedVector {
  const struct = Object.fromEntries(fields.map(({ name }) => [name, `${values[name]}`]))
  const digest = TypedDataEncoder.hash(domain, { [type]: fields }, struct)
  return {
    primary_type: type,
    what,
    domain,
    struct,
    struct_hash: TypedDataEncoder.hashStruct(type, { [type]: fields }, struct),
    digest,
    signature: signer.signingKey.sign(digest).serialized,
  }
}

// ---------------------------------------------------------------------- adjustments

const marketDomain = ({ trader, chainId }: MarketSpec) => ({
  name: 'IsolatedTrader',
  version: '2.0',
  chainId: `${chainId}`,
  verifyingContract: trader,
})

/** Owners may also sign adjustments as a personal message, like an order. */
const personally = (vector: TypedVector) => ({
  ...vector,
  personal_signature: `${owner.signMessageSync(getBytes(vector.digest))}01`,
})

const marginVector = (spec: MarketSpec, what: string, values: Values) =>
  personally(
    vectorOf({ type: 'AdjustMargin', fields: ADJUST_MARGIN, domain: marketDomain(spec) }, what, {
      account: addressOf(owner),
      removeMode: 0,
      minAmount: 0n,
      deadline: DEADLINE,
      ...values,
    }),
  )

const leverageVector = (spec: MarketSpec, what: string, values: Values) =>
  personally(
    vectorOf({ type: 'AdjustLeverage', fields: ADJUST_LEVERAGE, domain: marketDomain(spec) }, what, {
      account: addressOf(owner),
      minMarginOut: 0n,
      maxMarginIn: 0n,
      deadline: DEADLINE,
      ...values,
    }),
  )

const adjustments = () => [
  marginVector(perpetual, 'add 250', { amount: e18('250'), nonce: 0n }),
  marginVector(perpetual, 'add a wei, with the last nonce', { amount: 1n, nonce: LAST_NONCE }),
  marginVector(future, 'remove exactly 12.5', { amount: e18('-12.5'), nonce: 1n }),
  marginVector(future, 'remove up to 100, 40 at least', {
    amount: e18('-100'),
    removeMode: 1,
    minAmount: e18('40'),
    nonce: 2n,
  }),
  marginVector(binary, 'remove whatever can be removed', {
    amount: -(2n ** 255n),
    removeMode: 1,
    nonce: 3n,
    deadline: LAST_NONCE,
  }),
  leverageVector(perpetual, '20 times, at least 5 of margin back', {
    leverage: e18('20'),
    minMarginOut: e18('5'),
    nonce: 4n,
  }),
  leverageVector(future, 'one time, for 1,000 at most', {
    leverage: e18('1'),
    maxMarginIn: e18('1000'),
    nonce: 5n,
  }),
  leverageVector(binary, 'three times, whatever it costs', {
    leverage: e18('3'),
    maxMarginIn: 2n ** 256n - 1n,
    nonce: LAST_NONCE,
  }),
]

// ---------------------------------------------------------------------- requests to the forwarder

const market = IsolatedTrader__factory.createInterface()
const keys = AccountManager__factory.createInterface()

const forwardVector = (what: string, nonce: number, to: string, data: string) =>
  vectorOf(
    { type: 'ForwardRequest', fields: FORWARD_REQUEST, domain: forwardDomainOf(CHAIN_ID, FORWARDER) },
    what,
    { from: addressOf(owner), to, value: 0, gas: 300_000, nonce, deadline: DEADLINE, data },
  )

/** The nonces are consecutive, so the requests execute one after the other. */
const forwardRequests = () => [
  forwardVector(
    'invalidateMarginNonces(8)',
    0,
    perpetual.trader,
    market.encodeFunctionData('invalidateMarginNonces', [8]),
  ),
  forwardVector(
    'invalidateMarginNonces(2^53 - 1)',
    1,
    binary.trader,
    market.encodeFunctionData('invalidateMarginNonces', [LAST_NONCE]),
  ),
  forwardVector(
    'cancelSalts([1, 7, 2^53 - 1])',
    2,
    perpetual.trader,
    market.encodeFunctionData('cancelSalts', [[1, 7, LAST_NONCE]]),
  ),
  forwardVector(
    'cancelSaltsBelow(100)',
    3,
    future.trader,
    market.encodeFunctionData('cancelSaltsBelow', [100]),
  ),
  forwardVector(
    'registerSessionKey(key, 3)',
    4,
    ACCOUNT_MANAGER,
    keys.encodeFunctionData('registerSessionKey', [sessionKey.address, 3]),
  ),
  forwardVector(
    'revokeSessionKey(key)',
    5,
    ACCOUNT_MANAGER,
    keys.encodeFunctionData('revokeSessionKey', [sessionKey.address]),
  ),
]

// ---------------------------------------------------------------------- price reports

const reportDomain = {
  name: 'SignedPriceOracle',
  version: '1',
  chainId: `${CHAIN_ID}`,
  verifyingContract: ORACLE,
}

const reportVector = (what: string, feedId: string, price: bigint) =>
  vectorOf({ type: 'PriceReport', fields: PRICE_REPORT, domain: reportDomain }, what, {
    feedId,
    price,
    observedAt: DEADLINE * 1000,
  })

const priceReports = () => [
  reportVector('the price of market 1: 50,000.5', feedIdOf(perpetual.marketId), e18('50000.5')),
  reportVector('the end of the session of market 1', sessionFeedIdOf(perpetual.marketId), 1_900_003_600_000n),
  reportVector('the final price of market 2: 1,234', finalFeedIdOf(future.marketId), e18('1234')),
  reportVector('market 3 ends with yes', finalFeedIdOf(binary.marketId), e18('1')),
]

/** The vectors besides those of orders. */
export const actionVectors = () => ({
  action_types: {
    AdjustMargin: ADJUST_MARGIN,
    AdjustLeverage: ADJUST_LEVERAGE,
    ForwardRequest: FORWARD_REQUEST,
    PriceReport: PRICE_REPORT,
  },
  adjustments: adjustments(),
  forward_requests: forwardRequests(),
  price_reports: priceReports(),
})
