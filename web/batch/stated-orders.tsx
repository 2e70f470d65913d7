/** The orders of a batch, without names. */
import type { BatchStatement } from '../../domain/proof/batch-statement.ts'
import { NONE, number, placesOf, usd } from '../base/numbers.ts'
import { Scroll } from '../ui/scroll.tsx'

const MOST = 200

export function StatedOrders({ statement, own }: { statement: BatchStatement; own: readonly number[] }) {
  const { orders, result, market } = statement
  const [places, size] = [placesOf(String(market.tick)), placesOf(String(market.step))]
  const quantity = (steps: number): string => number(BigInt(steps) * market.step, { places: size })
  const fillOf = new Map(result.fills.map((fill) => [fill.order as number, fill]))
  const protection = new Map(result.protections.map(({ order, price }) => [order as number, price as number]))
  return (
    <section class="panel" aria-label="Orders of the batch">
      <header class="panel-head">
        <h2>Orders in the batch</h2>
        <span class="muted">Each batch numbers its accounts by itself</span>
      </header>
      <Scroll label="Orders of the batch">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">#</th>
              <th scope="col">Account</th>
              <th scope="col">Side</th>
              <th scope="col">Type</th>
              <th scope="col" class="num">
                Limit
              </th>
              <th scope="col" class="num">
                Open
              </th>
              <th scope="col" class="num">
                Filled
              </th>
              <th scope="col" class="num">
                Taker part
              </th>
              <th scope="col" class="num">
                Fee
              </th>
            </tr>
          </thead>
          <tbody>
            {orders.slice(0, MOST).map((order, index) => {
              const place = index + 1
              const fill = fillOf.get(place)
              const limit =
                order.type === 'MARKET' ? (protection.get(place) ?? null) : (order.limit as number)
              return (
                <tr key={place} class={own.includes(place) ? 'mine' : fill === undefined ? 'idle' : ''}>
                  <th scope="row">
                    {place}
                    {own.includes(place) ? <b class="own-share"> you</b> : null}
                  </th>
                  <td>{order.forced ? 'liquidation' : order.group}</td>
                  <td class={order.side === 'LONG' ? 'up' : 'down'}>
                    {order.side === 'LONG' ? 'Buy' : 'Sell'}
                  </td>
                  <td>{order.type === 'MARKET' ? 'market' : 'limit'}</td>
                  <td class="num" title={order.type === 'MARKET' ? 'Protection price' : undefined}>
                    {limit === null ? NONE : number(BigInt(limit) * market.tick, { places })}
                  </td>
                  <td class="num">{quantity(order.remaining)}</td>
                  <td class="num">{fill === undefined ? NONE : quantity(fill.steps)}</td>
                  <td class="num">{fill === undefined ? NONE : quantity(fill.takerSteps)}</td>
                  <td class="num">{fill === undefined ? NONE : usd(fill.fee, { places: 4 })}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </Scroll>
      {orders.length > MOST ? (
        <p class="empty">{orders.length - MOST} further orders are not listed.</p>
      ) : null}
    </section>
  )
}
