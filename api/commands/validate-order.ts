/** Validates an order by a dry run of its placement: the engine makes every check of one, and stores nothing. */
import type { Db } from '../../db/client.ts'
import { type Band, priceBand } from '../../domain/market/band.ts'
import { highestPrice, type MarketSpec, priceOf, quantityOf } from '../../domain/market/market.ts'
import { isConditional, isMarketType, type Order, type SignedOrder } from '../../domain/orders/order.ts'
import { hashOrder } from '../../domain/orders/order-hash.ts'
import { maxOf, type Price, type Quote, type Steps, type Ticks } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { keccak } from '../../service/crypto.ts'
import { balanceView } from '../accounts/view.ts'
import type { Caller } from '../auth/caller.ts'
import { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import { expectedProtectionPrice, readQuotes } from '../order-book/expected-protection.ts'
import type { PlaceOrderBody } from '../order-entry/schema.ts'
import { typedData } from '../order-entry/typed-data-view.ts'
import type { ValidateAnswer, ValidateBody } from '../order-entry/validation-schema.ts'
import { bandView, type Reservation, reservationView } from '../orders/reservation-view.ts'
import { amount, maybeAmount } from '../wire/amounts.ts'
import type { Placed } from './command.ts'
import type { CommandDispatcher } from './dispatcher.ts'
import { parseFlags, parseOrder } from './parse-order.ts'
import { onlyResult, singleCommand } from './submit-single.ts'
import type { Verifier } from './verify-signature.ts'

export interface ValidatePorts {
  readonly db: Db
  readonly clock: Clock
  readonly dispatcher: Pick<CommandDispatcher, 'dryRun'>
  readonly markets: MarketDirectory
  readonly verifier: Verifier
}

/** An order without a signature is treated as signed by its maker. */
async function signedOrder(
  { verifier }: ValidatePorts,
  spec: MarketSpec,
  order: Order,
  signature: string | undefined,
): Promise<SignedOrder> {
  if (signature !== undefined) return verifier.verify(spec, order, signature)
  return { ...order, hash: hashOrder(order, spec, keccak), signer: order.maker, signature: '0x' }
}

/** The price range in which an order of this side and type is not rejected for its price. */
function limitsOf(spec: MarketSpec, { side, type, trigger }: Order, now: Band): Band {
  const band = isConditional(type) ? priceBand(spec, priceOf(spec, trigger)) : now
  return side === 'LONG'
    ? { lo: spec.minPrice, hi: band.hi }
    : { lo: maxOf(spec.minPrice, band.lo), hi: highestPrice(spec) }
}

const reservationOf = ({ order }: Placed): Reservation => ({
  side: order.side,
  price: order.price as Ticks,
  quantity: order.quantity as Steps,
  openable: order.openable as Steps,
  reserved: order.reserved as Quote,
  reservedPrice: order.reserved_price as Ticks,
})

function boundsView(spec: MarketSpec, { lo, hi }: Band): ValidateAnswer['nearest_valid'] {
  return {
    ...amount('lowest_price', priceOf(spec, lo)),
    ...amount('highest_price', priceOf(spec, hi)),
    ...amount('tick_size', spec.tick),
    ...amount('min_quantity', quantityOf(spec, spec.minQuantity)),
    ...amount('max_quantity', quantityOf(spec, spec.maxQuantity)),
    ...amount('step_size', spec.step),
    max_leverage: spec.maxLeverage,
  }
}

/** For a repeated order that has ended, which is answered without a price. */
async function readOraclePrice(db: Db, { marketId }: MarketSpec): Promise<Price> {
  const report = await db
    .selectFrom('oracle_reports')
    .select('price')
    .where('market_id', '=', marketId)
    .where('feed', '=', 'index')
    .executeTakeFirst()
  if (report === undefined) throw new ApiError('ORACLE_STALE', {}, '1')
  return report.price as Price
}

export async function validateOrder(
  ports: ValidatePorts,
  caller: Caller,
  body: ValidateBody,
): Promise<ValidateAnswer> {
  const { userId, address } = caller
  const spec = await ports.markets.byId(Number(body.market_id))
  const order = parseOrder(spec, address, body as PlaceOrderBody)
  const flags = parseFlags(body, order)
  const signed = await signedOrder(ports, spec, order, body.signature)
  const clientOrderId = body.client_order_id ?? null
  const item = { kind: 'place', spec, order: signed, clientOrderId, flags } as const
  const report = await ports.dispatcher.dryRun(singleCommand(caller, item))
  const placed = onlyResult<Placed>(report)
  const oracle = placed.oracle ?? (await readOraclePrice(ports.db, spec))
  const band = priceBand(spec, oracle)
  const quotes = isMarketType(order.type)
    ? await readQuotes(ports.db, spec, { userId, side: order.side }, ports.clock.now())
    : null
  return {
    valid: true,
    order_hash: signed.hash,
    digest: signed.hash,
    signer: body.signature === undefined ? null : signed.signer,
    is_duplicate: placed.isDuplicate,
    status: placed.order.status,
    side: order.side,
    ...reservationView(spec, reservationOf(placed)),
    ...maybeAmount('expected_protection_price', expectedProtectionPrice(spec, placed.order, oracle, quotes)),
    price_band: bandView(spec, band, oracle),
    nearest_valid: boundsView(spec, limitsOf(spec, order, band)),
    balance: balanceView(report.balance),
    typed_data: typedData(spec, order),
  }
}
