/** Places and cancels orders. Every failure says whether the order was placed, was not, or is unknown and being reconciled. */
import { ClearbatchError } from '../../client/errors.ts'
import type { NewOrder, OutgoingOrder } from '../../client/order-factory.ts'
import { newBracketId } from '../../client/order-groups.ts'
import type { OrderRequests } from '../../client/order-requests.ts'
import type { PlacedOrder, Placement, SweepCancellation } from '../../client/responses.ts'
import { isWaiting } from '../account/live-account.ts'
import { refreshAccount, requireTrader, type Trader } from '../account/trader.ts'
import { counted, quantity } from '../base/numbers.ts'
import { attempt, type Toast, toast } from '../base/toasts.ts'

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

/** The type with its flags, such as `limit, post only`. */
export const termsOf = (order: PlacedOrder): string =>
  [
    typeWords(order.order_type),
    ...(order.reduce_only ? ['reduce only'] : []),
    ...(order.post_only ? ['post only'] : []),
    ...(order.time_in_force === 'ioc' ? ['IOC'] : []),
  ].join(', ')

export const describeOrder = ({ side, order_type, quantity_e18_raw, symbol }: PlacedOrder): string =>
  `${side === 'LONG' ? 'Buy' : 'Sell'} ${quantity(quantity_e18_raw)} ${symbol}, ${typeWords(order_type)}`

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

/** Whether changing the order can help. A failure of the exchange or of the network passes by itself. */
const isAboutOrder = ({ status, retryable }: ClearbatchError): boolean =>
  status >= 400 && status < 500 && !retryable

const RECONCILE_MS = 30_000
const POLL_MS = 1_000

/** Asks for the order by its hash until the exchange answers. A signature is never sent again here. */
async function reconcile({ orders, live }: Trader, { hash }: OutgoingOrder, id: string): Promise<boolean> {
  const deadline = Date.now() + RECONCILE_MS
  let missing = 0
  while (Date.now() < deadline) {
    try {
      const order = await orders.getByHash(hash)
      toast({ id, kind: 'good', title: 'The order was placed', text: describeOrder(order) })
      live.interrupt()
      return true
    } catch (error) {
      // The exchange answers and does not know the order: it may still be committing once, not for seconds.
      if (error instanceof ClearbatchError && error.status === 404 && ++missing >= 5) {
        toast({
          id,
          kind: 'bad',
          title: 'The order was not placed',
          text: 'The exchange does not know it. Place it again if you still want it.',
        })
        return false
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
  return false
}

interface Submission {
  readonly doing: string
  readonly refused: string
  /** Outcome after a refusal, in place of the outcome that the exchange states. */
  readonly unchanged?: string
  /** `accepted`: all that the exchange has answered with, the order that the toast describes last. */
  readonly send: (
    orders: OrderRequests,
    signed: readonly OutgoingOrder[],
  ) => Promise<Partial<Toast> & { readonly accepted: readonly Noted[] }>
  readonly onRefused?: ((error: ClearbatchError) => void) | undefined
}

type Noted = Pick<Placement, 'order' | 'read_after'>

/** Signs orders and sends them with one toast. Returns whether the exchange has accepted them; if that is unknown, it is followed by the first hash. */
async function submit(
  terms: readonly NewOrder[],
  { doing, refused, unchanged, send, onRefused }: Submission,
): Promise<boolean> {
  const id = `order-${crypto.randomUUID()}`
  const current = requireTrader()
  let first: OutgoingOrder | undefined
  toast({ id, kind: 'pending', title: doing })
  try {
    const signed = await Promise.all(terms.map((each) => current.orders.sign(each)))
    first = signed[0]
    const { accepted, ...words } = await send(current.orders, signed)
    for (const each of accepted) current.live.note(each)
    const { order } = accepted.at(-1) as Noted
    toast({ id, kind: 'good', title: 'Order placed', text: `${describeOrder(order)}.`, ...words })
    refreshAccount()
    return true
  } catch (error) {
    const isAnswer = error instanceof ClearbatchError
    if (isAnswer && error.outcome === 'unknown' && first !== undefined) {
      toast({ id, kind: 'pending', title: 'Is the order placed?', text: failureText(error) })
      return reconcile(current, first, id)
    }
    const text = unchanged === undefined ? failureText(error) : `${(error as Error).message} ${unchanged}`
    toast({ id, kind: 'bad', title: refused, text })
    if (isAnswer && isAboutOrder(error)) onRefused?.(error)
    return false
  }
}

const PLACING = { doing: 'Placing the order …', refused: 'Order refused' } as const

/** A toast says what became of the order. `onRefused` has the reason of a refusal. */
export const place = (order: NewOrder, onRefused?: Submission['onRefused']): Promise<boolean> =>
  submit([order], {
    ...PLACING,
    onRefused,
    send: async (orders, [signed]) => {
      const placement = await orders.send(signed as OutgoingOrder)
      const protection = placement.expected_protection_price_e18_raw
      const more = protection === null ? '' : ` It fills no worse than ${quantity(protection)}.`
      return { accepted: [placement], text: `${describeOrder(placement.order)}.${more}` }
    },
  })

/** Places orders with the number of one bracket, all or none: the exchange ends them together. */
export const placeBracket = (
  terms: readonly NewOrder[],
  { title, bracketId = newBracketId(), onRefused }: BracketOptions,
): Promise<boolean> =>
  submit(
    terms.map((each) => ({ ...each, bracketId })),
    {
      ...PLACING,
      onRefused,
      send: async (orders, signed) => {
        const { results } = (await orders.placeBatch(signed, { mode: 'atomic' })).orThrow()
        const linked = { text: 'They are linked: the exchange ends them together.' }
        return { accepted: results, title, ...(terms.length > 1 && linked) }
      },
    },
  )

interface BracketOptions {
  readonly title: string
  readonly bracketId?: number | undefined
  readonly onRefused?: Submission['onRefused']
}

/** Closes at most the order's quantity of the position; the toast states what stays open. */
export const close = (order: NewOrder, limit: string): Promise<boolean> =>
  submit([order], {
    doing: 'Closing the position …',
    refused: 'The position is not closed',
    send: async (orders, [signed]) => {
      const closing = await orders.close(signed as OutgoingOrder)
      const { closing_quantity_e18_raw: part, staying_quantity_e18_raw: rest } = closing
      const title = `Closing ${quantity(part ?? closing.order.quantity_e18_raw)} ${closing.order.symbol}`
      const accepted = [closing]
      return rest === null || rest === '0'
        ? { accepted, title }
        : {
            accepted,
            title,
            kind: 'info',
            text: `${quantity(rest)} stays open: ${limit} Close again for the rest.`,
          }
    },
  })

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

export async function cancelAll(): Promise<void> {
  const { orders, live } = requireTrader()
  const words = {
    id: 'cancel-all',
    doing: 'Cancelling all orders …',
    done: ({ cancelled_count: count }: SweepCancellation) => ({
      title: `${counted(count, 'order')} cancelled`,
    }),
    failed: 'Not all orders are cancelled',
  }
  const sweep = await attempt(words, () => orders.cancelAll())
  for (const each of sweep?.results ?? []) live.note(each)
}

/** The same order at another price. Its signed quantity includes what has filled: the exchange fills only the rest. */
function movedOrder(order: PlacedOrder, price: string): NewOrder {
  return {
    marketId: order.market_id,
    side: order.side,
    type: order.order_type,
    quantity: BigInt(order.signed_quantity_e18_raw),
    leverage: order.leverage,
    reduceOnly: order.reduce_only,
    expiration: order.expiration_seconds,
    ...(isWaiting(order)
      ? {
          trigger: price,
          ...(order.price_e18_raw !== '0' && { price: BigInt(order.price_e18_raw) }),
        }
      : { price }),
    ...(order.client_order_id !== null && { clientOrderId: order.client_order_id }),
    ...(order.post_only && { postOnly: true }),
    ...(order.time_in_force === 'ioc' && { timeInForce: 'ioc' as const }),
  }
}

/**
 * Replaces an order with one command: the exchange accepts the new order in place of the old order, or leaves the old
 * order unchanged.
 */
export const replace = (
  order: PlacedOrder,
  next: NewOrder,
  words: Pick<Submission, 'doing' | 'refused'> & { readonly title: string },
): Promise<boolean> =>
  submit([next], {
    ...words,
    unchanged: 'The order stays as it was.',
    send: async (orders, [signed]) => {
      const target = { orderHash: order.order_hash }
      const replacement = await orders.replace(target, signed as OutgoingOrder, { ifFilled: 'reduce' })
      const { replaced, read_after } = replacement
      return { accepted: [{ order: replaced, read_after }, replacement], title: words.title }
    },
  })

export const moveOrder = (order: PlacedOrder, price: string): Promise<boolean> =>
  replace(order, movedOrder(order, price), {
    doing: `Moving the order to ${price} …`,
    refused: 'The order was not moved',
    title: `Order moved to ${price}`,
  })
