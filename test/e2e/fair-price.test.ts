/** Attacks on the price of a market order, over REST against the keeper's own batches. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Client } from '../../client/client.ts'
import { fromE18, toE18 } from '../../client/decimals.ts'
import type { NewOrder } from '../../client/order-factory.ts'
import type { PlacedOrder } from '../../client/responses.ts'
import { recompute } from '../../domain/auction/auction.ts'
import type { ClearingInputs } from '../../domain/auction/clearing.ts'
import type { Price } from '../../domain/units.ts'
import { overrideFeed } from '../../stack/feed-override.ts'
import { waitFor } from '../support/patience.ts'
import { loadInputs } from '../support/rows/batches.ts'
import { isDone, useStack } from './support/stack.ts'

const MARKET = 1
const ORACLE = toE18('60000') as Price
/** Quantities in orders of minimum size: the reference price needs five. */
const QUOTE = 24
const VICTIM = 100
/** The orders of an attack arrive in one batch in most attempts. */
const ATTEMPTS = 10

type Terms = Omit<NewOrder, 'marketId' | 'quantity'> & { readonly minimums: number }

interface Attack {
  readonly name: string
  /** Limit orders that stand before the attack: the first is the best quote. */
  readonly quotes: readonly Terms[]
  readonly victim: Terms
  /** Arrives together with the victim's order. */
  readonly accomplice: Terms
}

const buyOf = (minimums: number, price?: string): Terms => ({
  ...{ side: 'LONG', leverage: 1, minimums },
  ...(price === undefined ? {} : { price }),
})
const sellOf = (minimums: number, price?: string): Terms => ({
  ...buyOf(minimums, price),
  side: 'SHORT',
})

const ATTACKS: readonly Attack[] = [
  {
    name: 'a limit buy of minimum size near the upper edge of the band arrives with a market buy on a thin ask',
    ...{ quotes: [sellOf(QUOTE, '60010')], victim: buyOf(VICTIM), accomplice: buyOf(1, '62900') },
  },
  {
    name: 'a limit sell of minimum size near the lower edge of the band arrives with a market sell on a thin bid',
    ...{ quotes: [buyOf(QUOTE, '59990')], victim: sellOf(VICTIM), accomplice: sellOf(1, '57100') },
  },
  {
    name: 'a market sell with leverage 3 of another account arrives with a market sell on a thin bid',
    quotes: [buyOf(QUOTE, '59990')],
    ...{ victim: sellOf(VICTIM), accomplice: { ...sellOf(VICTIM), leverage: 3 } },
  },
  {
    name: 'an ask of minimum size stands far behind a thin ask',
    quotes: [sellOf(QUOTE, '60010'), sellOf(1, '62900')],
    ...{ victim: buyOf(VICTIM), accomplice: buyOf(1) },
  },
]

describe('a market order under attack, end to end', function () {
  this.timeout(120_000)
  const exchange = useStack()
  let minimum = 0n

  const place = (client: Client, { minimums, ...terms }: Terms) =>
    client.orders.place({ ...terms, marketId: MARKET, quantity: fromE18(minimum * BigInt(minimums)) })

  /** Sets the oracle price of the market for the time of `work`. */
  async function atFixedPrice(work: () => Promise<void>): Promise<void> {
    const feed = overrideFeed(exchange.stack, MARKET)
    try {
      feed.setPrice(ORACLE)
      const market = await waitFor(
        () => exchange.trader(0).marketData.market(MARKET),
        ({ oracle_price_e18_raw }) => BigInt(oracle_price_e18_raw ?? 0) === ORACLE,
      )
      minimum = BigInt(market.min_order_size_e18_raw)
      await work()
    } finally {
      await feed.release()
    }
  }

  /** Prices of the victim's fills, in the batch in which the accomplice's order took part too; null if none did. */
  async function attempt({ quotes, victim, accomplice }: Attack) {
    const [maker, trader, other] = [exchange.trader(0), exchange.trader(1), exchange.trader(2)]
    const standing = []
    for (const quote of quotes) standing.push(await place(maker, quote))
    const placed = await Promise.all([place(trader, victim), place(other, accomplice)])
    const ended = await trader.orders.waitFor(placed[0], isDone)
    const fills = await trader.orders.fills(ended.order_id)
    await endAll(maker, standing)
    await endAll(other, [placed[1]])
    const inputs = await loadInputs(exchange.stack.db, MARKET, Number(fills[0]?.batch_id ?? 0))
    const isTogether = new Set(inputs?.orders.map(({ account }) => account)).size === 3
    return isTogether ? { ended, prices: fills.map(({ price }) => price) } : null
  }

  async function endAll(client: Client, orders: readonly { readonly order: PlacedOrder }[]): Promise<void> {
    for (const { order } of orders) await client.orders.cancel(order.order_hash)
    for (const one of orders) await client.orders.waitFor(one as never, isDone)
  }

  for (const attack of ATTACKS) {
    it(`when ${attack.name}, the victim fills at the best quote`, () =>
      atFixedPrice(async () => {
        for (let i = 0; i < ATTEMPTS; i++) {
          const result = await attempt(attack)
          if (result === null) continue
          expect(result.prices).to.deep.equal([Number(attack.quotes[0]?.price)])
          expect(result.ended.status_reason).to.be.oneOf(['PRICE_PROTECTION', 'MARKET_REMAINDER'])
          return
        }
        expect.fail(`in ${ATTEMPTS} attempts the orders never met in one batch`)
      }))
  }

  it('when a batch is computed again from its stored data alone, the result is the stored one', async () => {
    const { db } = exchange.stack
    const batches = await db.selectFrom('batches').selectAll().where('market_id', '=', MARKET).execute()
    expect(batches).to.have.length.above(ATTACKS.length - 1)
    for (const { batch_id, price, lo, hi, volume, demand, supply, rule } of batches) {
      const inputs = await loadInputs(db, MARKET, batch_id)
      expect(recompute(inputs as ClearingInputs)).to.include({ price, lo, hi, volume, demand, supply, rule })
    }
  })
})
