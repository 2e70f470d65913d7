/** Before and after of an order, and the price up to which a market order is protected. */
import type { ComponentChildren } from 'preact'
import type { Market } from '../../client/responses.ts'
import { positionIn } from '../account/live-account.ts'
import { NONE, number, percent, placesOf, usd } from '../base/numbers.ts'
import { typeWords } from './order-actions.ts'
import { isIoc, isPostOnly, type TicketForm } from './ticket-form.ts'
import type { Estimated } from './use-estimate.ts'

function Line({
  label,
  before,
  after,
  title,
}: {
  label: string
  before?: string
  after: ComponentChildren
  title?: string
}) {
  return (
    <div class="line" title={title}>
      <dt>{label}</dt>
      <dd>
        {before === undefined || before === NONE ? null : (
          <span class="muted">
            {before}
            {after === NONE ? '' : ' → '}
          </span>
        )}
        {after === NONE && before !== undefined && before !== NONE ? null : after}
      </dd>
    </div>
  )
}

export const describeTicket = (market: Market, form: TicketForm, quantity: string): string =>
  `${form.side === 'LONG' ? 'Buy' : 'Sell'} ${number(quantity, { places: placesOf(market.step_size_e18_raw) })} ${market.symbol}, ` +
  `${typeWords(form.type)}${form.price === '' || form.type === 'MARKET' ? '' : ` at ${form.price}`}, ${form.leverage}×` +
  `${form.reduceOnly ? ', reduce only' : ''}${isPostOnly(form) ? ', post only' : ''}${isIoc(form) ? ', immediate or cancel' : ''}.`

function Protection({ market, estimated: { estimate } }: { market: Market; estimated: Estimated }) {
  const price = estimate?.expected_protection_price_e18_raw
  if (price == null) return null
  return (
    <Line
      label="Protected to"
      title="With the present book the next batch fills this order no worse than here"
      after={
        <span data-testid="protection">{number(price, { places: placesOf(market.tick_size_e18_raw) })}</span>
      }
    />
  )
}

export function Preview({
  market,
  form,
  estimated,
}: {
  market: Market
  form: TicketForm
  estimated: Estimated
}) {
  const { estimate, isPending } = estimated
  const after = estimate?.estimate ?? null
  const now = positionIn(market.market_id)
  const places = placesOf(market.tick_size_e18_raw)
  const size = placesOf(market.step_size_e18_raw)
  const fees = market.fees
  return (
    <dl class={`preview ${isPending ? 'pending' : ''}`} data-testid="preview">
      <Line label="Order size" after={number(after?.quantity_e18_raw, { places: size })} />
      <Line
        label="Expected price"
        title="Of the next batch with the present book"
        after={number(after?.price_e18_raw, { places })}
      />
      <Protection market={market} estimated={estimated} />
      <Line
        label="Fills at once"
        after={after === null ? NONE : number(after.fillable_quantity_e18_raw, { places: size })}
      />
      <Line
        label="Position"
        before={number(now?.size_e18_raw, { places: size })}
        after={number(after?.position?.size_e18_raw, { places: size })}
      />
      <Line label="Margin" before={usd(now?.margin_e18_raw)} after={usd(after?.position?.margin_e18_raw)} />
      <Line
        label="Leverage"
        before={now === undefined ? NONE : `${now.leverage}×`}
        after={
          after?.position?.effective_leverage_e18_raw == null
            ? NONE
            : `${number(after.position.effective_leverage_e18_raw, { places: 2 })}×`
        }
      />
      <Line
        label="Liquidation price"
        before={number(now?.liquidation_price_e18_raw, { places })}
        after={number(after?.position?.liquidation_price_e18_raw, { places })}
      />
      <Line
        label="Fee"
        title={`Maker ${percent(fees.maker_e18_raw, { places: 3 })}, taker ${percent(fees.taker_e18_raw, { places: 3 })}`}
        after={
          after?.fee_e18_raw == null
            ? `${percent(fees.maker_e18_raw, { places: 3 })} / ${percent(fees.taker_e18_raw, { places: 3 })}`
            : `${usd(after.fee_e18_raw, { places: 4 })} USDM`
        }
      />
      <Line
        label="Reserved"
        title="Margin and fee allowance until the order has filled or ended"
        after={usd(after?.reservation?.reserved_margin_e18_raw)}
      />
      {form.reduceOnly || after?.realized_pnl_e18_raw == null || after.realized_pnl_e18_raw === '0' ? null : (
        <Line label="Realizes" after={usd(after.realized_pnl_e18_raw, { sign: true })} />
      )}
    </dl>
  )
}
