/** Ended orders and requests that the engine has released: its answers state up to which rows, and the tables have what a command may depend on. */
import type { Db } from '../../db/client.ts'
import type { LookAgain, OrdersCommand } from '../../domain/exchange/decide/orders/command.ts'
import type { MarketId, Seq } from '../../domain/units.ts'
import { storedRequest } from './client-requests.ts'
import type { Command, StoredRequest } from './command.ts'
import { type FindBySalt, keyOfSalt } from './command-identity.ts'
import { dependsOn, type SentOrders, saltOf, withStored } from './engine-command.ts'
import type { FindOrders } from './stored-orders.ts'

export interface ReleasedThings {
  /** Whether the command can depend on something that is known to be released. */
  concerns(command: OrdersCommand): boolean
  note(answer: LookAgain): void
  /** The command with what the tables have, or the results of its request. */
  lookUp(sent: SentOrders, command: Command): Promise<SentOrders | { readonly stored: StoredRequest }>
}

export interface ReleasedThingsPorts {
  readonly db: Db
  readonly findBySalt: FindBySalt
  readonly findOrders: FindOrders
}

export function createReleasedThings({ db, findBySalt, findOrders }: ReleasedThingsPorts): ReleasedThings {
  /** The highest row of each journal that an answer has stated. */
  const released = new Map<MarketId, Seq>()

  return {
    concerns: (command) => dependsOn(command, released),
    note({ upTo }) {
      for (const { marketId, seq } of upTo)
        if (seq > (released.get(marketId) ?? 0)) released.set(marketId, seq)
    },
    async lookUp(sent, { userId, request }) {
      const upTo = new Map(released)
      const stored = request === null ? null : await storedRequest(db, userId, request)
      if (stored !== null) return { stored }
      const { items } = sent.command
      const placed = items.flatMap((item) =>
        item.kind === 'place' || item.kind === 'replace' ? [saltOf(item)] : [],
      )
      const hashes = items.flatMap((item) =>
        (item.kind === 'cancel' || item.kind === 'replace') && 'hash' in item.target
          ? [item.target.hash]
          : [],
      )
      const [salts, orders] = await Promise.all([
        Promise.all(placed.map(async (one) => [keyOfSalt(one), await findBySalt(one)] as const)),
        findOrders(hashes),
      ])
      const bySalt = new Map(salts)
      return withStored(sent, upTo, {
        bySalt: (one) => bySalt.get(keyOfSalt(one)),
        byHash: (hash) => orders.get(hash),
      })
    },
  }
}
