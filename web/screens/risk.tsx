/** Open interest, backstop, deleveragings, deficits and liquidations of each market. */
import { useState } from 'preact/hooks'
import type { Liquidation, MarketRisk } from '../../client/responses.ts'
import { compact, NONE, number, percent, placesOf, quantity, usd } from '../base/numbers.ts'
import { dateTime } from '../base/times.ts'
import { marketData } from '../feed/exchange.ts'
import { marketById, markets } from '../feed/markets.ts'
import { Empty, Head } from '../ui/controls.tsx'
import { ReadError } from '../ui/read-error.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { useRead } from '../ui/use-read.ts'

const REFRESH_MS = 5_000

const KINDS = {
  forced_fill: 'sold or bought in a batch',
  inherited: 'taken over by the backstop',
  deleveraged: 'closed against profitable positions',
} as const

function Row({ risk }: { risk: MarketRisk }) {
  const { backstop } = risk
  return (
    <tr>
      <th scope="row">{risk.symbol}</th>
      <td class="num">{compact(risk.open_interest_notional_e18_raw)}</td>
      <td class="num">{backstop === null ? NONE : compact(backstop.capacity_e18_raw)}</td>
      <td class="num">
        {backstop === null || backstop.used_e18_raw === null || BigInt(backstop.capacity_e18_raw) === 0n
          ? NONE
          : percent((BigInt(backstop.used_e18_raw) * 10n ** 18n) / BigInt(backstop.capacity_e18_raw), {
              places: 1,
            })}
      </td>
      <td class="num">{backstop === null ? NONE : compact(backstop.free_balance_e18_raw)}</td>
      <td class="num">{risk.running_liquidations}</td>
      <td class="num">
        {risk.inheritances.count} / {risk.deleveragings.count}
      </td>
      <td
        class={`num ${BigInt(risk.deficits.reported_e18_raw) > BigInt(risk.deficits.covered_e18_raw) ? 'down' : ''}`}
      >
        {usd(BigInt(risk.deficits.reported_e18_raw) - BigInt(risk.deficits.covered_e18_raw))}
      </td>
    </tr>
  )
}

function Liquidations({ marketId }: { marketId: number | null }) {
  const read = useRead(
    `liquidations-${marketId}`,
    () => marketData.liquidationPage({ limit: 100, ...(marketId !== null && { marketId }) }),
    REFRESH_MS,
  )
  const list: readonly Liquidation[] = read.value?.liquidations ?? []
  return (
    <>
      <ReadError read={read} />
      {list.length === 0 ? (
        <Empty>{read.value === null ? 'Reading …' : 'No liquidation has been mined.'}</Empty>
      ) : null}
      {list.length === 0 ? null : (
        <table class="table">
          <Head
            columns={[
              'Time',
              'Market',
              'Position',
              'Step',
              { num: 'Quantity' },
              { num: 'Price' },
              { num: 'Value' },
            ]}
          />
          <tbody>
            {list.map((each) => {
              const market = marketById(each.market_id)
              return (
                <tr key={`${each.liquidation_id}-${each.created_at}-${each.quantity_e18_raw}`}>
                  <td>{dateTime(each.created_at)}</td>
                  <th scope="row">{each.symbol}</th>
                  <td class={each.side === 'LONG' ? 'up' : 'down'}>{each.side.toLowerCase()}</td>
                  <td>{KINDS[each.kind]}</td>
                  <td class="num">{quantity(each.quantity_e18_raw)}</td>
                  <td class="num">
                    {number(each.price_e18_raw, {
                      places: market === undefined ? 2 : placesOf(market.tick_size_e18_raw),
                    })}
                  </td>
                  <td class="num">{usd(each.notional_e18_raw)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      )}
    </>
  )
}

export function RiskScreen() {
  const [marketId, setMarketId] = useState<number | null>(null)
  const ids = markets.value.map(({ market_id }) => market_id)
  const read = useRead(
    `risk-${ids.join()}`,
    () => Promise.all(ids.map((id) => marketData.risk(id))),
    REFRESH_MS,
  )
  return (
    <section class="page">
      <h1>Liquidations and risk</h1>
      <ReadError read={read} />
      <div class="panel">
        <Scroll label="Risk by market">
          <table class="table" data-testid="risk">
            <Head
              columns={[
                'Market',
                { num: 'Open interest' },
                { num: 'Backstop capacity' },
                { num: 'Used' },
                { num: 'Backstop funds' },
                { num: 'Running' },
                { num: 'Inherited / deleveraged' },
                { num: 'Open deficit' },
              ]}
            />
            <tbody>
              {(read.value ?? []).map((risk) => (
                <Row key={risk.market_id} risk={risk} />
              ))}
            </tbody>
          </table>
        </Scroll>
      </div>
      <div class="panel">
        <header class="panel-head">
          <h2>Liquidations</h2>
          <select
            class="select small"
            aria-label="Market"
            value={marketId ?? ''}
            onChange={({ currentTarget }) =>
              setMarketId(currentTarget.value === '' ? null : Number(currentTarget.value))
            }
          >
            <option value="">All markets</option>
            {markets.value.map(({ market_id, symbol }) => (
              <option key={market_id} value={market_id}>
                {symbol}
              </option>
            ))}
          </select>
        </header>
        <Scroll label="Liquidations">
          <Liquidations marketId={marketId} />
        </Scroll>
      </div>
    </section>
  )
}
