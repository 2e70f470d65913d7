/** Fills with their settlement stages, and transactions. */
import type { Fill, Transaction } from '../../client/responses.ts'
import { type VoidedFill, voidedFills } from '../account/live-account.ts'
import { NONE, quantity, signOf, usd } from '../base/numbers.ts'
import { codeWords } from '../base/reasons.ts'
import { batchPath } from '../base/router.ts'
import { dateTime } from '../base/times.ts'
import { Empty, Head } from '../ui/controls.tsx'

const STAGES = ['MATCHED', 'SUBMITTED', 'MINED', 'CONFIRMED'] as const

const WORDS = {
  MATCHED: 'Matched',
  SUBMITTED: 'Submitted',
  MINED: 'Mined',
  CONFIRMED: 'Confirmed',
  RETRYING: 'Submitted again',
  FAILED: 'Voided',
} as const

/** Four dots: matched, submitted, mined, confirmed. */
export function Stages({ fill }: { fill: Fill | VoidedFill }) {
  const reason = 'failure' in fill && fill.failure !== null ? `: ${fill.failure}` : ''
  const reached = STAGES.indexOf(fill.status as (typeof STAGES)[number])
  return (
    <span
      class={`stages ${fill.status.toLowerCase()}`}
      title={fill.tx_hash ?? undefined}
      data-testid="stage"
      data-stage={fill.status}
    >
      {STAGES.map((stage, index) => (
        <i key={stage} class={index <= reached ? 'on' : ''} />
      ))}
      {WORDS[fill.status]}
      {reason}
    </span>
  )
}

export function FillTable({ fills }: { fills: readonly Fill[] }) {
  const voided = voidedFills.value
  const gone = new Set(voided.map(({ fill_id }) => fill_id))
  const rows = [...voided, ...fills.filter(({ fill_id }) => !gone.has(fill_id))].toSorted((a, b) =>
    a.created_at < b.created_at ? 1 : -1,
  )
  if (rows.length === 0) return <Empty>No fill yet.</Empty>
  return (
    <table class="table" data-testid="fills">
      <Head
        columns={[
          'Time',
          'Market',
          'Side',
          { num: 'Price' },
          { num: 'Protected to' },
          { num: 'Quantity' },
          { num: 'Fee' },
          { num: 'Realized' },
          'Settlement',
          'Batch',
        ]}
      />
      <tbody>
        {rows.slice(0, 200).map((fill) => (
          <tr key={fill.fill_id} class={fill.status === 'FAILED' ? 'voided' : ''}>
            <td>{dateTime(fill.created_at)}</td>
            <th scope="row">{fill.symbol}</th>
            <td class={fill.side === 'LONG' ? 'up' : 'down'}>
              {fill.side === 'LONG' ? 'Buy' : 'Sell'}
              {fill.forced ? ' (liquidation)' : ''}
            </td>
            <td class="num">{quantity(fill.price_e18_raw)}</td>
            <td class="num">{quantity(fill.protection_price_e18_raw)}</td>
            <td class="num">{quantity(fill.quantity_e18_raw)}</td>
            <td class="num">{usd(fill.fee_e18_raw, { places: 4 })}</td>
            <td class={`num ${signOf(fill.realized_pnl_e18_raw)}`}>
              {usd(fill.realized_pnl_e18_raw, { sign: true })}
            </td>
            <td>
              <Stages fill={fill} />
            </td>
            <td>
              <a href={batchPath(fill.market_id, fill.batch_id)}>{fill.batch_id}</a>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

export function TransactionTable({ list, empty }: { list: readonly Transaction[]; empty: string }) {
  if (list.length === 0) return <Empty>{empty}</Empty>
  return (
    <table class="table">
      <Head
        columns={[
          'Time',
          'Kind',
          'Market',
          { num: 'Amount (USDM)' },
          { num: 'Change of free balance' },
          'Transaction',
        ]}
      />
      <tbody>
        {list.slice(0, 300).map((each) => (
          <tr key={each.id}>
            <td>{dateTime(each.created_at)}</td>
            <th scope="row">{codeWords(each.transaction_type)}</th>
            <td>{each.market_symbol ?? NONE}</td>
            <td class="num">
              {usd(each.funding_payment_delta_e18_raw ?? each.amount_e18_raw, { places: 4 })}
            </td>
            <td class={`num ${signOf(each.available_margin_delta_e18_raw)}`}>
              {usd(each.available_margin_delta_e18_raw, { places: 4, sign: true })}
            </td>
            <td class="mono">{each.tx_hash === null ? NONE : `${each.tx_hash.slice(0, 10)}…`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
