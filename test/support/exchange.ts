/** Deploys an exchange on an in-process chain, with users, orders, reports and settlement parts for tests. */
import {
  type ContractTransactionResponse,
  getBytes,
  id,
  keccak256,
  type Result,
  type Signer,
  toBeHex,
  Wallet,
} from 'ethers'
import { network } from 'hardhat'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Order, OrderType, Side, SignedOrder } from '../../domain/orders/order.ts'
import { hashOrder } from '../../domain/orders/order-hash.ts'
import type { ForcedFill, SettlementFill, SettlementPart } from '../../domain/settlement/settlement.ts'
import { encodeSettleBatch } from '../../domain/settlement/settlement-codec.ts'
import type { Address, Millis, Price, Quote, Rate, Steps, Ticks } from '../../domain/units.ts'
import { deployMarket, deployShared, feedIdOf } from '../../stack/deploy.ts'
import { AccountManager__factory } from '../../typechain-types/factories/AccountManager__factory.ts'
import { ExchangeAccess__factory } from '../../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../../typechain-types/factories/SignedPriceOracle__factory.ts'
import { TestUSDM__factory } from '../../typechain-types/factories/TestUSDM__factory.ts'
import { binary, e18, future, perpetual, rate } from './markets.ts'

const opened: {
  connection?: ReturnType<typeof network.create>
  /** The empty chain. No other snapshot is older, so no other restore discards it. */
  empty?: { restore(): Promise<void> }
} = {}

/** One chain per test process. */
export const chain = (): ReturnType<typeof network.create> => {
  opened.connection ??= open()
  return opened.connection
}

/**
 * The latest block of a fixture is as old as the fixture's first use. A fresh block keeps short deadlines
 * from passing on a slow machine.
 */
async function open(): ReturnType<typeof network.create> {
  const connection = await network.create()
  const { networkHelpers } = connection
  const load = networkHelpers.loadFixture
  networkHelpers.loadFixture = async (fixture) => {
    const loaded = await load(fixture)
    await networkHelpers.mine()
    return loaded
  }
  opened.empty = await networkHelpers.takeSnapshot()
  return connection
}

/**
 * Empties the chain and resets its time: a market cannot be deployed after its expiry. Fixtures that were loaded before are
 * deployed again. Tests that pass an expiry restart the chain afterwards, too.
 */
export async function restart(): Promise<void> {
  const { networkHelpers } = await chain()
  await opened.empty?.restore()
  await networkHelpers.clearSnapshots()
}

/** The account that deploys and pays. */
export async function firstSigner(connection: Awaited<ReturnType<typeof network.create>>): Promise<Signer> {
  const [admin] = await connection.ethers.getSigners()
  if (!admin) throw new Error('the chain has accounts')
  return admin
}

/** A struct returned by the chain as a plain object. */
export const fieldsOf = <Struct extends object>(struct: Struct): Struct =>
  (struct as unknown as Result).toObject() as Struct

export const keccak = (message: Uint8Array): Uint8Array => getBytes(keccak256(message))

/** A wallet derived from the name, the same in every test. */
export const wallet = (name: string): Wallet => new Wallet(id(name))

export const addressOf = (of: { readonly address: string }): Address => of.address.toLowerCase() as Address

// ---------------------------------------------------------------------- fixture

export type Exchange = Awaited<ReturnType<typeof deployExchange>>

/** Initial free balance of every user. */
export const START_BALANCE = e18('1000000') as Quote

async function deployExchange(listed: MarketSpec, names: readonly string[]) {
  const connection = await chain()
  const [admin, operator, treasury] = await connection.ethers.getSigners()
  if (!admin || !operator || !treasury) throw new Error('the chain has accounts')
  const oracleSigners = ['oracle 1', 'oracle 2', 'oracle 3']
    .map(wallet)
    .sort((a, b) => (addressOf(a) < addressOf(b) ? -1 : 1))
  const shared = await deployShared(admin, { treasury: addressOf(treasury) })
  const trader = await deployMarket(admin, shared, listed, {
    operators: [operator],
    oracleSigners: oracleSigners.map(addressOf),
    threshold: 2,
  })
  const spec: MarketSpec = { ...listed, trader }
  const users = names.map(wallet)
  const exchange = {
    connection,
    admin,
    operator,
    treasury,
    oracleSigners,
    shared,
    spec,
    users,
    access: ExchangeAccess__factory.connect(shared.access, admin),
    usdm: TestUSDM__factory.connect(shared.usdm, admin),
    bank: MarginBank__factory.connect(shared.marginBank, admin),
    keys: AccountManager__factory.connect(shared.accountManager, admin),
    oracle: SignedPriceOracle__factory.connect(shared.oracle, admin),
    trader: IsolatedTrader__factory.connect(trader, operator),
  }
  await fund(exchange.usdm, exchange.bank, users, START_BALANCE)
  return exchange
}

type Token = ReturnType<typeof TestUSDM__factory.connect>
type Bank = ReturnType<typeof MarginBank__factory.connect>

/** Mints `amount` per user to the admin and deposits it for every user. */
async function fund(usdm: Token, bank: Bank, users: readonly Wallet[], amount: Quote): Promise<void> {
  const admin = await (usdm.runner as unknown as { getAddress(): Promise<string> }).getAddress()
  await usdm.mint(admin, amount * BigInt(users.length))
  await usdm.approve(await bank.getAddress(), amount * BigInt(users.length))
  for (const user of users) await bank.depositFor(user.address, amount)
}

export const NAMES = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank'] as const

const withFees = (spec: MarketSpec): MarketSpec => ({ ...spec, makerFee: rate('0.0001') })

/** Fixtures for `loadFixture`, one per kind of market. */
export const perpetualExchange = (): Promise<Exchange> => deployExchange(withFees(perpetual), NAMES)
export const futureExchange = (): Promise<Exchange> => deployExchange(withFees(future), NAMES)
export const binaryExchange = (): Promise<Exchange> => deployExchange(withFees(binary), NAMES)

/** A perpetual whose funding accrues only during its session. */
export const sessionExchange = (): Promise<Exchange> =>
  deployExchange({ ...withFees(perpetual), fundingSession: true }, NAMES)

/**
 * A perpetual whose steps are a million units, so that amounts per step come near to the bounds of their
 * fields.
 */
export const coarseExchange = (): Promise<Exchange> =>
  deployExchange({ ...withFees(perpetual), step: e18('1000000') as MarketSpec['step'] }, NAMES)

/**
 * A perpetual whose steps are worth so little that a position can exceed 2^48 of them. The step is the least of all: amounts
 * per step and wei of price are not rounded.
 */
export const wideExchange = (): Promise<Exchange> =>
  deployExchange(
    { ...withFees(perpetual), tick: e18('1000000') as Price, step: 1n as MarketSpec['step'] },
    NAMES,
  )

/** A perpetual with `count` funded accounts. */
export const crowdedExchange = (count: number): Promise<Exchange> =>
  deployExchange(
    withFees(perpetual),
    Array.from({ length: count }, (_, index) => `user ${index}`),
  )

// ---------------------------------------------------------------------- orders

export interface FillInput {
  readonly by: Wallet
  readonly side: Side
  readonly fill: number
  /** Limit in ticks; 0 for a market order; by default the clearing price. */
  readonly limit?: number
  readonly quantity?: number
  readonly leverage?: number
  readonly salt?: bigint
  readonly taker?: number
  readonly slot?: number | null
  readonly type?: OrderType
  readonly trigger?: number
  readonly reduceOnly?: boolean
  readonly expiration?: number
  /** Signs instead of the maker. */
  readonly signer?: Wallet
  /** Makes the fill a liquidation with this number, which has no signature. */
  readonly forced?: bigint
}

const salts = { next: 1n }

export function signOrder(order: Order, spec: MarketSpec, signer: Wallet): SignedOrder {
  const hash = hashOrder(order, spec, keccak)
  const signature = `${signer.signMessageSync(getBytes(hash))}01` as `0x${string}`
  return { ...order, hash, signer: addressOf(signer), signature }
}

export function orderOf(input: FillInput, clearing: number, spec: MarketSpec): Order {
  const limit = input.limit ?? clearing
  return {
    marketId: spec.marketId,
    maker: addressOf(input.by),
    side: input.side,
    type: input.type ?? (limit === 0 ? 'MARKET' : 'LIMIT'),
    price: limit as Ticks,
    quantity: (input.quantity ?? input.fill) as Steps,
    trigger: (input.trigger ?? 0) as Ticks,
    leverage: input.leverage ?? 5,
    reduceOnly: input.reduceOnly ?? false,
    expiration: (input.expiration ?? 4_000_000_000) as Order['expiration'],
    salt: input.salt ?? salts.next++,
  }
}

function fillOf(input: FillInput, clearing: number, spec: MarketSpec): SettlementFill | ForcedFill {
  const fill = input.fill as Steps
  const taker = (input.taker ?? (input.side === 'LONG' ? input.fill : 0)) as Steps
  if (input.forced !== undefined)
    return { account: addressOf(input.by), number: input.forced, side: input.side, fill, taker }
  const order = signOrder(orderOf(input, clearing, spec), spec, input.signer ?? input.by)
  return { order, fill, taker, partialSlot: input.slot === undefined ? null : input.slot }
}

/** The fills of a part that have a signature. */
export const signedFills = ({ fills }: Pick<SettlementPart, 'fills'>): SettlementFill[] =>
  fills.filter((fill) => 'order' in fill)

// ---------------------------------------------------------------------- reports and parts

export interface ReportInput {
  readonly price: Price
  readonly observedAt: number
  readonly signers?: readonly Wallet[]
  readonly feedId?: string
}

/** Signatures over a report, in the given order; by default of two of the three signers. */
export function signReport(exchange: Exchange, report: ReportInput): `0x${string}` {
  const { shared, spec, oracleSigners } = exchange
  const domain = {
    name: 'SignedPriceOracle',
    version: '1',
    chainId: spec.chainId,
    verifyingContract: shared.oracle,
  }
  const types = {
    PriceReport: [
      { name: 'feedId', type: 'bytes32' },
      { name: 'price', type: 'uint256' },
      { name: 'observedAt', type: 'uint256' },
    ],
  }
  const value = {
    feedId: report.feedId ?? feedIdOf(spec.marketId),
    price: report.price,
    observedAt: report.observedAt,
  }
  const signers = report.signers ?? oracleSigners.slice(0, 2)
  const hash = exchange.connection.ethers.TypedDataEncoder.hash(domain, types, value)
  return `0x${signers.map((signer) => signer.signingKey.sign(hash).serialized.slice(2)).join('')}`
}

export interface PartInput extends Partial<Omit<SettlementPart, 'fills' | 'price' | 'oracle'>> {
  readonly fills: readonly FillInput[]
  /** Clearing price in ticks. */
  readonly price: number
  /** Oracle price x 1e18; the clearing price by default. */
  readonly oraclePrice?: bigint
  readonly observedAt?: number
}

/** The next part by the chain's state, with `asOf` in the second in which it will be mined. */
export async function buildPart(exchange: Exchange, input: PartInput): Promise<SettlementPart> {
  const { trader, spec } = exchange
  const clock = await trader.clock()
  const asOf = input.asOf ?? (((await nextSecond(exchange)) * 1000) as Millis)
  const oraclePrice = (input.oraclePrice ?? BigInt(input.price) * spec.tick) as Price
  const observedAt = (input.observedAt ?? asOf) as Millis
  const { fills, price, oraclePrice: _price, observedAt: _at, ...given } = input
  return {
    marketId: spec.marketId,
    actionId: Number(clock.actionId) + 1,
    batchId: Number(clock.batchId) + 1,
    part: 1,
    parts: 1,
    asOf,
    makerFee: spec.makerFee,
    takerFee: spec.takerFee,
    ...given,
    price: price as Ticks,
    oracle: {
      price: oraclePrice,
      observedAt,
      signatures: signReport(exchange, { price: oraclePrice, observedAt }),
    },
    fills: fills.map((fill) => fillOf(fill, price, spec)),
  }
}

/** The earliest timestamp of the next block. */
export const nextSecond = async ({ connection }: Pick<Exchange, 'connection'>): Promise<number> =>
  (await connection.networkHelpers.time.latest()) + 1

/** Sends bytes to `settleBatch` in the second after the latest block. */
export async function send(exchange: Exchange, bytes: Uint8Array): Promise<ContractTransactionResponse> {
  await exchange.connection.networkHelpers.time.setNextBlockTimestamp(await nextSecond(exchange))
  return exchange.trader.settleBatch(bytes)
}

export async function settle(exchange: Exchange, input: PartInput): Promise<ContractTransactionResponse> {
  const part = await buildPart(exchange, input)
  return send(exchange, encodeSettleBatch(part, exchange.spec))
}

/** A buyer and a seller of the same quantity; the buyer is the taker. */
export const pair = (
  buyer: Wallet,
  seller: Wallet,
  fill: number,
  both: Partial<FillInput> = {},
): readonly FillInput[] => [
  { by: buyer, side: 'LONG', fill, ...both },
  { by: seller, side: 'SHORT', fill, ...both },
]

/** A fee rate above every schedule. */
export const excessive = e18('0.01') as Rate
export const word = (value: bigint | number): string => toBeHex(value, 32)

// ---------------------------------------------------------------------- callers

/** The user's wallet as a caller of the contracts, with gas. */
export async function caller(exchange: Exchange, user: Wallet): Promise<Wallet> {
  const { connection } = exchange
  await connection.networkHelpers.setBalance(user.address, 10n ** 18n)
  return user.connect(connection.ethers.provider)
}
