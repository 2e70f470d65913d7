/** Finds a market by name or kind. Favourites come first. */
import { useState } from 'preact/hooks'
import type { Market } from '../../client/responses.ts'
import { compact, number, percent, placesOf, signOf } from '../base/numbers.ts'
import { navigate, tradePath } from '../base/router.ts'
import { change, settings } from '../base/settings.ts'
import { isFavourite, markets, prices, statsByMarket } from '../feed/markets.ts'
import { Choice, Dialog, Empty } from '../ui/controls.tsx'

const FILTERS = [
  { value: 'all', text: 'All' },
  { value: 'favourites', text: '★' },
  { value: 'perpetual', text: 'Perpetuals' },
  { value: 'future', text: 'Futures' },
  { value: 'binary_future', text: 'Binaries' },
] as const
type Filter = (typeof FILTERS)[number]['value']

export function toggleFavourite(symbol: string): void {
  const { favourites } = settings.value
  const without = favourites.filter((each) => each !== symbol)
  change({ favourites: without.length === favourites.length ? [...favourites, symbol] : without })
}

export function Star({ symbol }: { symbol: string }) {
  const on = isFavourite(symbol)
  return (
    <button
      type="button"
      class={`star ${on ? 'on' : ''}`}
      aria-pressed={on}
      aria-label={`Favourite ${symbol}`}
      onClick={() => toggleFavourite(symbol)}
    >
      {on ? '★' : '☆'}
    </button>
  )
}

function Row({ market, onClose }: { market: Market; onClose: () => void }) {
  const day = statsByMarket.value.get(market.market_id)
  const last = prices.value.get(market.market_id)?.last_price_e18_raw ?? market.last_price_e18_raw
  return (
    <tr>
      <td>
        <Star symbol={market.symbol} />
      </td>
      <th scope="row">
        <button
          type="button"
          class="link"
          onClick={() => {
            onClose()
            navigate(tradePath(market.symbol))
          }}
        >
          {market.symbol}
        </button>
      </th>
      <td class="num">{number(last, { places: placesOf(market.tick_size_e18_raw) })}</td>
      <td class={`num ${signOf(day?.change_fraction_24h_e18_raw)}`}>
        {percent(day?.change_fraction_24h_e18_raw, { sign: true })}
      </td>
      <td class="num">{compact(day?.notional_24h_e18_raw)}</td>
    </tr>
  )
}

export function MarketSearch({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const [filter, setFilter] = useState<Filter>('all')
  const found = markets.value
    .filter(({ symbol }) => symbol.toLowerCase().includes(text.trim().toLowerCase()))
    .filter(({ type, symbol }) =>
      filter === 'all' ? true : filter === 'favourites' ? isFavourite(symbol) : type === filter,
    )
    .toSorted((a, b) => Number(isFavourite(b.symbol)) - Number(isFavourite(a.symbol)))
  return (
    <Dialog title="Markets" onClose={onClose}>
      <input
        class="input"
        type="search"
        placeholder="Search markets"
        aria-label="Search markets"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={({ key }) => {
          const [first] = found
          if (key !== 'Enter' || first === undefined) return
          onClose()
          navigate(tradePath(first.symbol))
        }}
      />
      <Choice label="Kind" options={FILTERS} value={filter} onChange={setFilter} />
      <table class="table">
        <thead>
          <tr>
            <th>
              <span class="hidden">Favourite</span>
            </th>
            <th scope="col">Market</th>
            <th scope="col" class="num">
              Last
            </th>
            <th scope="col" class="num">
              24 h
            </th>
            <th scope="col" class="num">
              Volume
            </th>
          </tr>
        </thead>
        <tbody>
          {found.map((market) => (
            <Row key={market.symbol} market={market} onClose={onClose} />
          ))}
        </tbody>
      </table>
      {found.length === 0 ? <Empty>No market matches.</Empty> : null}
    </Dialog>
  )
}
