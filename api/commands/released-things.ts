/** Ended orders and requests that the engine has released: its answers state up to which rows, and the tables have what a command may depend on. */
import type { Db } from '../../db/client.ts'
import type { LookAgain, OrdersCommand } from '../../domain/exchange/decide/orders/command.ts'
import type { MarketId, Seq } from '../../domain/units.ts'
import { storedRequest } from './client-requests.ts'
import type { Command, StoredRequest } from './command.ts'
import { type FindBySalt, keyOfSalt, type SaltedOrder } from './command-identity.ts'
import { dependsOn, type SentOrders, saltOf, withStored } from './engine-command.ts'
import { createFindReleased } from './released-salts.ts'
import type { FindOrders } from './stored-orders.ts'

/**
 * `new`: only salts and request ids, which the engine never accepts without a search. `all`: also the targets of cancels
 * and replacements, which the engine usually has.
 */
export type Extent = 'new' | 'all'

export interface ReleasedThings {
  /** Whether the engine requires a search for what the command adds. */
  concerns(command: OrdersCommand): boolean
  note(answer: LookAgain): void
  /** The command with what the tables have, or the results of its request. */
  lookUp(
    sent: SentOrders,
    command: Command,
    extent: Extent,
  ): Promise<SentOrders | { readonly stored: StoredRequest }>
}

export interface ReleasedThingsPorts {
  readonly db: Db
  readonly findBySalt: FindBySalt
  readonly findOrders: FindOrders
}

const placedBy = ({ items }: OrdersCommand): SaltedOrder[] =>
  items.flatMap((item) => (item.kind === 'place' || item.kind === 'replace' ? [saltOf(item)] : []))

const targetsOf = ({ items }: OrdersCommand): string[] =>
  items.flatMap((item) =>
    (item.kind === 'cancel' || item.kind === 'replace') && 'hash' in item.target ? [item.target.hash] : [],
  )

export function createReleasedThings({ db, findBySalt, findOrders }: ReleasedThingsPorts): ReleasedThings {
  /** The highest row of each journal that an answer has stated. */
  const released = new Map<MarketId, Seq>()
  const findReleased = createFindReleased(db, findBySalt)

  return {
    concerns: (command) => dependsOn(command, released),
    note({ upTo }) {
      for (const { marketId, seq } of upTo)
        if (seq > (released.get(marketId) ?? 0)) released.set(marketId, seq)
    },
    async lookUp(sent, { userId, request }, extent) {
      const upTo = new Map(released)
      const stored = request === null ? null : await storedRequest(db, userId, request)
      if (stored !== null) return { stored }
      const find = async (order: SaltedOrder) => {
        const seq = upTo.get(order.marketId as MarketId)
        return [keyOfSalt(order), seq === undefined ? undefined : await findReleased(order, seq)] as const
      }
      const [salts, orders] = await Promise.all([
        Promise.all(placedBy(sent.command).map(find)),
        extent === 'all' ? findOrders(targetsOf(sent.command)) : null,
      ])
      const bySalt = new Map(salts)
      return withStored(sent, upTo, { bySalt: (one) => bySalt.get(keyOfSalt(one)), byHash: orders })
    },
  }
}
