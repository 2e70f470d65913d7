/** The trade screen: on a wide screen all panels at once, on a phone one at a time. */

import { useEffect, useState } from 'preact/hooks'
import { navigate, screen } from '../base/router.ts'
import { followMarket } from '../feed/market-feed.ts'
import { activeMarket, markets, marketsError, refreshMarkets, rememberMarket } from '../feed/markets.ts'
import { Button } from '../ui/controls.tsx'
import { ErrorBoundary } from '../ui/error-boundary.tsx'
import { lazy, loadTrading } from '../ui/lazy.tsx'
import { Book } from './book.tsx'
import { Bottom } from './bottom.tsx'
import { MarketHeader } from './header.tsx'
import { Tapes } from './tapes.tsx'

const Chart = lazy(async () => (await import('./chart.tsx')).Chart)
const Ticket = lazy(async () => (await loadTrading()).Ticket)

const SHEETS = [
  { id: 'chart', label: 'Chart' },
  { id: 'book', label: 'Book' },
  { id: 'tapes', label: 'Batches' },
  { id: 'ticket', label: 'Trade' },
  { id: 'bottom', label: 'Account' },
] as const

function Missing() {
  const current = screen.value
  if (markets.value.length === 0)
    return (
      <p class="empty" role="status">
        {marketsError.value ?? 'Reading the markets …'}{' '}
        {marketsError.value === null ? null : <Button onClick={() => void refreshMarkets()}>Retry</Button>}
      </p>
    )
  return (
    <p class="empty">
      There is no market {current.name === 'trade' ? current.symbol : ''}.{' '}
      <Button onClick={() => navigate('/markets')}>All markets</Button>
    </p>
  )
}

export function TradeScreen() {
  const market = activeMarket.value
  const [sheet, setSheet] = useState<(typeof SHEETS)[number]['id']>('chart')
  const id = market?.market_id
  useEffect(() => {
    if (market === null || id === undefined) return
    rememberMarket(market)
    return followMarket(id)
  }, [id])
  if (market === null) return <Missing />
  return (
    <div class="trade" data-sheet={sheet}>
      <h1 class="hidden">Trade {market.symbol}</h1>
      <ErrorBoundary name="The market bar">
        <MarketHeader market={market} key={market.market_id} />
      </ErrorBoundary>
      <div class="trade-grid">
        <ErrorBoundary name="The chart">
          <Chart market={market} key={market.market_id} />
        </ErrorBoundary>
        <ErrorBoundary name="The book">
          <Book market={market} key={market.market_id} />
        </ErrorBoundary>
        <ErrorBoundary name="The tapes">
          <Tapes market={market} key={market.market_id} />
        </ErrorBoundary>
        <ErrorBoundary name="The ticket">
          <Ticket market={market} key={market.market_id} />
        </ErrorBoundary>
        <ErrorBoundary name="The account">
          <Bottom />
        </ErrorBoundary>
      </div>
      <nav class="sheet-bar" aria-label="Panels">
        {SHEETS.map(({ id: each, label }) => (
          <button type="button" key={each} aria-pressed={each === sheet} onClick={() => setSheet(each)}>
            {label}
          </button>
        ))}
      </nav>
    </div>
  )
}
