/** The market bar: search, prices, statistics of the day, funding, and what a market with an end needs to show. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Market } from '../../client/responses.ts'
import { compact, number, percent, placesOf, signOf } from '../base/numbers.ts'
import { codeWords } from '../base/reasons.ts'
import { settings } from '../base/settings.ts'
import { countdown, duration, longDate } from '../base/times.ts'
import { stats as liveStats } from '../feed/market-feed.ts'
import { prices, statsByMarket } from '../feed/markets.ts'
import { Stat } from '../ui/controls.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { MarketSearch } from './market-search.tsx'

export const KINDS = { perpetual: 'Perpetual', future: 'Future', binary_future: 'Binary' } as const

function FundingStat({ market }: { market: Market }) {
  const { funding } = market
  if (funding === null) return null
  const rate = funding.funding_rate_e18_raw
  return (
    <Stat label="Funding / 1 h · next in" title="Paid by longs to shorts per hour if positive">
      <span class={signOf(rate)}>{percent(rate, { places: 4, sign: true })}</span>
      <span class="muted"> {countdown(funding.next_update_at)}</span>
    </Stat>
  )
}

function EndStats({ market }: { market: Market }) {
  if (market.expires_at === null) return null
  const isBinary = market.type === 'binary_future'
  return (
    <>
      <Stat label="Expires in" title={longDate(market.expires_at)}>
        {countdown(market.expires_at)}
      </Stat>
      <Stat
        label="Dispute window"
        title="After the expiry a later report can replace the final price for this long"
      >
        {duration(market.dispute_window_ms)}
      </Stat>
      <Stat label="Payout">
        {market.final_price_e18_raw !== null
          ? `final ${number(market.final_price_e18_raw, { places: placesOf(market.tick_size_e18_raw) })}`
          : isBinary
            ? '1 if yes, 0 if no'
            : 'final price'}
      </Stat>
    </>
  )
}

function LastPrice({ market }: { market: Market }) {
  const places = placesOf(market.tick_size_e18_raw)
  const raw = prices.value.get(market.market_id)?.last_price_e18_raw ?? market.last_price_e18_raw
  // Not a state: a second render per price would cost a second frame.
  const shown = useRef({ raw, way: '' })
  const before = shown.current
  if (raw !== before.raw)
    shown.current = {
      raw,
      way: raw === null || before.raw === null ? '' : signOf(BigInt(raw) - BigInt(before.raw)),
    }
  const text = number(raw, { places })
  useEffect(() => {
    document.title = raw === null ? `${market.symbol} · Clearbatch` : `${text} ${market.symbol} · Clearbatch`
  }, [text, market.symbol])
  return (
    <strong
      key={raw}
      class={`last-price ${settings.value.priceFlash ? 'flash' : ''} ${shown.current.way}`}
      data-testid="last-price"
    >
      {text}
    </strong>
  )
}

export function MarketHeader({ market }: { market: Market }) {
  const [isSearching, setSearching] = useState(false)
  const places = placesOf(market.tick_size_e18_raw)
  const live = prices.value.get(market.market_id)
  const day =
    (liveStats.value?.market_id === market.market_id ? liveStats.value : null) ??
    statsByMarket.value.get(market.market_id)
  const change = day?.change_fraction_24h_e18_raw
  return (
    <section class="market-bar" aria-label="Market">
      <button
        type="button"
        class="market-button"
        aria-haspopup="dialog"
        data-testid="market-button"
        onClick={() => setSearching(true)}
      >
        <span class="market-name">{market.symbol}</span>
        <span class="badge">
          {market.type === 'perpetual' ? `${market.max_leverage}×` : KINDS[market.type]}
        </span>
        <span aria-hidden="true">▾</span>
      </button>
      {isSearching ? <MarketSearch onClose={() => setSearching(false)} /> : null}
      <LastPrice market={market} />
      <Scroll class="market-stats" label="Statistics">
        <Stat label="Mark">{number(live?.mark_price_e18_raw ?? market.mark_price_e18_raw, { places })}</Stat>
        <Stat label="Oracle">
          {number(live?.oracle_price_e18_raw ?? market.oracle_price_e18_raw, { places })}
        </Stat>
        <Stat label="24 h change">
          <span class={signOf(change)}>{percent(change, { sign: true })}</span>
        </Stat>
        <Stat label="24 h volume">{compact(day?.notional_24h_e18_raw)} USDM</Stat>
        <Stat label="Open interest">{compact(day?.open_interest_notional_e18_raw)} USDM</Stat>
        <FundingStat market={market} />
        <EndStats market={market} />
        {market.mode !== 'open' ? <Stat label="Mode">{codeWords(market.mode)}</Stat> : null}
        {market.session === 'closed' ? (
          <Stat label="Session opens in">{countdown(market.next_session_change)}</Stat>
        ) : null}
      </Scroll>
    </section>
  )
}
