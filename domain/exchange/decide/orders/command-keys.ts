/** Keys by which api and engine recognise attempts at the same command, and the placements that a cancel concerns. */
import type { UserId } from '../../../units.ts'
import type { Item, OrdersAnswer, OrdersCommand } from './command.ts'

/** An order of an account. All attempts at its placement have the key, whatever else they state. */
export const placementKey = (marketId: number, maker: string, salt: string | bigint | number): string =>
  `place ${marketId}:${maker}:${BigInt(salt)}`

export const requestKey = (userId: number, id: string): string => `request ${userId}:${id}`

export const cancelKey = (userId: number, hash: string): string => `cancel ${userId} ${hash}`

/** Placements of an order by their account, as a cancel names the order. */
export const orderKey = (userId: number, hash: string): string => `order ${userId} ${hash}`

/** Keys of longer commands are of no command that the engine accepts. */
export const MAX_KEY_LENGTH = 200

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

const keysOfRequest = ({ userId, request }: OrdersCommand): readonly string[] =>
  request === null ? [] : [requestKey(userId, request.id)]

/** Another attempt with one of the keys may be the same command. */
export const keysOf = (command: OrdersCommand): readonly string[] => [
  ...keysOfRequest(command),
  ...command.items.flatMap((item) => keysOfItem(command.userId, item)),
]

/** Keys of which the answer says that they were not executed. A cancel that found no order says so of the order's placement, too. */
export function refusedKeys(command: OrdersCommand, answer: OrdersAnswer): readonly string[] {
  if (answer.kind === 'refused') return keysOf(command)
  if (answer.kind !== 'done') return []
  return command.items.flatMap((item, at) => {
    const result = answer.results[at]
    if (result?.kind !== 'refused') return []
    const isMissing =
      item.kind === 'cancel' && 'hash' in item.target && result.refusal.code === 'ORDER_NOT_FOUND'
    const keys = keysOfItem(command.userId, item)
    return isMissing ? [...keys, orderKey(command.userId, item.target.hash)] : keys
  })
}
