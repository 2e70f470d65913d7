/** Draws candles with lightweight-charts: loaded only when a chart is shown. */
import {
  CandlestickSeries,
  ColorType,
  createChart,
  createSeriesMarkers,
  HistogramSeries,
  type IChartApi,
  type IPriceLine,
  type ISeriesApi,
  LineStyle,
  type UTCTimestamp,
} from 'lightweight-charts'
import type { Bar } from './chart-data.ts'

export interface ChartLine {
  readonly id: string
  readonly price: number
  readonly title: string
  readonly kind: 'buy' | 'sell' | 'entry' | 'liquidation' | 'band'
  /** The line belongs to an order that can be dragged to another price. */
  readonly isMovable: boolean
}

export interface ChartMark {
  readonly time: number
  readonly side: 'LONG' | 'SHORT'
  readonly text: string
}

const GRAB_PX = 6

const variable = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim()

function colours() {
  return {
    up: variable('--up'),
    down: variable('--down'),
    text: variable('--muted'),
    line: variable('--line'),
    accent: variable('--accent'),
  }
}

const timeOf = (bar: { readonly time: number }): UTCTimestamp => bar.time as UTCTimestamp

export class ChartCanvas {
  readonly #chart: IChartApi
  readonly #container: HTMLElement
  readonly #candles: ISeriesApi<'Candlestick'>
  readonly #volume: ISeriesApi<'Histogram'>
  readonly #markers: ReturnType<typeof createSeriesMarkers<never>>
  /** Read from the style once per theme: each read makes the browser compute it. */
  #colours = colours()
  /** Messages of the account rarely change what is drawn. */
  readonly #shown = new Map<string, string>()
  #lines: { readonly line: ChartLine; readonly drawn: IPriceLine }[] = []
  #dragged: { readonly line: ChartLine; readonly drawn: IPriceLine; price: number } | null = null
  /** Called when an order's line was dropped at another price. */
  onMove: (id: string, price: number) => void = () => {}

  constructor(container: HTMLElement, places: number) {
    this.#container = container
    const format = { type: 'price', precision: places, minMove: 10 ** -places } as const
    this.#chart = createChart(container, {
      autoSize: true,
      layout: {
        attributionLogo: false,
        fontSize: 11,
        fontFamily: 'inherit',
        background: { type: ColorType.Solid, color: 'transparent' },
      },
      rightPriceScale: { borderVisible: false },
      timeScale: { borderVisible: false, timeVisible: true, secondsVisible: false, rightOffset: 4 },
      crosshair: { mode: 0 },
    })
    this.#candles = this.#chart.addSeries(CandlestickSeries, { priceFormat: format, borderVisible: false })
    this.#volume = this.#chart.addSeries(HistogramSeries, {
      priceScaleId: 'volume',
      priceFormat: { type: 'volume' },
      lastValueVisible: false,
      priceLineVisible: false,
    })
    this.#chart.priceScale('volume').applyOptions({ scaleMargins: { top: 0.85, bottom: 0 } })
    this.#markers = createSeriesMarkers(this.#candles as never) as never
    this.#paint()
    container.addEventListener('pointerdown', this.#grab, { capture: true })
  }

  #paint(): void {
    this.#colours = colours()
    const { up, down, text, line } = this.#colours
    const grid = { color: line }
    this.#chart.applyOptions({ layout: { textColor: text }, grid: { vertLines: grid, horzLines: grid } })
    this.#candles.applyOptions({ upColor: up, downColor: down, wickUpColor: up, wickDownColor: down })
  }

  set(bars: readonly Bar[]): void {
    this.#candles.setData(bars.map((bar) => ({ ...bar, time: timeOf(bar) })))
    this.#volume.setData(bars.map((bar) => this.#volumeOf(bar)))
  }

  update(bar: Bar): void {
    this.#candles.update({ ...bar, time: timeOf(bar) })
    this.#volume.update(this.#volumeOf(bar))
  }

  #volumeOf(bar: Bar) {
    const { up, down } = this.#colours
    return { time: timeOf(bar), value: bar.volume, color: `${bar.close >= bar.open ? up : down}55` }
  }

  /** Whether something is to be drawn that differs from before. Another look first changes the colours. */
  #isNew(name: 'lines' | 'marks' | 'look', look: string, what: unknown = ''): boolean {
    if (name !== 'look' && this.#isNew('look', look)) this.#paint()
    const text = look + JSON.stringify(what)
    const isNew = this.#shown.get(name) !== text
    this.#shown.set(name, text)
    return isNew
  }

  showLines(lines: readonly ChartLine[], look: string): void {
    if (!this.#isNew('lines', look, lines)) return
    for (const { drawn } of this.#lines) this.#candles.removePriceLine(drawn)
    const { up, down, text, accent } = this.#colours
    const colour = { buy: up, sell: down, entry: accent, liquidation: down, band: text }
    this.#lines = lines.map((line) => ({
      line,
      drawn: this.#candles.createPriceLine({
        price: line.price,
        color: colour[line.kind],
        lineWidth: 1,
        lineStyle:
          line.kind === 'entry'
            ? LineStyle.Solid
            : line.kind === 'band'
              ? LineStyle.SparseDotted
              : LineStyle.Dashed,
        axisLabelVisible: line.kind !== 'band',
        title: line.title,
      }),
    }))
  }

  /** Oldest first. */
  showMarks(marks: readonly ChartMark[], look: string): void {
    if (!this.#isNew('marks', look, marks)) return
    const { up, down } = this.#colours
    this.#markers.setMarkers(
      marks.map(({ time, side, text }) => ({
        time: time as never,
        position: side === 'LONG' ? 'belowBar' : 'aboveBar',
        shape: side === 'LONG' ? 'arrowUp' : 'arrowDown',
        color: side === 'LONG' ? up : down,
        text,
      })),
    )
  }

  #grab = (event: PointerEvent): void => {
    const y = event.clientY - this.#container.getBoundingClientRect().top
    const near = this.#lines.find(({ line }) => {
      const at = line.isMovable ? this.#candles.priceToCoordinate(line.price) : null
      return at !== null && Math.abs(at - y) <= GRAB_PX
    })
    if (near === undefined) return
    event.preventDefault()
    event.stopPropagation()
    this.#dragged = { ...near, price: near.line.price }
    addEventListener('pointermove', this.#drag)
    addEventListener('pointerup', this.#drop, { once: true })
  }

  #drag = (event: PointerEvent): void => {
    if (this.#dragged === null) return
    const y = event.clientY - this.#container.getBoundingClientRect().top
    const price = this.#candles.coordinateToPrice(y)
    if (price === null) return
    this.#dragged.price = price
    this.#dragged.drawn.applyOptions({ price })
  }

  #drop = (): void => {
    removeEventListener('pointermove', this.#drag)
    const dragged = this.#dragged
    this.#dragged = null
    if (dragged === null || dragged.price === dragged.line.price) return
    // The order stays where it is until the exchange has moved it.
    dragged.drawn.applyOptions({ price: dragged.line.price })
    this.onMove(dragged.line.id, dragged.price)
  }

  remove(): void {
    this.#container.removeEventListener('pointerdown', this.#grab, { capture: true })
    this.#chart.remove()
  }
}
