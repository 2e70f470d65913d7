/** Tasks that read a market, for operators, traders and auditors. They send nothing. */
import { existsSync, readFileSync } from 'node:fs'
import {
  formatUnits,
  getAddress,
  Interface,
  isHexString,
  type Log,
  type Provider,
  parseUnits,
  TypedDataEncoder,
} from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import type { MarketKind, MarketMode, MarketSpec } from '../domain/market.ts'
import {
  isConditional,
  isMarketType,
  ORDER_TYPES,
  type OrderType,
  type Side,
  triggerCondition,
} from '../domain/order.ts'
import { packFlags } from '../domain/order-hash.ts'
import { BATCH_SETTLED_TOPIC, decodeBatchSettled } from '../domain/settlement-codec.ts'
import type { Address, Price, Quantity, Rate } from '../domain/units.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import type { IsolatedTrader, OrderStruct } from '../typechain-types/IsolatedTrader.ts'

const KINDS: readonly MarketKind[] = ['perpetual', 'future', 'binary_future']
const MODES: readonly MarketMode[] = ['open', 'cancel_only', 'halted', 'settling', 'settled']

const KNOWN = new Interface([
  ...IsolatedTrader__factory.abi,
  ...MarginBank__factory.abi,
  ...SignedPriceOracle__factory.abi,
] as never)

// ---------------------------------------------------------------------- arguments and output

function addressOf(value: string, argument: string): string {
  try {
    return getAddress(value)
  } catch {
    throw new Error(`--${argument} must be an address; received "${value}"`)
  }
}

async function providerOf(hre: HardhatRuntimeEnvironment): Promise<Provider> {
  return (await hre.network.create()).ethers.provider
}

async function traderAt(provider: Provider, value: string): Promise<IsolatedTrader> {
  const address = addressOf(value, 'trader')
  if ((await provider.getCode(address)) === '0x')
    throw new Error(`--trader: ${address} has no code on this chain`)
  return IsolatedTrader__factory.connect(address, { provider })
}

const whole = (wei: bigint): string => formatUnits(wei, 18)
const time = (millis: bigint): string => (millis === 0n ? '-' : new Date(Number(millis)).toISOString())

/** Structs of the chain as plain objects, amounts as decimals left to the caller. */
const plain = (struct: unknown): Record<string, unknown> =>
  (struct as { toObject(): Record<string, unknown> }).toObject()

function print(title: string, fields: Readonly<Record<string, unknown>>): void {
  console.log(title)
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  for (const [name, value] of Object.entries(fields)) console.log(`  ${name.padEnd(width)}  ${value}`)
}

const toJson = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? each.toString() : each), 2)

// ---------------------------------------------------------------------- a market, an account

export async function showMarket(
  { trader }: { trader: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  const market = await traderAt(provider, trader)
  const [grid, parameters, clock, last] = [
    await market.grid(),
    await market.parameters(),
    await market.clock(),
    await market.lastReference(),
  ]
  const bank = MarginBank__factory.connect(await market.bank(), { provider })
  const { pool, fees, openFrom } = await bank.market(await market.getAddress())
  print(`market ${grid.marketId} (${KINDS[Number(grid.kind)]})`, {
    trader: await market.getAddress(),
    tick: whole(grid.tick),
    step: whole(grid.step),
    feed: grid.feedId,
    'session feed': grid.sessionFeedId,
    'final price': `${whole(grid.finalLow)} to ${whole(grid.finalHigh)}`,
    'may settle from': openFrom === 0n ? 'not listed' : time(openFrom * 1000n),
    pool: whole(pool),
    'fees to collect': whole(fees),
    bank: await market.bank(),
    oracle: await market.oracle(),
  })
  print('parameters (fractions in millionths)', {
    ...plain(parameters),
    mode: MODES[Number(parameters.mode)],
  })
  print('queue of actions', {
    'last action': clock.actionId,
    'last batch': `${clock.batchId}, part ${clock.part} of ${clock.parts}`,
    'as of': time(clock.asOf),
  })
  print('reference', {
    'oracle price': whole(last.oraclePrice),
    'observed at': time(last.observedAt),
    'funding index': last.fundingIndex,
  })
  print('funding rate', plain(await market.fundingRate()))
  print('backstop', plain(await market.riskTerms()))
  print('end of the market', plain(await market.wind()))
}

export async function showAccount(
  given: { trader: string; account: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  const market = await traderAt(provider, given.trader)
  const account = addressOf(given.account, 'account')
  const bank = MarginBank__factory.connect(await market.bank(), { provider })
  const [balance, held, grid, last] = [
    await bank.account(account),
    await market.position(account),
    await market.grid(),
    await market.lastReference(),
  ]
  const { equityX, notionalX } = await market.health(account, last.oraclePrice)
  print(`account ${account}`, {
    free: whole(balance.free),
    'pending withdrawal': whole(balance.pending),
    'requested at': time(balance.requestedAt * 1000n),
  })
  print(`position in market ${grid.marketId}`, {
    size: whole(held.size * grid.step),
    'entry notional': whole(held.entryNotional),
    margin: whole(held.margin),
    leverage: held.leverage,
    equity: whole(equityX / 10n ** 18n),
    'margin ratio': notionalX === 0n ? '-' : formatUnits((equityX * 10n ** 6n) / notionalX, 6),
    'lowest margin nonce': (await market.floors(account)).marginNonce,
  })
}

// ---------------------------------------------------------------------- an order

const TYPES = {
  Order: [
    { name: 'flags', type: 'bytes8' },
    { name: 'quantity', type: 'uint128' },
    { name: 'price', type: 'uint128' },
    { name: 'triggerPrice', type: 'uint128' },
    { name: 'triggerCondition', type: 'uint8' },
    { name: 'leverage', type: 'uint128' },
    { name: 'maker', type: 'address' },
    { name: 'expiration', type: 'uint128' },
  ],
}

/** The signed struct of an order as it is posted to `POST /v0/orders`, with its maker. */
function orderOf(given: string): OrderStruct {
  const body = JSON.parse(existsSync(given) ? readFileSync(given, 'utf8') : given || 'null')
  if (typeof body !== 'object' || body === null)
    throw new Error('--order must be an order as JSON, or a file with it')
  const fail = (field: string, expected: string): never => {
    throw new Error(`--order: ${field} must be ${expected}; received ${JSON.stringify(body[field])}`)
  }
  const amount = (field: string): bigint => {
    const value = body[field] ?? 0
    return /^\d+(\.\d{1,18})?$/.test(String(value))
      ? parseUnits(String(value), 18)
      : fail(field, 'a decimal number')
  }
  const side: Side = ['LONG', 'SHORT'].includes(body.side) ? body.side : fail('side', 'LONG or SHORT')
  const type: OrderType = ORDER_TYPES.includes(body.order_type)
    ? body.order_type
    : fail('order_type', `one of ${ORDER_TYPES.join(', ')}`)
  const salt = /^\d{1,16}$/.test(body.salt ?? '')
    ? BigInt(body.salt)
    : fail('salt', 'a decimal string below 2^53')
  const flags = packFlags({ salt, side, reduceOnly: body.reduce_only === true })
  return {
    flags: `0x${flags.toString(16).padStart(16, '0')}`,
    quantity: 'quantity_e18_raw' in body ? BigInt(body.quantity_e18_raw) : amount('quantity'),
    price: isMarketType(type) ? 0n : amount('price'),
    triggerPrice: isConditional(type) ? amount('trigger_price') : 0n,
    triggerCondition: triggerCondition(type, side),
    leverage: parseUnits(String(body.leverage ?? 1), 18),
    maker: addressOf(body.maker ?? '', 'order: maker'),
    expiration: BigInt(body.expiration_seconds ?? 0),
  }
}

export async function hashOrder(
  given: { trader: string; order: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  const market = await traderAt(provider, given.trader)
  const order = orderOf(given.order)
  const domain = {
    name: 'IsolatedTrader',
    version: '2.0',
    chainId: (await provider.getNetwork()).chainId,
    verifyingContract: await market.getAddress(),
  }
  const hash = TypedDataEncoder.hash(domain, TYPES, order)
  const answered = await market.hashOrder(order)
  console.log(toJson({ domain, primaryType: 'Order', types: TYPES, message: order }))
  print('order hash (sign these 32 bytes as a personal message and append 01)', {
    computed: hash,
    'by the market': answered,
  })
  if (hash !== answered) throw new Error('the market computes another hash: is --trader the right contract?')
}

export async function validateOrder(
  given: { trader: string; order: string; signature: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  const market = await traderAt(provider, given.trader)
  if (!isHexString(given.signature, 66)) {
    throw new Error(`--signature must be 66 bytes of hex, ending in 01; received "${given.signature}"`)
  }
  const latest = await provider.getBlock('latest')
  const asOf = BigInt(latest?.timestamp ?? 0) * 1000n
  try {
    const [hash, signer] = await market.validateOrder(orderOf(given.order), given.signature, asOf)
    print('the market could settle it', { hash, signer, 'as of': time(asOf) })
  } catch (error) {
    throw new Error(`the market refuses it: ${reasonOf(error)}`)
  }
}

function reasonOf(error: unknown): string {
  const { data, message } = error as { data?: string; message: string }
  const parsed = data && data.length >= 10 ? KNOWN.parseError(data) : null
  return parsed === null ? message : `${parsed.name}(${parsed.args.map(String).join(', ')})`
}

// ---------------------------------------------------------------------- a settlement

export async function decodeSettlement(
  { tx }: { tx: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  if (!isHexString(tx, 32)) throw new Error(`--tx must be the hash of a transaction; received "${tx}"`)
  const receipt = await provider.getTransactionReceipt(tx)
  if (receipt === null) throw new Error(`--tx: ${tx} is not mined on this chain`)
  print(`transaction ${tx}`, {
    block: receipt.blockNumber,
    status: receipt.status === 1 ? 'mined' : `reverted: ${await revertOf(provider, tx)}`,
    'gas used': receipt.gasUsed,
  })
  for (const log of receipt.logs) await printLog(provider, log)
}

/** Why it reverted: run again on the block that refused it. */
async function revertOf(provider: Provider, hash: string): Promise<string> {
  const sent = await provider.getTransaction(hash)
  if (sent === null) return 'unknown'
  try {
    const { to, from, data, blockNumber } = sent
    await provider.call({ to, from, data, blockTag: (blockNumber ?? 1) - 1 })
    return 'it passes when it is run again'
  } catch (error) {
    return reasonOf(error)
  }
}

async function printLog(provider: Provider, log: Log): Promise<void> {
  if (log.topics[0] === BATCH_SETTLED_TOPIC) return printBatch(provider, log)
  const parsed = KNOWN.parseLog(log)
  const title = parsed === null ? `unknown event ${log.topics[0]}` : parsed.name
  const fields = parsed?.fragment.inputs.map((input, index) => [input.name, toJson(parsed.args[index])]) ?? []
  print(`${title} (${log.address})`, Object.fromEntries(fields.length > 0 ? fields : [['data', log.data]]))
}

async function printBatch(provider: Provider, log: Log): Promise<void> {
  const { grid, spec } = await gridAt(provider, log.address)
  const { fills, ...batch } = decodeBatchSettled(log.topics, log.data, spec)
  print(`batch ${batch.batchId} of market ${grid.marketId}, part ${batch.part} of ${batch.parts}`, {
    action: batch.actionId,
    'as of': time(BigInt(batch.asOf)),
    price: whole(BigInt(batch.price) * grid.tick),
    'oracle price': `${whole(batch.oraclePrice)} at ${time(BigInt(batch.observedAt))}`,
    'funding index': batch.fundingIndex,
    'maker and taker rate': `${whole(batch.makerFee)} ${whole(batch.takerFee)}`,
    orders: fills.length,
  })
  for (const { maker, salt, side, fill, fee, freeDelta, isDead } of fills) {
    const quantity = whole(BigInt(fill) * grid.step)
    const rest = isDead ? 'complete' : 'partly filled'
    console.log(
      `  ${maker} salt ${salt} ${side} ${quantity} fee ${whole(fee)} free ${whole(freeDelta)} ${rest}`,
    )
  }
}

/** What decoding needs of a market: its kind and grid. */
async function gridAt(provider: Provider, trader: string) {
  const grid = await IsolatedTrader__factory.connect(trader, { provider }).grid()
  const spec = {
    kind: KINDS[Number(grid.kind)],
    tick: grid.tick as Price,
    step: grid.step as Quantity,
    takerFee: 0n as Rate,
    trader: trader.toLowerCase() as Address,
  } as MarketSpec
  return { grid, spec }
}
