/** Commands on orders: preview, place, cancel, list, explain, and groups of orders. */
import type { Client } from '../../client/client.ts'
import { fromE18 } from '../../client/decimals.ts'
import type { NewOrder, OutgoingOrder } from '../../client/order-factory.ts'
import { type Bracket, bracketOrders, scaleOrders } from '../../client/order-groups.ts'
import type { IfFilled } from '../../client/order-requests.ts'
import { closingOrders } from '../../client/positions.ts'
import type { PlacedOrder, Validation } from '../../client/responses.ts'
import type { OrderStatus, OrderType, Side, TimeInForce } from '../../domain/orders/order.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT } from '../failure.ts'
import { given } from './account.ts'

export interface Confirming {
  readonly yes: boolean
  readonly 'dry-run': boolean
}

export interface Terms {
  readonly market: string
  readonly side: Side
  readonly quantity: string
  readonly price: string | undefined
  readonly type: OrderType | undefined
  readonly trigger: string | undefined
  readonly leverage: number
  readonly 'reduce-only': boolean
  readonly expires: number | undefined
  readonly label: string | undefined
  readonly tif?: TimeInForce | undefined
  readonly 'post-only'?: boolean
  readonly bracket?: number | undefined
  readonly builder?: string | undefined
}

export async function newOrder(context: Context, client: Client, terms: Terms): Promise<NewOrder> {
  const { market_id } = await context.market(client, terms.market)
  return {
    marketId: market_id,
    side: terms.side,
    quantity: terms.quantity,
    leverage: terms.leverage,
    reduceOnly: terms['reduce-only'],
    ...given({
      price: terms.price,
      type: terms.type,
      trigger: terms.trigger,
      clientOrderId: terms.label,
      timeInForce: terms.tif,
      postOnly: terms['post-only'] || undefined,
      bracketId: terms.bracket,
      builder: terms.builder,
      expiration: terms.expires === undefined ? undefined : Math.floor(Date.now() / 1000) + terms.expires,
    }),
  }
}

const previewOf = (validation: Validation) => ({
  order_hash: validation.order_hash,
  status: validation.status,
  side: validation.side,
  opening_quantity: validation.opening_quantity,
  closing_quantity: validation.closing_quantity,
  reserved_margin: validation.reserved_margin,
  fee_allowance: validation.fee_allowance,
  expected_protection_price: validation.expected_protection_price,
  band: `${validation.price_band.lowest} to ${validation.price_band.highest}`,
  available: validation.balance.available,
})

const placedRow = (order: PlacedOrder) => ({
  order_id: order.order_id,
  symbol: order.symbol,
  status: order.status,
  side: order.side,
  order_type: order.order_type,
  price: order.price,
  trigger_price: order.trigger_price,
  quantity: order.quantity,
  filled_quantity: order.filled_quantity,
  leverage: order.leverage,
  order_hash: order.order_hash,
  client_order_id: order.client_order_id,
  bracket_id: order.bracket_id,
})

/** The exchange checks the signed order without placing it; throws what placing it would throw. */
export async function place(context: Context, args: Terms & Confirming) {
  const client = await context.signing()
  const signed = await client.orders.sign(await newOrder(context, client, args))
  const preview = previewOf(await client.orders.validate(signed))
  if (args['dry-run']) return preview
  if (!args.yes) {
    context.terminal.note(
      Object.entries(preview)
        .map(([name, value]) => `${name}: ${value}`)
        .join('\n'),
    )
    await context.terminal.confirm(`Place this ${args.side} of ${args.quantity} in ${args.market}?`)
  }
  return placedRow((await sendNamed(client, signed)).order)
}

/** If the outcome is unknown, the error has the hash by which the order can be found. */
export const sendNamed = (client: Client, signed: OutgoingOrder) => named(signed, client.orders.send(signed))

async function named<Answer>(signed: OutgoingOrder, sending: Promise<Answer>): Promise<Answer> {
  try {
    return await sending
  } catch (error) {
    const { outcome, details } = error as { outcome?: string; details?: object }
    if (outcome === 'unknown')
      Object.assign(error as object, {
        message: `${(error as Error).message}. Look it up: clearbatch order explain ${signed.hash}`,
        details: { ...details, order_hash: signed.hash },
      })
    throw error
  }
}

interface ReplaceArguments
  extends Pick<Terms, 'price' | 'expires' | 'label' | 'tif' | 'post-only' | 'builder'> {
  readonly positionals: readonly string[]
  readonly quantity: string | undefined
  readonly 'if-filled': IfFilled | undefined
}

/** The new order is of the market, side, type and leverage of the old one. */
export async function replace(context: Context, args: ReplaceArguments & Confirming) {
  const client = await context.signing()
  const old = await context.order(client, args.positionals[0] ?? '')
  const own = { price: old.price === 0 ? undefined : fromE18(BigInt(old.price_e18_raw)) }
  const trigger = old.trigger_price === 0 ? undefined : fromE18(BigInt(old.trigger_price_e18_raw))
  const order = {
    marketId: old.market_id,
    side: old.side,
    type: old.order_type,
    leverage: old.leverage,
    reduceOnly: old.reduce_only,
    quantity: args.quantity ?? fromE18(BigInt(old.signed_quantity_e18_raw)),
    ...given({
      price: args.price ?? own.price,
      trigger,
      expiresInSeconds: args.expires,
      clientOrderId: args.label,
      timeInForce: args.tif,
      postOnly: args['post-only'] || undefined,
      builder: args.builder,
    }),
  }
  const preview = { replaces: old.order_id, ...order }
  if (args['dry-run']) return preview
  if (!args.yes) {
    context.terminal.note(`${old.side} of ${old.remaining_quantity} at ${old.price}`)
    await context.terminal.confirm(`Replace it by ${order.quantity} at ${args.price ?? old.price}?`)
  }
  const signed = await client.orders.sign(order)
  const options = given({ ifFilled: args['if-filled'] })
  const target = { orderHash: old.order_hash }
  const { order: placed } = await named(signed, client.orders.replace(target, signed, options))
  return { ...placedRow(placed), replaces: placed.replaces }
}

interface CancelOptions {
  readonly positionals: readonly string[]
  readonly all: boolean
  readonly market: string | undefined
}

export async function cancel(context: Context, { positionals: names, all, market: symbol }: CancelOptions) {
  if (all === names.length > 0)
    throw new CommandError(
      'expected orders (hash, id or label), or --all with an optional --market',
      EXIT.usage,
    )
  const client = context.reader()
  if (all) {
    const market = symbol === undefined ? undefined : await context.market(client, symbol)
    const { results } = await client.orders.cancelAll(given({ marketId: market?.market_id }))
    return results.map(({ order }) => placedRow(order))
  }
  const rows: object[] = []
  for (const name of names) {
    const { order_hash } = await context.order(client, name)
    rows.push(placedRow((await client.orders.cancel(order_hash)).order))
  }
  return rows
}

interface ListOptions {
  readonly status: OrderStatus | undefined
  readonly market: string | undefined
  readonly limit: number | undefined
}

export async function list(context: Context, { status, market: symbol, limit }: ListOptions) {
  const anonymous = context.reader()
  const client = context.reader((await anonymous.account.me()).address)
  const market = symbol === undefined ? undefined : await context.market(client, symbol)
  const orders = await client.orders.list(given({ status, limit, marketId: market?.market_id }))
  return orders.map(placedRow)
}

/** Explains an order: its events, its fills with their settlement, and the reason of its end. */
export async function explain(
  context: Context,
  { positionals: [name = ''] }: { readonly positionals: readonly string[] },
) {
  const client = context.reader()
  const order = await context.order(client, name)
  const [events, processing] = await Promise.all([
    client.orders.events(order.order_id),
    client.orders.fillProcessing(order.order_id),
  ])
  const why = order.status_reason === null ? '' : `, because of ${order.status_reason}`
  return {
    summary: `${order.side} ${order.quantity} ${order.symbol} ${order.order_type} is ${order.status}${why}; ${order.filled_quantity} filled`,
    ...placedRow(order),
    status_reason: order.status_reason,
    average_price: order.average_price,
    fee: order.fee,
    events: events.map(({ created_at, kind, details }) => ({
      created_at,
      kind,
      reason: details.status_reason,
    })),
    fills: processing.fills.map(({ batch_id, price, quantity, stage, tx_hash }) => ({
      batch_id,
      price,
      quantity,
      stage,
      tx_hash,
    })),
  }
}

// ---------------------------------------------------------------------- groups

/** Prints the orders and places them in one batch after a confirmation. */
async function placeGroup(
  context: Context,
  client: Client,
  orders: readonly NewOrder[],
  { args, mode }: { readonly args: Confirming; readonly mode: 'atomic' | 'best_effort' },
) {
  const rows = orders.map(({ side, type, price, trigger, quantity, reduceOnly }) => ({
    side,
    type: type ?? (price === undefined ? 'MARKET' : 'LIMIT'),
    price: price ?? null,
    trigger: trigger ?? null,
    quantity,
    reduce_only: reduceOnly ?? false,
  }))
  if (args['dry-run']) return rows
  if (!args.yes) {
    for (const row of rows) context.terminal.note(Object.values(row).join('  '))
    await context.terminal.confirm(`Place these ${orders.length} orders?`)
  }
  const { results } = (await client.orders.placeBatch(orders, { mode })).orThrow()
  return results.map(({ order }) => placedRow(order))
}

interface BracketTerms extends Omit<Terms, 'type' | 'trigger'> {
  readonly 'take-profit': string | undefined
  readonly 'stop-loss': string | undefined
}

export async function bracket(context: Context, args: BracketTerms & Confirming) {
  const client = await context.signing()
  const {
    type: _,
    reduceOnly: __,
    ...entry
  } = await newOrder(context, client, { ...args, type: undefined, trigger: undefined })
  const exit = (trigger: string | undefined) => (trigger === undefined ? undefined : { trigger })
  const terms = {
    entry,
    ...given({ takeProfit: exit(args['take-profit']), stopLoss: exit(args['stop-loss']) }),
  } as Bracket
  return placeGroup(context, client, bracketOrders(terms), { args, mode: 'atomic' })
}

interface ScaleTerms {
  readonly market: string
  readonly side: Side
  readonly quantity: string
  readonly from: string
  readonly to: string
  readonly count: number
  readonly leverage: number
  readonly 'reduce-only': boolean
}

export async function scale(context: Context, args: ScaleTerms & Confirming) {
  const client = await context.signing()
  const market = await context.market(client, args.market)
  const { side, quantity, from, to, count, leverage } = args
  const terms = { marketId: market.market_id, side, quantity, from, to, count, leverage }
  const orders = scaleOrders({ ...terms, reduceOnly: args['reduce-only'] }, market)
  return placeGroup(context, client, orders, { args, mode: 'atomic' })
}

export async function close(
  context: Context,
  args: Confirming & {
    readonly all: boolean
    readonly market: string | undefined
    readonly quantity: string | undefined
  },
) {
  if (args.all === (args.market !== undefined))
    throw new CommandError('expected either --market <symbol> or --all', EXIT.usage)
  if (args.all && args.quantity !== undefined)
    throw new CommandError('expected --quantity only with --market', EXIT.usage)
  const client = await context.signing()
  const market = args.market === undefined ? undefined : await context.market(client, args.market)
  const positions = await client.account.positions(given({ marketId: market?.market_id }))
  const orders = closingOrders(positions)
  if (orders.length === 0) return []
  if (args.all) return placeGroup(context, client, orders, { args, mode: 'best_effort' })
  return closeOne(
    context,
    client,
    { ...(orders[0] as NewOrder), ...given({ quantity: args.quantity }) },
    args,
  )
}

/** The quantity is an upper bound: the auction closes at most the position that it finds. */
async function closeOne(context: Context, client: Client, order: NewOrder, args: Confirming) {
  const signed = await client.orders.sign(order)
  if (args['dry-run']) return [previewOf(await client.orders.validate(signed))]
  if (!args.yes) await context.terminal.confirm(`Close up to ${order.quantity} by a ${order.side}?`)
  const answer = await named(signed, client.orders.close(signed))
  const { position_quantity, closing_quantity, staying_quantity } = answer
  return [{ ...placedRow(answer.order), position_quantity, closing_quantity, staying_quantity }]
}

/** The body of `POST /v0/orders` for a program that sends it itself. */
export async function sign(context: Context, args: Terms) {
  const signer = await context.signer()
  const client = context.unauthenticated(signer)
  const { body } = await client.orders.sign(await newOrder(context, client, args))
  return `${JSON.stringify(body)}\n`
}
