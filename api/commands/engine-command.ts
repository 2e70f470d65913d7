/** Commands of the api as commands of the engine, with what the api has looked up among orders and requests that the engine has released. */
import type {
  Bookmark,
  CancelAllCommand,
  CancelTarget,
  Item as EngineItem,
  NewOrder as EngineOrder,
  PlaceItem as EnginePlacement,
  ReplaceItem as EngineReplacement,
  OrdersCommand,
} from '../../domain/exchange/decide/orders/command.ts'
import type { Json } from '../../domain/journal/request-rows.ts'
import { acceptedSeq } from '../../domain/orders/order.ts'
import { NO_FLAGS, sameFlags } from '../../domain/orders/order-flags.ts'
import type { MarketId, OrderHash, Seq, UserId } from '../../domain/units.ts'
import { ApiError, itemError } from '../errors.ts'
import type { CancelAll, Command, Item, NewOrder, ReplaceItem } from './command.ts'
import type { SaltedOrder, StoredHash } from './command-identity.ts'
import { itemRefusalError } from './engine-refusals.ts'
import type { StoredOrder } from './stored-orders.ts'

/** Up to which row of each market, and of the accounts (0), the engine has released ended things. */
export type Released = ReadonlyMap<MarketId, Seq>

/** Orders that are stored, by the command's items: placements by `saltOf`, targets by hash. */
export interface StoredThings {
  bySalt(order: SaltedOrder): StoredHash | undefined
  /** Null: targets were not looked up. */
  readonly byHash: ReadonlyMap<string, StoredOrder> | null
}

/** An order that had been placed before and has ended, as an answered item states it. */
export interface EndedDuplicate {
  readonly order_hash: string
  readonly read_after: { readonly market_id: number; readonly seq: number }
}

/** A command as it is sent. */
export interface SentOrders {
  readonly command: OrdersCommand
  /** For each item, the error with which the api has refused it; undefined if it has not. */
  readonly refused: readonly (ApiError | undefined)[]
}

export const saltOf = ({ order: { marketId, maker, salt } }: EngineOrder): SaltedOrder => ({
  marketId,
  maker,
  salt: String(salt),
})

const refusedItem = (error: ApiError): EngineItem => ({
  kind: 'refused',
  // The error's context is what an answer shows: JSON without undefined fields.
  refusal: JSON.parse(JSON.stringify(itemError(error))) as Json,
})

/** Most orders have no flags. */
const toNewOrder = ({ order, clientOrderId, flags }: NewOrder): EngineOrder => ({
  order,
  clientOrderId,
  ...(!sameFlags(flags, NO_FLAGS) && { flags }),
  absentUpTo: null,
})

const toTarget = (target: ReplaceItem['target']): EngineReplacement['target'] =>
  'label' in target ? target : { hash: target.hash as OrderHash, ended: null }

function toItem(item: Item): EngineItem {
  switch (item.kind) {
    case 'place':
      return { kind: 'place', ...toNewOrder(item) }
    case 'replace':
      return { kind: 'replace', ...toNewOrder(item), target: toTarget(item.target), ifFilled: item.ifFilled }
    case 'cancel':
      return { kind: 'cancel', target: { hash: item.hash as OrderHash, ended: null }, note: item.reason }
    case 'refused':
      return refusedItem(item.error)
  }
}

export const toOrders = ({ userId, items, isAtomic, request }: Command): SentOrders => ({
  command: {
    kind: 'orders',
    userId: userId as UserId,
    items: items.map(toItem),
    isAtomic,
    request: request && { id: request.id, digest: request.digest.toString('hex'), absentUpTo: null },
  },
  refused: items.map((item) => (item.kind === 'refused' ? item.error : undefined)),
})

export const toCancelAll = ({ userId, marketId, reason, covers }: CancelAll): CancelAllCommand => ({
  kind: 'cancel_all',
  userId: userId as UserId,
  marketId: marketId as MarketId | null,
  note: reason,
  covers: covers as readonly MarketId[],
})

/** Whether the engine requires a search for the salts or the request of the command. */
export const dependsOn = ({ items, request }: OrdersCommand, released: Released): boolean =>
  (request !== null && released.has(0 as MarketId)) ||
  items.some(
    (item) => (item.kind === 'place' || item.kind === 'replace') && released.has(item.order.marketId),
  )

/** The command with what is stored. `stored` was read after the engine had released rows up to `released`. */
export function withStored(
  { command, refused }: SentOrders,
  released: Released,
  stored: StoredThings,
): SentOrders {
  const errors = [...refused]
  const items = command.items.map((item, at): EngineItem => {
    if (item.kind === 'cancel') return { ...item, target: targetWithStored(item.target, released, stored) }
    if (item.kind !== 'place' && item.kind !== 'replace') return item
    const found = orderWithStored(item, released, stored)
    if (!(found instanceof ApiError)) return found
    errors[at] = found
    return refusedItem(found)
  })
  const absentUpTo = released.get(0 as MarketId) ?? null
  return {
    command: { ...command, items, request: command.request && { ...command.request, absentUpTo } },
    refused: errors,
  }
}

/** A live order is in the engine's state, which finds it first. */
function orderWithStored(
  item: EnginePlacement | EngineReplacement,
  released: Released,
  things: StoredThings,
): EngineItem | ApiError {
  const { marketId, hash, salt } = item.order
  const seq = released.get(marketId) ?? null
  const stored = things.bySalt(saltOf(item))
  if (stored === undefined || stored.ended_at === null || seq === null)
    return item.kind === 'place'
      ? { ...item, absentUpTo: seq }
      : { ...item, absentUpTo: seq, target: targetWithStored(item.target, released, things) }
  const reference = { orderId: stored.order_id, hash: stored.hash as OrderHash }
  if (stored.hash === hash) {
    const { flags = NO_FLAGS } = item
    const { bracket, builder } = stored
    const known = {
      timeInForce: stored.time_in_force,
      postOnly: stored.post_only,
      ...(bracket > 0 && { bracket }),
      ...(builder !== null && { builder }),
    }
    const sent = stored.replaces !== null && flags.bracket === undefined ? { ...known, ...flags } : flags
    if (!sameFlags(sent, known))
      return itemRefusalError({
        code: 'ORDER_FLAGS_DIFFER',
        received: flags,
        expected: known,
        order: reference,
      })
    if (item.kind === 'replace' && stored.replaces === null)
      return itemRefusalError({ code: 'NOT_A_REPLACEMENT', order: reference })
    const answer: EndedDuplicate = { order_hash: hash, read_after: { market_id: marketId, seq } }
    return { kind: 'answered', answer: answer as unknown as Json }
  }
  return new ApiError('SALT_USED', {
    field: 'salt',
    received: String(salt),
    order_id: stored.order_id,
    order_hash: stored.hash,
  })
}

function targetWithStored(target: CancelTarget, released: Released, { byHash }: StoredThings): CancelTarget {
  if ('label' in target || byHash === null) return target
  const { hash } = target
  const order = byHash.get(hash)
  if (order === undefined || order.ended_at === null)
    return { hash, ended: { absentUpTo: bookmarksOf(released) } }
  const found = {
    marketId: order.market_id as MarketId,
    accepted: acceptedSeq(order.order_id),
    account: order.user_id as UserId,
    status: order.status,
    forced: order.forced,
  }
  return { hash, ended: { found } }
}

const bookmarksOf = (released: Released): Bookmark[] =>
  [...released].map(([marketId, seq]) => ({ marketId, seq }))
