/** Tasks that hash an order and validate it on chain. Read-only. */
import { existsSync, readFileSync } from 'node:fs'
import { isHexString, parseUnits, TypedDataEncoder } from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import type { MarketSpec } from '../domain/market/market.ts'
import { ORDER_TYPES, type Side, triggerCondition } from '../domain/orders/order.ts'
import { DOMAIN_NAME, DOMAIN_VERSION, ORDER_FIELDS, packFlags } from '../domain/orders/order-hash.ts'
import { type OrderRequest, toOrder } from '../domain/orders/order-request.ts'
import { type Address, type Price, type Quantity, toDecimal } from '../domain/units.ts'
import type { OrderStruct } from '../typechain-types/IsolatedTrader.ts'
import { addressOf, providerOf, reasonOf, specOf, traderAt } from './chain.ts'
import { print, timeOfMillis, toJson } from './print.ts'

const SIDES: readonly Side[] = ['LONG', 'SHORT']

const TYPES = { Order: [...ORDER_FIELDS] }

// ---------------------------------------------------------------------- the order as it is posted

type Body = Readonly<Record<string, unknown>>

const refuse = (body: Body, field: string, expected: string): never => {
  throw new Error(
    `--order: ${field} must be ${expected}; received ${JSON.stringify(body[field]) ?? 'nothing'}`,
  )
}

function bodyOf(given: string): Body {
  const text = existsSync(given) ? readFileSync(given, 'utf8') : given
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Body
  } catch {}
  throw new Error(`--order must be an order as JSON, or a file with it; received "${given}"`)
}

const DECIMAL = /^\d+(\.\d{1,18})?$/

/** A decimal field × 1e18, or the fallback if it is missing. */
function amountOf(body: Body, field: string, fallback?: string): bigint {
  const value = String(body[field] ?? fallback ?? '')
  return DECIMAL.test(value) ? parseUnits(value, 18) : refuse(body, field, 'a decimal number, such as "0.05"')
}

/** Quantity as a decimal or as an integer field; if both are present, they must be equal. */
function quantityOf(body: Body): bigint {
  const raw = body.quantity_e18_raw
  if (raw === undefined) return amountOf(body, 'quantity')
  if (!/^\d+$/.test(String(raw))) return refuse(body, 'quantity_e18_raw', 'a whole number in quotes')
  const quantity = BigInt(String(raw))
  const isSame = body.quantity === undefined || amountOf(body, 'quantity') === quantity
  return isSame ? quantity : refuse(body, 'quantity', `${toDecimal(quantity)}, equal to quantity_e18_raw`)
}

const oneOf = <Value extends string>(body: Body, field: string, values: readonly Value[]): Value =>
  values.find((value) => value === body[field]) ?? refuse(body, field, `one of ${values.join(', ')}`)

function wholeOf(body: Body, field: string, fallback?: number): bigint {
  const value = String(body[field] ?? fallback ?? '')
  return /^\d{1,19}$/.test(value) ? BigInt(value) : refuse(body, field, 'a whole number')
}

function makerOf(body: Body): Address {
  try {
    return addressOf(body.maker, 'maker').toLowerCase() as Address
  } catch {
    return refuse(body, 'maker', 'the address of the account that the order is for')
  }
}

function reduceOnlyOf({ reduce_only: value = false, ...body }: Body): boolean {
  return typeof value === 'boolean'
    ? value
    : refuse({ ...body, reduce_only: value }, 'reduce_only', 'true or false')
}

/** An order as it is posted to `POST /v0/orders`, with its maker. */
function requestOf(given: string, spec: MarketSpec): OrderRequest {
  const body = bodyOf(given)
  return {
    marketId: spec.marketId,
    side: oneOf(body, 'side', SIDES),
    type: oneOf(body, 'order_type', ORDER_TYPES),
    maker: makerOf(body),
    salt: wholeOf(body, 'salt'),
    quantity: quantityOf(body) as Quantity,
    price: amountOf(body, 'price', '0') as Price,
    trigger: amountOf(body, 'trigger_price', '0') as Price,
    leverage: Number(wholeOf(body, 'leverage', 1)),
    reduceOnly: reduceOnlyOf(body),
    expiration: Number(wholeOf(body, 'expiration_seconds', 0)),
  }
}

/** The order as a signed struct. Throws the exchange's refusal if it does not fit the market's grid. */
function orderOf(given: string, spec: MarketSpec): OrderStruct {
  const request = requestOf(given, spec)
  const checked = toOrder(spec, request)
  if (!checked.ok) {
    const { field, expected, received, nearestValid } = checked.refusal
    const nearest = nearestValid === undefined ? '' : ` (nearest valid: ${nearestValid})`
    throw new Error(`--order: ${field} must be ${expected}; received ${received}${nearest}`)
  }
  return {
    flags: `0x${packFlags(request).toString(16).padStart(16, '0')}`,
    quantity: request.quantity,
    price: request.price,
    triggerPrice: request.trigger,
    triggerCondition: triggerCondition(request.type, request.side),
    leverage: BigInt(request.leverage) * 10n ** 18n,
    maker: request.maker,
    expiration: BigInt(request.expiration),
  }
}

// ---------------------------------------------------------------------- tasks

export async function hashOrder(
  given: { trader: string; order: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  const market = await traderAt(provider, given.trader)
  const order = orderOf(given.order, await specOf(market))
  const domain = {
    name: DOMAIN_NAME,
    version: DOMAIN_VERSION,
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
  const order = orderOf(given.order, await specOf(market))
  if (!isHexString(given.signature, 66)) {
    throw new Error(`--signature must be 66 bytes in hex: r, s, v and 01; received "${given.signature}"`)
  }
  const latest = await provider.getBlock('latest')
  const asOf = BigInt(latest?.timestamp ?? 0) * 1000n
  try {
    const [hash, signer] = await market.validateOrder(order, given.signature, asOf)
    const isOwner = signer.toLowerCase() === String(order.maker).toLowerCase()
    print('the market could settle it', {
      hash,
      signer: `${signer} (${isOwner ? 'its maker' : 'a session key of its maker'})`,
      'as of': timeOfMillis(asOf),
      'not checked': 'price, position, margin and remaining quantity',
    })
  } catch (error) {
    throw new Error(`the market rejects the order: ${reasonOf(error)}`)
  }
}
