/** Places and cancels orders. Every failure says whether the order was placed, was not, or is unknown and being reconciled. */
import { ClearbatchError } from '../../client/errors.ts'
import type { NewOrder, OutgoingOrder } from '../../client/order-factory.ts'
import type { PlacedOrder, Placement } from '../../client/responses.ts'
import { refreshAccount, requireTrader, type Trader } from '../account/trader.ts'
import { counted, number } from '../base/numbers.ts'
import { toast } from '../base/toasts.ts'

const TYPE_WORDS: Readonly<Record<string, string>> = {
  MARKET: 'market',
  LIMIT: 'limit',
  STOP_MARKET: 'stop market',
  STOP_LIMIT: 'stop limit',
  TAKE_PROFIT_MARKET: 'take profit',
  TAKE_PROFIT_LIMIT: 'take profit limit',
  STOP_LOSS_MARKET: 'stop loss',
  STOP_LOSS_LIMIT: 'stop loss limit',
}

export const typeWords = (type: string): string => TYPE_WORDS[type] ?? type.toLowerCase()

export const describeOrder = ({ side, order_type, quantity_e18_raw, symbol }: PlacedOrder): string =>
  `${side === 'LONG' ? 'Buy' : 'Sell'} ${number(quantity_e18_raw, { places: 8, short: true })} ${symbol}, ${typeWords(order_type)}`

const OUTCOMES = {
  not_placed: 'The order was not placed.',
  not_read: 'The request was refused before the order was read.',
  placed: 'The order was placed.',
  unknown: 'Unknown whether the order was placed; checking.',
} as const

/** Describes a failure with its outcome. A request that never reached the exchange has placed nothing. */
export function failureText(error: unknown): string {
  if (!(error instanceof ClearbatchError)) return `${(error as Error).message}. Nothing was sent.`
  const outcome = error.outcome === null ? '' : ` ${OUTCOMES[error.outcome]}`
  return `${error.message}${outcome}`
}

const RECONCILE_MS = 30_000
const POLL_MS = 1_000

/** Asks for the order by its hash until the exchange answers. A signature is never sent again here. */
async function reconcile(
  { orders, live }: Trader,
  { hash }: OutgoingOrder,
  id: string,
): Promise<PlacedOrder | null> {
  const deadline = Date.now() + RECONCILE_MS
  let missing = 0
  while (Date.now() < deadline) {
    try {
      const order = await orders.getByHash(hash)
      toast({ id, kind: 'good', title: 'The order was placed', text: describeOrder(order) })
      live.interrupt()
      return order
    } catch (error) {
      // The exchange answers and does not know the order: it may still be committing once, not for seconds.
      if (error instanceof ClearbatchError && error.status === 404 && ++missing >= 5) {
        toast({
          id,
          kind: 'bad',
          title: 'The order was not placed',
          text: 'The exchange does not know it. Place it again if you still want it.',
        })
        return null
      }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  toast({
    id,
    kind: 'bad',
    title: 'The outcome is still unknown',
    text: `The exchange does not answer. Order hash ${hash}`,
  })
  return null
}

/** Returns null if the order was refused or its outcome stays unknown; a toast says which. */
export async function place(order: NewOrder): Promise<Pick<Placement, 'order'> | null> {
  const id = `order-${crypto.randomUUID()}`
  const current = requireTrader()
  let signed: OutgoingOrder | null = null
  toast({ id, kind: 'pending', title: 'Placing the order …' })
  try {
    signed = await current.orders.sign(order)
    const placement = await current.orders.send(signed)
    current.live.note(placement)
    const protection = placement.expected_protection_price_e18_raw
    const more =
      protection === null ? '' : ` It fills no worse than ${number(protection, { places: 8, short: true })}.`
    toast({ id, kind: 'good', title: 'Order placed', text: `${describeOrder(placement.order)}.${more}` })
    refreshAccount()
    return placement
  } catch (error) {
    const isUnknown = error instanceof ClearbatchError && error.outcome === 'unknown' && signed !== null
    const title = isUnknown ? 'Is the order placed?' : 'Order refused'
    toast({ id, kind: isUnknown ? 'pending' : 'bad', title, text: failureText(error) })
    if (!isUnknown) return null
    const found = await reconcile(current, signed as OutgoingOrder, id)
    return found && { order: found }
  }
}

/** The exits of a position: both may stand at a time, and the one that is left ends with the position. */
export async function placeBracket(orders: readonly NewOrder[]): Promise<boolean> {
  if (orders.length === 0) return true
  const id = `bracket-${crypto.randomUUID()}`
  const { orders: client, live } = requireTrader()
  toast({ id, kind: 'pending', title: 'Placing take profit and stop loss …' })
  try {
    const { results, refused } = await client.placeBatch(orders)
    for (const result of results) if ('order' in result) live.note(result)
    const errors = results.flatMap((result) => ('error' in result ? [result.error.message] : []))
    if (refused > 0)
      toast({
        id,
        kind: 'bad',
        title: `${refused} of ${orders.length} exits were not placed`,
        text: errors.join(' '),
      })
    else toast({ id, kind: 'good', title: 'Take profit and stop loss are set' })
    return refused === 0
  } catch (error) {
    toast({ id, kind: 'bad', title: 'The exits were refused', text: failureText(error) })
    return false
  }
}

export async function cancel(order: PlacedOrder): Promise<boolean> {
  const id = `cancel-${order.order_id}`
  const { orders, live } = requireTrader()
  toast({ id, kind: 'pending', title: 'Cancelling …', text: describeOrder(order) })
  try {
    const cancellation = await orders.cancel(order.order_hash)
    live.note(cancellation)
    toast({
      id,
      kind: cancellation.cancelled ? 'good' : 'info',
      title: cancellation.cancelled ? 'Order cancelled' : 'The order had ended already',
      text: describeOrder(cancellation.order),
    })
    return cancellation.cancelled
  } catch (error) {
    const isUnknown = error instanceof ClearbatchError && error.outcome === 'unknown'
    const text = isUnknown
      ? 'The exchange did not answer. The order list shows whether it is cancelled.'
      : (error as Error).message
    toast({ id, kind: 'bad', title: isUnknown ? 'Is the order cancelled?' : 'Not cancelled', text })
    return false
  }
}

export async function cancelAll(marketId?: number): Promise<void> {
  const id = 'cancel-all'
  const { orders, live } = requireTrader()
  toast({ id, kind: 'pending', title: 'Cancelling all orders …' })
  try {
    const { results, cancelled_count } = await orders.cancelAll(marketId === undefined ? {} : { marketId })
    for (const result of results) live.note(result)
    toast({ id, kind: 'good', title: `${counted(cancelled_count, 'order')} cancelled` })
  } catch (error) {
    toast({ id, kind: 'bad', title: 'Not all orders are cancelled', text: failureText(error) })
  }
}

/** Moves a limit order: the old one is cancelled first, so that both never rest together. */
export async function moveOrder(order: PlacedOrder, price: string): Promise<void> {
  if (!(await cancel(order))) return
  const remaining = BigInt(order.remaining_quantity_e18_raw)
  if (remaining === 0n) return
  await place({
    marketId: order.market_id,
    side: order.side,
    type: order.order_type,
    price,
    quantity: remaining,
    leverage: order.leverage,
    reduceOnly: order.reduce_only,
    expiration: order.expiration_seconds,
    ...(order.trigger_price_e18_raw === '0' ? {} : { trigger: BigInt(order.trigger_price_e18_raw) }),
  })
}
