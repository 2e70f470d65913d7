/** Open orders of the account. */
import { useState } from 'preact/hooks'
import type { PlacedOrder } from '../../client/responses.ts'
import { isMovable, isWaiting, openOrders } from '../account/live-account.ts'
import { fromE18, parsed, quantity, quantityOrNone } from '../base/numbers.ts'
import { codeWords } from '../base/reasons.ts'
import { dateTime } from '../base/times.ts'
import { Button, Dialog, Empty, Head } from '../ui/controls.tsx'
import { cancel, cancelAll, describeOrder, moveOrder, termsOf, typeWords } from './order-actions.ts'
import { Field } from './ticket-fields.tsx'

/** For the keyboard, and for prices beyond the chart. */
function MoveDialog({ order, onClose }: { order: PlacedOrder; onClose: () => void }) {
  const raw = isWaiting(order) ? order.trigger_price_e18_raw : order.price_e18_raw
  const [price, setPrice] = useState(fromE18(BigInt(raw)))
  const send = (event: Event): void => {
    event.preventDefault()
    onClose()
    void moveOrder(order, price.trim())
  }
  return (
    <Dialog title={`Move: ${describeOrder(order)}`} onClose={onClose}>
      <form onSubmit={send}>
        <Field
          label={isWaiting(order) ? 'Trigger (mark)' : 'Price'}
          value={price}
          unit="USDM"
          testId="move-price"
          onInput={setPrice}
        />
        <button type="submit" class="button primary wide" disabled={(parsed(price) ?? 0n) <= 0n}>
          Move the order
        </button>
      </form>
    </Dialog>
  )
}

/** The other live orders of its bracket. */
const linkedWith = ({ bracket_id, market_id, order_id }: PlacedOrder): readonly PlacedOrder[] =>
  bracket_id === null
    ? []
    : openOrders.value.filter(
        (each) =>
          each.bracket_id === bracket_id && each.market_id === market_id && each.order_id !== order_id,
      )

/** No mark triggers an exit before its entry has matched. */
const isDormant = (order: PlacedOrder): boolean =>
  isWaiting(order) &&
  order.reduce_only &&
  linkedWith(order).some(
    (each) =>
      !each.reduce_only && each.filled_quantity_e18_raw === '0' && each.settling_quantity_e18_raw === '0',
  )

function Links({ order }: { order: PlacedOrder }) {
  const linked = linkedWith(order)
  if (linked.length === 0) return null
  const words = linked
    .map(({ order_type }) => typeWords(order_type))
    .sort()
    .join(' and ')
  return (
    <span class="badge" title="The exchange ends these orders together" data-testid="linked">
      linked with {words}
    </span>
  )
}

/** Newest first, and each order beside those of its bracket. */
function grouped(orders: readonly PlacedOrder[]): readonly PlacedOrder[] {
  const groups = Map.groupBy(orders, ({ market_id, bracket_id, order_id }) =>
    bracket_id === null ? order_id : `${market_id}/${bracket_id}`,
  )
  return [...groups.values()].flat()
}

export function OrderTable() {
  const list = grouped(openOrders.value)
  const [moved, setMoved] = useState<PlacedOrder | null>(null)
  if (list.length === 0) return <Empty>No open order.</Empty>
  return (
    <>
      {moved === null ? null : <MoveDialog order={moved} onClose={() => setMoved(null)} />}
      <table class="table stacked" data-testid="orders">
        <Head
          columns={[
            'Time',
            'Market',
            'Side',
            'Type',
            { num: 'Price' },
            { num: 'Trigger' },
            { num: 'Filled / quantity' },
            'Status',
          ]}
        >
          <th scope="col" class="num">
            <Button class="small" onClick={() => void cancelAll()}>
              Cancel all
            </Button>
          </th>
        </Head>
        <tbody>
          {list.map((order) => (
            <tr key={order.order_id}>
              <td data-label="Time">{dateTime(order.created_at)}</td>
              <th scope="row">{order.symbol}</th>
              <td class={order.side === 'LONG' ? 'up' : 'down'} data-label="Side">
                {order.side === 'LONG' ? 'Buy' : 'Sell'}
              </td>
              <td data-label="Type">
                {termsOf(order)} <Links order={order} />
              </td>
              <td class="num" data-label="Price">
                {quantityOrNone(order.effective_price_e18_raw ?? order.price_e18_raw)}
              </td>
              <td class="num" data-label="Trigger">
                {quantityOrNone(order.trigger_price_e18_raw)}
              </td>
              <td class="num" data-label="Filled / quantity">
                {quantity(order.filled_quantity_e18_raw)} / {quantityOrNone(order.quantity_e18_raw)}
              </td>
              <td data-label="Status">
                {isDormant(order) ? 'waits for its entry' : codeWords(order.status)}
              </td>
              <td class="num actions">
                {isMovable(order) ? (
                  <Button
                    class="small"
                    aria-label={`Move ${order.symbol} ${order.side} ${order.order_id}`}
                    onClick={() => setMoved(order)}
                  >
                    Move
                  </Button>
                ) : null}
                <Button
                  class="small"
                  disabled={order.forced}
                  aria-label={`Cancel ${order.symbol} ${order.side} ${order.order_id}`}
                  onClick={() => void cancel(order)}
                >
                  Cancel
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}
