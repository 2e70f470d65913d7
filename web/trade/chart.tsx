/** The chart of a market: candles, own orders and position as lines, fills as marks. */
import { effect } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { CandleInterval, PriceType } from '../../client/market-history.ts'
import type { Market, PlacedOrder } from '../../client/responses.ts'
import { roundPrice } from '../../client/rounding.ts'
import { fills, isMovable, isWaiting, openOrders, positionIn } from '../account/live-account.ts'
import { counted, number, placesOf, plain } from '../base/numbers.ts'
import { look } from '../base/settings.ts'
import { toast } from '../base/toasts.ts'
import { marketById } from '../feed/markets.ts'
import { Button, Choice } from '../ui/controls.tsx'
import { loadTrading } from '../ui/lazy.tsx'
import { ChartCanvas, type ChartLine, type ChartMark } from './chart-canvas.ts'
import { firstBars, followBars, SECONDS } from './chart-data.ts'

const INTERVALS = (['1m', '5m', '15m', '1h', '4h', '1d'] as const).map((value) => ({ value, text: value }))
const TYPES = [
  { value: 'last', text: 'Last' },
  { value: 'mark', text: 'Mark' },
  { value: 'oracle', text: 'Oracle' },
] as const

function orderLine(order: PlacedOrder, size: number): ChartLine {
  const isTrigger = isWaiting(order)
  const raw = isTrigger ? order.trigger_price_e18_raw : (order.effective_price_e18_raw ?? order.price_e18_raw)
  const action = order.side === 'LONG' ? 'buy' : 'sell'
  return {
    id: order.order_id,
    price: plain(raw),
    title: `${isTrigger ? 'trigger ' : ''}${action} ${number(order.remaining_quantity_e18_raw, { places: size, short: true })}`,
    kind: action,
    isMovable: isMovable(order),
  }
}

/** `shown`: its band moves with the oracle price, so the newest terms are read. */
function linesOf(shown: Market): readonly ChartLine[] {
  const market = marketById(shown.market_id) ?? shown
  const { market_id: id, price_band: band } = market
  const size = placesOf(market.step_size_e18_raw)
  const fixed = (raw: string | null | undefined, title: string, kind: ChartLine['kind']): ChartLine[] =>
    raw == null || raw === '0' ? [] : [{ id: title, price: plain(raw), title, kind, isMovable: false }]
  const position = positionIn(id)
  return [
    ...openOrders.value
      .filter((order) => order.market_id === id && order.order_type !== 'MARKET')
      .map((order) => orderLine(order, size)),
    ...fixed(position?.entry_price_e18_raw, 'entry', 'entry'),
    ...fixed(position?.liquidation_price_e18_raw, 'liquidation', 'liquidation'),
    ...fixed(band?.lowest_e18_raw, 'band low', 'band'),
    ...fixed(band?.highest_e18_raw, 'band high', 'band'),
  ]
}

const marksOf = (marketId: number, interval: string): readonly ChartMark[] =>
  fills.value
    .filter(({ market_id, status }) => market_id === marketId && status !== 'FAILED')
    .map(({ created_at, side, quantity_e18_raw }) => {
      const length = SECONDS[interval] ?? 60
      const time = Math.floor(Date.parse(created_at) / 1000 / length) * length
      return { time, side, text: number(quantity_e18_raw, { places: 6, short: true }) }
    })
    .toSorted((a, b) => a.time - b.time)

async function move(market: Market, id: string, price: number): Promise<void> {
  const order = openOrders.value.find(({ order_id }) => order_id === id)
  if (order === undefined) return
  const { moveOrder } = await loadTrading()
  const places = placesOf(market.tick_size_e18_raw)
  await moveOrder(order, roundPrice(market, price.toFixed(places), order.side))
}

interface Query {
  readonly interval: CandleInterval
  readonly priceType: PriceType
}

function useChart(market: Market, { interval, priceType }: Query) {
  const container = useRef<HTMLDivElement>(null)
  const [error, setError] = useState<string | null>(null)
  const [round, setRound] = useState(0)
  useEffect(() => {
    const query = { marketId: market.market_id, interval, priceType }
    const leave: (() => void)[] = []
    let isOpen = true
    firstBars(query).then(
      (bars) => {
        if (!isOpen || container.current === null) return
        setError(null)
        // Not before its data: drawing an empty chart takes as long as drawing the candles.
        const canvas = new ChartCanvas(container.current, placesOf(market.tick_size_e18_raw))
        canvas.onMove = (id, price) => void move(market, id, price)
        canvas.set(bars)
        leave.push(followBars(query, bars.at(-1), (bar) => canvas.update(bar)))
        leave.push(effect(() => canvas.showLines(linesOf(market), look.value)))
        leave.push(effect(() => canvas.showMarks(marksOf(market.market_id, interval), look.value)))
        leave.push(() => canvas.remove())
      },
      (reason: Error) => {
        setError(reason.message)
        toast({ id: 'chart', kind: 'bad', title: 'The chart has no data', text: reason.message })
      },
    )
    return () => {
      isOpen = false
      for (const each of leave) each()
    }
  }, [market.market_id, interval, priceType, round])
  return { container, error, again: () => setRound((before) => before + 1) }
}

/** The canvas has no text: this is what a screen reader finds in its place. */
function Legend({ market, interval }: { market: Market; interval: string }) {
  const places = placesOf(market.tick_size_e18_raw)
  return (
    <ul class="hidden" aria-label="Shown on the chart" data-testid="chart-legend">
      {linesOf(market).map(({ id, title, price }) => (
        <li key={id}>
          {title} {price.toFixed(places)}
        </li>
      ))}
      <li>{counted(marksOf(market.market_id, interval).length, 'fill')}</li>
    </ul>
  )
}

export function Chart({ market }: { market: Market }) {
  const [interval, setInterval] = useState<CandleInterval>('1m')
  const [priceType, setPriceType] = useState<PriceType>('last')
  const { container, error, again } = useChart(market, { interval, priceType })
  return (
    <section class="panel chart" aria-label="Chart">
      <header class="panel-head">
        <Choice
          label="Interval"
          options={INTERVALS}
          value={interval as (typeof INTERVALS)[number]['value']}
          onChange={setInterval}
        />
        <Choice label="Price" options={TYPES} value={priceType} onChange={setPriceType} />
        <a class="credit muted" href="https://www.tradingview.com/" target="_blank" rel="noreferrer">
          Chart by TradingView
        </a>
      </header>
      <div class="canvas" ref={container} data-testid="chart" />
      <Legend market={market} interval={interval} />
      {error === null ? null : (
        <p class="empty">
          {error}{' '}
          <Button class="small" onClick={again}>
            Retry
          </Button>
        </p>
      )}
    </section>
  )
}
