/** The account over time: equity and realized profit, balance, positions, fills, transactions, and all of them as files. */
import { useState } from 'preact/hooks'
import type { EquityPoint } from '../../client/position-history.ts'
import { balance, fills, totalPnl, transactions } from '../account/live-account.ts'
import { session } from '../account/session.ts'
import { requireTrader, trader } from '../account/trader.ts'
import { plain, signOf, usd } from '../base/numbers.ts'
import { dateTime } from '../base/times.ts'
import { download } from '../trade/csv-download.ts'
import { FillTable, TransactionTable } from '../trade/history-tables.tsx'
import { PositionTable } from '../trade/position-table.tsx'
import { Choice, Empty, Tabs } from '../ui/controls.tsx'
import { CsvButton } from '../ui/csv-button.tsx'
import { ReadError } from '../ui/read-error.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { linePath } from '../ui/spark.tsx'
import { useRead } from '../ui/use-read.ts'

const SPANS = [
  { value: '1h', text: 'By hour' },
  { value: '1d', text: 'By day' },
] as const
type Span = (typeof SPANS)[number]['value']

const SERIES = [
  { value: 'equity', text: 'Equity' },
  { value: 'realized', text: 'Realized profit' },
] as const

const [WIDTH, HEIGHT] = [900, 200]
const MOST_POINTS = 500

/** A curve, and what it has won or lost from its first point to its last. */
interface Curve {
  readonly since: string
  readonly points: readonly bigint[]
  readonly gain: bigint
}

const paidIn = (each: EquityPoint): bigint => BigInt(each.deposits_e18_raw) - BigInt(each.withdrawals_e18_raw)

/** Deposits and withdrawals move the curve and are no gain. The whole history begins with what was first paid in. */
async function equity(interval: Span): Promise<Curve | null> {
  const page = await requireTrader().account.equityPage({ interval, limit: MOST_POINTS })
  const intervals = page.equity.toReversed()
  const [first, ...later] = intervals
  if (first === undefined) return null
  const ends = intervals.map(({ equity_e18_raw }) => BigInt(equity_e18_raw))
  const points = page.next_cursor === null ? [paidIn(first), ...ends] : ends
  const paid = later.reduce((sum, each) => sum + paidIn(each), 0n)
  return { since: first.start, points, gain: (points.at(-1) ?? 0n) - (points[0] ?? 0n) - paid }
}

/** Cumulative, from the oldest interval on. */
async function realized(interval: Span): Promise<Curve | null> {
  const { pnl } = await requireTrader().account.pnlPage({ interval, limit: MOST_POINTS })
  const oldest = pnl.at(-1)
  if (oldest === undefined) return null
  let gain = 0n
  const points = [0n]
  for (const { realized_pnl_e18_raw } of pnl.toReversed()) {
    gain += BigInt(realized_pnl_e18_raw)
    points.push(gain)
  }
  return { since: oldest.start, points, gain }
}

function CurveFigure({ curve: { since, points, gain }, label }: { curve: Curve; label: string }) {
  const ascending = points.toSorted((a, b) => (a < b ? -1 : 1))
  return (
    <figure class="profit">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label} since ${dateTime(since)}: ${usd(gain, { sign: true })} USDM`}
      >
        <path
          class={gain < 0n ? 'loss' : 'gain'}
          d={linePath(points.map(plain), WIDTH, HEIGHT)}
          vector-effect="non-scaling-stroke"
        />
      </svg>
      <figcaption>
        <span class="muted">
          since {dateTime(since)} · lowest {usd(ascending[0])} · highest {usd(ascending.at(-1))}
        </span>
        <b class={signOf(gain)} title="Without deposits and withdrawals">
          {usd(gain, { sign: true })} USDM
        </b>
      </figcaption>
    </figure>
  )
}

function Curves() {
  const [series, setSeries] = useState<(typeof SERIES)[number]['value']>('equity')
  const [interval, setInterval] = useState<Span>('1h')
  const key = `${series}-${interval}`
  const read = useRead(
    key,
    async () => ({ key, curve: await (series === 'equity' ? equity : realized)(interval) }),
    15_000,
  )
  const found = read.value?.key === key ? read.value.curve : undefined
  return (
    <section class="panel" aria-label="Over time" data-testid="curve">
      <header class="panel-head">
        <Choice label="Curve" options={SERIES} value={series} onChange={setSeries} />
        <Choice label="Interval" options={SPANS} value={interval} onChange={setInterval} />
      </header>
      <ReadError read={read} />
      {found == null || found.points.length < 2 ? (
        <Empty>{found === undefined ? 'Reading …' : 'Nothing to draw yet.'}</Empty>
      ) : (
        <CurveFigure curve={found} label={series === 'equity' ? 'Equity' : 'Realized profit'} />
      )}
    </section>
  )
}

function Totals() {
  const held = balance.value
  const equity = held === null ? null : BigInt(held.total_e18_raw) + totalPnl.value
  const cards = [
    { name: 'Equity at the mark', value: usd(equity) },
    { name: 'Available', value: usd(held?.available_e18_raw) },
    { name: 'In positions', value: usd(held?.position_margin_e18_raw) },
    { name: 'Reserved by orders', value: usd(held?.reserved_e18_raw) },
    { name: 'Open profit', value: usd(totalPnl.value, { sign: true }), way: signOf(totalPnl.value) },
  ]
  return (
    <div class="cards">
      {cards.map(({ name, value, way }) => (
        <div class="card" key={name}>
          <small>{name}</small>
          <b class={way}>{value}</b>
        </div>
      ))}
    </div>
  )
}

const TABS = [
  { id: 'positions', label: 'Positions' },
  { id: 'fills', label: 'Fills' },
  { id: 'funding', label: 'Funding' },
  { id: 'transactions', label: 'Transactions' },
] as const
type Tab = (typeof TABS)[number]['id']

export function PortfolioScreen() {
  const [tab, setTab] = useState<Tab>('positions')
  if (session.value === null || trader.value === null)
    return (
      <section class="page">
        <h1>Portfolio</h1>
        <Empty>
          <a href="/account">Sign in</a> to see your portfolio.
        </Empty>
      </section>
    )
  const name = TABS.find(({ id }) => id === tab)?.label ?? tab
  const isFunding = (type: string): boolean => type === 'funding_payment'
  return (
    <section class="page" data-testid="portfolio">
      <h1>Portfolio</h1>
      <Totals />
      <Curves />
      <section class="panel" aria-label="History">
        <Tabs label="History" items={TABS} selected={tab} onSelect={setTab}>
          <CsvButton name={name} onSave={() => download(tab, name)} />
        </Tabs>
        <Scroll label="History">
          {tab === 'positions' ? (
            <PositionTable />
          ) : tab === 'fills' ? (
            <FillTable fills={fills.value} />
          ) : (
            <TransactionTable
              list={transactions.value.filter(
                ({ transaction_type: type }) => isFunding(type) === (tab === 'funding'),
              )}
              empty={tab === 'funding' ? 'No funding payment yet.' : 'No transaction yet.'}
            />
          )}
        </Scroll>
      </section>
    </section>
  )
}
