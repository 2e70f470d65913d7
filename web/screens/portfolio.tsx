/** The account over time: realized profit, balance, positions, fills, transactions, and all of them as files. */
import { useState } from 'preact/hooks'
import type { ProfitPage } from '../../client/position-history.ts'
import { balance, fills, totalPnl, transactions } from '../account/live-account.ts'
import { session } from '../account/session.ts'
import { requireTrader, trader } from '../account/trader.ts'
import { plain, signOf, usd } from '../base/numbers.ts'
import { dateTime } from '../base/times.ts'
import { toast } from '../base/toasts.ts'
import { FillTable, TransactionTable } from '../trade/history-tables.tsx'
import { PositionTable } from '../trade/position-table.tsx'
import { Choice, Empty, Tabs } from '../ui/controls.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { downloadText, fillsCsv } from './download.ts'
import { ReadError } from './read-error.tsx'
import { linePath } from './spark.tsx'
import { useRead } from './use-read.ts'

const SPANS = [
  { value: '1h', text: 'By hour' },
  { value: '1d', text: 'By day' },
] as const

const [WIDTH, HEIGHT] = [900, 200]

/** Cumulative, from the oldest interval on. */
function cumulative({ pnl }: ProfitPage): { readonly total: bigint; readonly points: readonly number[] } {
  let total = 0n
  const points = [0]
  for (const { realized_pnl_e18_raw } of pnl.toReversed()) {
    total += BigInt(realized_pnl_e18_raw)
    points.push(plain(total))
  }
  return { total, points }
}

function Profit() {
  const [interval, setInterval] = useState<'1h' | '1d'>('1h')
  const read = useRead(
    `pnl-${interval}`,
    () => requireTrader().account.pnlPage({ interval, limit: 500 }),
    15_000,
  )
  const found = read.value === null ? null : cumulative(read.value)
  const first = read.value?.pnl.at(-1)?.start
  return (
    <section class="panel" aria-label="Realized profit">
      <header class="panel-head">
        <h2>Realized profit over time</h2>
        <Choice label="Interval" options={SPANS} value={interval} onChange={setInterval} />
      </header>
      <ReadError read={read} />
      {found === null || found.points.length < 2 ? (
        <Empty>{found === null ? 'Reading …' : 'Nothing has been realized yet.'}</Empty>
      ) : (
        <figure class="profit">
          <svg
            viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`Realized ${usd(found.total, { sign: true })} USDM since ${dateTime(first)}`}
          >
            <path
              class={found.total < 0n ? 'loss' : 'gain'}
              d={linePath(found.points, WIDTH, HEIGHT)}
              vector-effect="non-scaling-stroke"
            />
          </svg>
          <figcaption>
            <span class="muted">since {dateTime(first)}</span>
            <b class={signOf(found.total)}>{usd(found.total, { sign: true })} USDM</b>
          </figcaption>
        </figure>
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
]

async function download(what: 'transactions' | 'fills'): Promise<void> {
  const { account } = requireTrader()
  const id = `download-${what}`
  toast({ id, kind: 'pending', title: `Reading all ${what} …` })
  try {
    const csv = what === 'transactions' ? await account.transactionsCsv() : await fillsCsv(account)
    downloadText(`clearbatch-${what}.csv`, csv)
    toast({ id, kind: 'good', title: `The ${what} are in clearbatch-${what}.csv` })
  } catch (error) {
    toast({ id, kind: 'bad', title: `The ${what} could not be read`, text: (error as Error).message })
  }
}

export function PortfolioScreen() {
  const [tab, setTab] = useState('positions')
  if (session.value === null || trader.value === null)
    return (
      <section class="page">
        <h1>Portfolio</h1>
        <Empty>
          <a href="/account">Sign in</a> to see your portfolio.
        </Empty>
      </section>
    )
  const isFunding = (type: string): boolean => type === 'funding_payment'
  return (
    <section class="page" data-testid="portfolio">
      <header class="page-head">
        <h1>Portfolio</h1>
        <span class="grow" />
        <button type="button" class="button small" onClick={() => void download('fills')}>
          Fills as CSV
        </button>
        <button type="button" class="button small" onClick={() => void download('transactions')}>
          Transactions as CSV
        </button>
      </header>
      <Totals />
      <Profit />
      <section class="panel" aria-label="History">
        <Tabs label="History" items={TABS} selected={tab} onSelect={setTab} />
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
