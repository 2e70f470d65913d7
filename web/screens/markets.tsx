/** All markets with the last day. */
import { useState } from 'preact/hooks'
import type { Market } from '../../client/responses.ts'
import { compact, number, percent, placesOf, plain, signOf } from '../base/numbers.ts'
import { tradePath } from '../base/router.ts'
import { countdown, longDate } from '../base/times.ts'
import { marketData } from '../feed/exchange.ts'
import { isFavourite, markets, marketsError, prices, statsByMarket } from '../feed/markets.ts'
import { KINDS } from '../trade/header.tsx'
import { Star } from '../trade/market-search.tsx'
import { Empty } from '../ui/controls.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { Spark } from '../ui/spark.tsx'
import { useRead } from '../ui/use-read.ts'

function DaySpark({ market }: { market: Market }) {
  const { value } = useRead(
    `spark-${market.market_id}`,
    () => marketData.candlePage(market.market_id, { interval: '15m', limit: 96, priceType: 'mark' }),
    60_000,
  )
  const closes = (value?.candles ?? []).toReversed().map(({ close_e18_raw }) => plain(close_e18_raw))
  return (
    <Spark values={closes} width={110} height={28} label={`${market.symbol}, mark price of the last day`} />
  )
}

function Row({ market }: { market: Market }) {
  const day = statsByMarket.value.get(market.market_id)
  const live = prices.value.get(market.market_id)
  const places = placesOf(market.tick_size_e18_raw)
  return (
    <tr>
      <td>
        <Star symbol={market.symbol} />
      </td>
      <th scope="row">
        <a href={tradePath(market.symbol)}>{market.symbol}</a>
      </th>
      <td>
        <span class="badge">{KINDS[market.type]}</span>
      </td>
      <td class="num">{number(live?.last_price_e18_raw ?? market.last_price_e18_raw, { places })}</td>
      <td class="num">{number(live?.mark_price_e18_raw ?? market.mark_price_e18_raw, { places })}</td>
      <td class={`num ${signOf(day?.change_fraction_24h_e18_raw)}`}>
        {percent(day?.change_fraction_24h_e18_raw, { sign: true })}
      </td>
      <td>
        <DaySpark market={market} />
      </td>
      <td class="num">{compact(day?.notional_24h_e18_raw)}</td>
      <td class="num">{compact(day?.open_interest_notional_e18_raw)}</td>
      <td class="num">
        {market.funding === null ? (
          <span title={longDate(market.expires_at)}>ends in {countdown(market.expires_at)}</span>
        ) : (
          <span class={signOf(market.funding.funding_rate_e18_raw)}>
            {percent(market.funding.funding_rate_e18_raw, { places: 4, sign: true })}
          </span>
        )}
      </td>
    </tr>
  )
}

export function MarketsScreen() {
  const [text, setText] = useState('')
  const list = markets.value
    .filter(({ symbol }) => symbol.toLowerCase().includes(text.trim().toLowerCase()))
    .toSorted((a, b) => Number(isFavourite(b.symbol)) - Number(isFavourite(a.symbol)))
  return (
    <section class="page">
      <header class="page-head">
        <h1>Markets</h1>
        <span class="grow" />
        <input
          class="input narrow"
          type="search"
          placeholder="Search"
          aria-label="Search markets"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </header>
      <div class="panel">
        <Scroll label="Markets">
          <table class="table" data-testid="markets">
            <thead>
              <tr>
                <th>
                  <span class="hidden">Favourite</span>
                </th>
                <th scope="col">Market</th>
                <th scope="col">Kind</th>
                <th scope="col" class="num">
                  Last
                </th>
                <th scope="col" class="num">
                  Mark
                </th>
                <th scope="col" class="num">
                  24 h
                </th>
                <th scope="col">24 h mark</th>
                <th scope="col" class="num">
                  Volume (USDM)
                </th>
                <th scope="col" class="num">
                  Open interest (USDM)
                </th>
                <th scope="col" class="num">
                  Funding / 1 h
                </th>
              </tr>
            </thead>
            <tbody>
              {list.map((market) => (
                <Row key={market.market_id} market={market} />
              ))}
            </tbody>
          </table>
        </Scroll>
        {list.length === 0 ? <Empty>{marketsError.value ?? 'No market matches.'}</Empty> : null}
      </div>
    </section>
  )
}
