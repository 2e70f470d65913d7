/** Orders of the account, including ended orders, with the reason of each end. */
import { endings, openOrders } from '../account/live-account.ts'
import { requireTrader } from '../account/trader.ts'
import { NONE, quantity, quantityOrNone } from '../base/numbers.ts'
import { codeWords, reasonWords } from '../base/reasons.ts'
import { dateTime } from '../base/times.ts'
import { Empty, Head } from '../ui/controls.tsx'
import { ReadError } from '../ui/read-error.tsx'
import { useRead } from '../ui/use-read.ts'
import { termsOf } from './order-actions.ts'

const MOST = 100
const REFRESH_MS = 10_000

export function OrderHistoryTable() {
  const { orders, session } = requireTrader()
  const key = `${session.address} ${endings.value} ${openOrders.value.length}`
  const read = useRead(key, () => orders.page({ limit: MOST }), REFRESH_MS)
  const list = read.value?.orders ?? []
  return (
    <>
      <ReadError read={read} />
      {list.length === 0 ? <Empty>{read.value === null ? 'Reading …' : 'No order yet.'}</Empty> : null}
      <table class="table" data-testid="order-history" hidden={list.length === 0}>
        <Head
          columns={[
            'Time',
            'Market',
            'Side',
            'Type',
            { num: 'Price' },
            { num: 'Average' },
            { num: 'Filled / quantity' },
            'Status',
            'Reason',
          ]}
        />
        <tbody>
          {list.map((order) => (
            <tr key={order.order_id} data-order={order.order_id}>
              <td>{dateTime(order.created_at)}</td>
              <th scope="row">{order.symbol}</th>
              <td class={order.side === 'LONG' ? 'up' : 'down'}>{order.side === 'LONG' ? 'Buy' : 'Sell'}</td>
              <td>{termsOf(order)}</td>
              <td class="num">{quantityOrNone(order.effective_price_e18_raw ?? order.price_e18_raw)}</td>
              <td class="num">{quantityOrNone(order.average_price_e18_raw)}</td>
              <td class="num">
                {quantity(order.filled_quantity_e18_raw)} / {quantityOrNone(order.quantity_e18_raw)}
              </td>
              <td>{codeWords(order.status)}</td>
              <td>{order.status_reason === null ? NONE : reasonWords(order.status_reason)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}
