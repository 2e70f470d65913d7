/** The order book: grouped levels with totals, the caller's own orders marked. A click on a level fills the ticket. */
import { useState } from 'preact/hooks'
import type { Market } from '../../client/responses.ts'
import { openOrders } from '../account/live-account.ts'
import { fromE18, number, percent, placesOf } from '../base/numbers.ts'
import { book } from '../feed/market-feed.ts'
import { prices } from '../feed/markets.ts'
import { grouped, groupsOf, type Row } from './book-levels.ts'
import { ticketPrice } from './ticket-state.ts'

const ROWS = 11

interface LevelsProps {
  readonly market: Market
  readonly rows: readonly Row[]
  readonly side: 'LONG' | 'SHORT'
  readonly largest: bigint
  readonly group: bigint
}

/** Prices of the caller's open orders on a side, as the book groups them. */
function ownPrices(marketId: number, side: 'LONG' | 'SHORT', group: bigint): ReadonlySet<bigint> {
  const own = openOrders.value.filter((order) => order.market_id === marketId && order.side === side)
  return new Set(
    own.map((order) => {
      const price = BigInt(order.effective_price_e18_raw ?? order.price_e18_raw)
      const below = (price / group) * group
      return side === 'LONG' || below === price ? below : below + group
    }),
  )
}

function Levels({ market, rows, side, largest, group }: LevelsProps) {
  const [places, size] = [placesOf(market.tick_size_e18_raw), placesOf(market.step_size_e18_raw)]
  const own = ownPrices(market.market_id, side, group)
  return (
    <div class={`levels ${side === 'LONG' ? 'bids' : 'asks'}`}>
      {rows.map(({ price, quantity, total }) => (
        <button
          type="button"
          key={String(price)}
          class="level"
          tabIndex={-1}
          onClick={() => {
            ticketPrice.value = fromE18(price)
          }}
        >
          <span
            class="depth"
            style={{ transform: `scaleX(${largest === 0n ? 0 : Number((total * 1000n) / largest) / 1000})` }}
          />
          <span class="price">
            {own.has(price) ? <i class="own" title="Your order" /> : null}
            {number(price, { places })}
          </span>
          <span>{number(quantity, { places: size })}</span>
          <span>{number(total, { places: size })}</span>
        </button>
      ))}
    </div>
  )
}

export function Book({ market }: { market: Market }) {
  const tick = BigInt(market.tick_size_e18_raw)
  const [by, setBy] = useState(0)
  const group = groupsOf(tick)[by] ?? tick
  const { bids, asks } = book.value
  const [buys, sells] = [grouped(bids, 'LONG', group, ROWS), grouped(asks, 'SHORT', group, ROWS)]
  const largest = [buys.at(-1)?.total ?? 0n, sells.at(-1)?.total ?? 0n].reduce((a, b) => (a > b ? a : b))
  const [bestBid, bestAsk] = [bids[0], asks[0]]
  const spread = bestBid && bestAsk ? BigInt(bestAsk.price_e18_raw) - BigInt(bestBid.price_e18_raw) : null
  const places = placesOf(market.tick_size_e18_raw)
  const live = prices.value.get(market.market_id)
  return (
    <section class="panel book" aria-label="Order book" data-testid="book">
      <header class="panel-head">
        <h2>Order book</h2>
        <select
          class="select small"
          aria-label="Grouping"
          value={by}
          onChange={({ currentTarget }) => setBy(Number(currentTarget.value))}
        >
          {groupsOf(tick).map((each, index) => (
            <option key={index} value={index}>
              {fromE18(each)}
            </option>
          ))}
        </select>
      </header>
      <div class="level head" aria-hidden="true">
        <span class="price">Price</span>
        <span>Size</span>
        <span>Total</span>
      </div>
      <Levels market={market} rows={sells.toReversed()} side="SHORT" largest={largest} group={group} />
      <div class="spread">
        <strong>{number(live?.last_price_e18_raw ?? market.last_price_e18_raw, { places })}</strong>
        <span class="muted">
          Spread {number(spread, { places })}
          {spread !== null && bestAsk && BigInt(bestAsk.price_e18_raw) > 0n
            ? ` · ${percent((spread * 10n ** 18n) / BigInt(bestAsk.price_e18_raw), { places: 3 })}`
            : ''}
        </span>
      </div>
      <Levels market={market} rows={buys} side="LONG" largest={largest} group={group} />
    </section>
  )
}
