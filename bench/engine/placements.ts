/** Placements and cancels as the api sends them to the engine, with signatures that it would have verified. */
import type { OrdersAnswer, OrdersCommand, PlaceItem } from '../../domain/exchange/decide/orders/command.ts'
import type { OrderType, Side } from '../../domain/orders/order.ts'
import type { MarketId, OrderHash, Seconds, Seq, Steps, Ticks, UserId } from '../../domain/units.ts'
import type { Engine } from '../../keeper/engine/link/engine.ts'
import { addressOf, hashOf, signatureOf } from './state.ts'

export interface PlacementTerms {
  readonly marketId: MarketId
  readonly userId: number
  readonly side: Side
  readonly type: OrderType
  readonly price: number
  readonly trigger?: number
  readonly steps: number
  readonly leverage?: number
}

/** The salts are new: no order that has ended and left the state has such a salt. */
const LOOKED_UP_TO = Number.MAX_SAFE_INTEGER as Seq

/** Salts of the prepared orders end below. */
const FIRST_SALT = 100_000_000

/** Makes placements with salts from the first one on. */
export class Placements {
  #next: number

  constructor(firstSalt = FIRST_SALT) {
    this.#next = firstSalt
  }

  item(terms: PlacementTerms): PlaceItem {
    const salt = this.#next++
    const maker = addressOf(terms.userId)
    return {
      kind: 'place',
      order: {
        marketId: terms.marketId,
        maker,
        side: terms.side,
        type: terms.type,
        price: terms.price as Ticks,
        quantity: terms.steps as Steps,
        trigger: (terms.trigger ?? 0) as Ticks,
        leverage: terms.leverage ?? 5,
        reduceOnly: false,
        expiration: 0 as Seconds,
        salt: BigInt(salt),
        hash: hashOf(salt),
        signer: maker,
        signature: signatureOf(salt),
      },
      clientOrderId: null,
      absentUpTo: LOOKED_UP_TO,
    }
  }
}

export const ordersOf = (userId: number, items: OrdersCommand['items']): OrdersCommand => ({
  kind: 'orders',
  userId: userId as UserId,
  items,
  isAtomic: false,
  request: null,
})

export const cancelOf = (hash: OrderHash): OrdersCommand['items'][number] => ({
  kind: 'cancel',
  target: { hash, ended: { absentUpTo: [] } },
  note: null,
})

const codeOf = (refused: object): string =>
  'refusal' in refused ? String((refused.refusal as { readonly code?: string }).code) : 'refused'

/** The code of the first refused item, or why there is no answer; null if all items are accepted. */
export function refusalOf(reply: Awaited<ReturnType<Engine['submit']>>): string | null {
  if ('none' in reply) return reply.none
  const answer = reply.answer as OrdersAnswer
  if (answer.kind !== 'done') return answer.kind
  const refused = answer.results.find(({ kind }) => kind === 'refused')
  return refused === undefined ? null : codeOf(refused)
}
