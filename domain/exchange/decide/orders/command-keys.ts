/** Keys by which api and engine recognise attempts at the same command, and the placements that a cancel concerns. */
import type { UserId } from '../../../units.ts'
import type { Item, ItemRefusal, OrdersAnswer, OrdersCommand } from './command.ts'

/** An order of an account. All attempts at its placement have the key, whatever else they state. */
export const placementKey = (marketId: number, maker: string, salt: string | bigint | number): string =>
  `place ${marketId}:${maker}:${BigInt(salt)}`

export const requestKey = (userId: number, id: string): string => `request ${userId}:${id}`

export const cancelKey = (userId: number, hash: string): string => `cancel ${userId} ${hash}`

/** Placements of an order by their account, as a cancel names the order. */
export const orderKey = (userId: number, hash: string): string => `order ${userId} ${hash}`

/** Placements with a label by their account, as a cancel or a replacement names the order. */
export const labelKey = (userId: number, label: string): string => `label ${userId} ${label}`

/** Keys of longer commands are of no command that the engine accepts. */
export const MAX_KEY_LENGTH = 200

/** Keys that all attempts at the item have. */
function keysOfItem(userId: UserId, item: Item): readonly string[] {
  switch (item.kind) {
    case 'place':
    case 'replace': {
      const { marketId, maker, salt, hash } = item.order
      return [placementKey(marketId, maker, salt), orderKey(userId, hash)]
    }
    case 'cancel':
      return 'hash' in item.target ? [cancelKey(userId, item.target.hash)] : []
    default:
      return []
  }
}

/** Several orders can have the label one after the other, so the refusal of one does not concern the label. */
function labelsOf(userId: UserId, item: Item): readonly string[] {
  if (item.kind !== 'place' && item.kind !== 'replace') return []
  return item.clientOrderId === null ? [] : [labelKey(userId, item.clientOrderId)]
}

const keysOfRequest = ({ userId, request }: OrdersCommand): readonly string[] =>
  request === null ? [] : [requestKey(userId, request.id)]

const attemptKeys = (command: OrdersCommand): readonly string[] => [
  ...keysOfRequest(command),
  ...command.items.flatMap((item) => keysOfItem(command.userId, item)),
]

/** Another attempt with one of the keys may be the same command, or place an order that an answer states not to exist. */
export const keysOf = (command: OrdersCommand): readonly string[] => [
  ...attemptKeys(command),
  ...command.items.flatMap((item) => labelsOf(command.userId, item)),
]

/** The placements of the order that a cancel or a replacement has not found. */
function missingKeys(userId: UserId, item: Item | undefined, refusal: ItemRefusal): readonly string[] {
  if (item?.kind !== 'cancel' && item?.kind !== 'replace') return []
  if (refusal.code !== 'ORDER_NOT_FOUND') return []
  const { target } = item
  return ['label' in target ? labelKey(userId, target.label) : orderKey(userId, target.hash)]
}

/** Keys of which the answer says that they were not executed. An item that found no order says so of the order's placement, too. */
export function refusedKeys(command: OrdersCommand, answer: OrdersAnswer): readonly string[] {
  const { userId, items } = command
  const missing = (index: number, refusal: ItemRefusal) => missingKeys(userId, items[index], refusal)
  if (answer.kind === 'refused') {
    const { refusal } = answer
    const refused = refusal.code === 'ITEMS_REFUSED' ? refusal.items : []
    return [...attemptKeys(command), ...refused.flatMap(({ index, refusal: one }) => missing(index, one))]
  }
  if (answer.kind !== 'done') return []
  return items.flatMap((item, at) => {
    const result = answer.results[at]
    return result?.kind === 'refused' ? [...keysOfItem(userId, item), ...missing(at, result.refusal)] : []
  })
}
