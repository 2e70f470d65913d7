/** Open orders of the account. */
import { openOrders } from '../account/live-account.ts'
import { NONE, number } from '../base/numbers.ts'
import { dateTime } from '../base/times.ts'
import { Empty } from '../ui/controls.tsx'
import { cancel, cancelAll, typeWords } from './order-actions.ts'

const short = (raw: string | null): string =>
  raw === null || raw === '0' ? NONE : number(raw, { places: 8, short: true })

export function OrderTable() {
  const list = openOrders.value
  if (list.length === 0) return <Empty>No open order.</Empty>
  return (
    <table class="table stacked" data-testid="orders">
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Market</th>
          <th scope="col">Side</th>
          <th scope="col">Type</th>
          <th scope="col" class="num">
            Price
          </th>
          <th scope="col" class="num">
            Trigger
          </th>
          <th scope="col" class="num">
            Filled / quantity
          </th>
          <th scope="col">Status</th>
          <th scope="col" class="num">
            <button type="button" class="button small" onClick={() => void cancelAll()}>
              Cancel all
            </button>
          </th>
        </tr>
      </thead>
      <tbody>
        {list.map((order) => (
          <tr key={order.order_id}>
            <td data-label="Time">{dateTime(order.created_at)}</td>
            <th scope="row">{order.symbol}</th>
            <td class={order.side === 'LONG' ? 'up' : 'down'} data-label="Side">
              {order.side === 'LONG' ? 'Buy' : 'Sell'}
            </td>
            <td data-label="Type">
              {typeWords(order.order_type)}
              {order.reduce_only ? ', reduce only' : ''}
            </td>
            <td class="num" data-label="Price">
              {short(order.effective_price_e18_raw ?? order.price_e18_raw)}
            </td>
            <td class="num" data-label="Trigger">
              {short(order.trigger_price_e18_raw)}
            </td>
            <td class="num" data-label="Filled / quantity">
              {number(order.filled_quantity_e18_raw, { places: 8, short: true })} /{' '}
              {short(order.quantity_e18_raw)}
            </td>
            <td data-label="Status">{order.status.toLowerCase().replace(/_/g, ' ')}</td>
            <td class="num actions">
              <button
                type="button"
                class="button small"
                disabled={order.forced}
                aria-label={`Cancel ${order.symbol} ${order.side} ${order.order_id}`}
                onClick={() => void cancel(order)}
              >
                Cancel
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
