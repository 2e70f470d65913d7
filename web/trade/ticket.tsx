/** The order ticket: what to trade, what it would do, and the one reason that forbids it. */
import { useEffect, useState } from 'preact/hooks'
import type { Market } from '../../client/responses.ts'
import { isMarketType } from '../../domain/orders/order.ts'
import { balance, positionIn } from '../account/live-account.ts'
import { canTrade, session } from '../account/session.ts'
import { keyState } from '../account/session-key.ts'
import { trader } from '../account/trader.ts'
import { fromE18, number, placesOf, usd } from '../base/numbers.ts'
import { settings } from '../base/settings.ts'
import { feedState } from '../feed/connection.ts'
import { book } from '../feed/market-feed.ts'
import { prices } from '../feed/markets.ts'
import { Button, Choice, Dialog } from '../ui/controls.tsx'
import { place, placeBracket } from './order-actions.ts'
import { Blocked } from './ticket-blocked.tsx'
import { BracketFields, Field, type SetFields, SizeFields, TypeChoice } from './ticket-fields.tsx'
import {
  emptyForm,
  estimateRequest,
  exitKind,
  exitOrders,
  missingField,
  nearestMakerPrice,
  needsPrice,
  needsTrigger,
  orderOf,
  type TicketForm,
} from './ticket-form.ts'
import { describeTicket, Preview } from './ticket-preview.tsx'
import { ticketPrice } from './ticket-state.ts'
import { bracketRefusal, type Refusal, refusalOf, useEstimate } from './use-estimate.ts'

const SIDES = [
  { value: 'LONG', text: 'Buy / long' },
  { value: 'SHORT', text: 'Sell / short' },
] as const

/** Refusals of the exchange itself go to `onRefused`. */
function submit(
  market: Market,
  form: TicketForm,
  quantity: bigint,
  onRefused: (refusal: Refusal) => void,
): Promise<boolean> {
  const entry = orderOf(market.market_id, form, quantity)
  if (!form.hasBracket) return place(entry, (error) => onRefused(refusalOf(error)))
  const against = form.side === 'LONG' ? 'SHORT' : 'LONG'
  const exits = exitOrders(market, against, quantity, form.leverage, form)
  const kinds = exits.map(({ type }) => exitKind(type))
  return placeBracket([entry, ...exits], {
    title: 'Order placed with its exits',
    onRefused: (error) => onRefused(bracketRefusal(error, kinds)),
  })
}

/** A price that was clicked in the book goes into the field that the type of the order has. */
function useClickedPrice({ type }: TicketForm, set: SetFields): void {
  useEffect(() => {
    const clicked = ticketPrice.value
    if (clicked === null) return
    ticketPrice.value = null
    if (type === 'MARKET') set({ type: 'LIMIT', price: clicked })
    else if (isMarketType(type)) set({ trigger: clicked })
    else set({ price: clicked })
  }, [ticketPrice.value])
}

function Holdings({ market }: { market: Market }) {
  const size = positionIn(market.market_id)?.size_e18_raw
  return (
    <>
      <p class="available">
        <span>Available</span>
        <span>{usd(balance.value?.available_e18_raw)} USDM</span>
      </p>
      {size === undefined ? null : (
        <p class="available">
          <span>Position</span>
          <span>{number(size, { places: placesOf(market.step_size_e18_raw), sign: true })}</span>
        </p>
      )}
    </>
  )
}

interface PriceFieldsProps {
  readonly market: Market
  readonly form: TicketForm
  readonly set: SetFields
  readonly invalid: string | null
}

function PriceFields({ market, form, set, invalid }: PriceFieldsProps) {
  const last = prices.value.get(market.market_id)?.last_price_e18_raw ?? market.last_price_e18_raw
  return (
    <>
      {needsTrigger(form) ? (
        <Field
          label="Trigger (mark)"
          value={form.trigger}
          unit="USDM"
          testId="trigger"
          invalid={invalid === 'trigger_price'}
          onInput={(trigger) => set({ trigger })}
        />
      ) : null}
      {needsPrice(form) ? (
        <div class="field-row">
          <Field
            label="Price"
            value={form.price}
            unit="USDM"
            testId="price"
            invalid={invalid === 'price'}
            onInput={(price) => set({ price })}
          />
          <Button
            class="small"
            disabled={last === null}
            onClick={() => last !== null && set({ price: fromE18(BigInt(last)) })}
          >
            Last
          </Button>
        </div>
      ) : null}
    </>
  )
}

/** The exchange decides again when the order arrives: the book may have moved, and own or settling orders count too. */
function crossing({ tick_size_e18_raw: tick }: Market, form: TicketForm): Refusal | null {
  if (feedState.value !== 'live') return null
  const [bid, ask] = [book.value.bids[0], book.value.asks[0]]
  const nearest = nearestMakerPrice(form, BigInt(tick), {
    bid: bid === undefined ? null : BigInt(bid.price_e18_raw),
    ask: ask === undefined ? null : BigInt(ask.price_e18_raw),
  })
  if (nearest === null) return null
  return {
    code: 'WOULD_TAKE',
    message: 'The post-only order crosses an earlier limit order and could take.',
    field: 'price',
    nearest: fromE18(nearest),
    nearestLeverage: null,
  }
}

/** The form, and what becomes of it when it is sent. `quantity`: as the exchange computes it; null while it does not accept the order. */
function useTicket(market: Market) {
  const [form, setForm] = useState<TicketForm>(() => emptyForm(market.max_leverage))
  const [isSending, setSending] = useState(false)
  const [isConfirming, setConfirming] = useState(false)
  /** Why the exchange has refused the order as it stands in the form. */
  const [refused, setRefused] = useState<Refusal | null>(null)
  const set: SetFields = (changes) => {
    setRefused(null)
    setForm((before) => ({ ...before, ...changes }))
  }
  useClickedPrice(form, set)
  const isComplete = missingField(form) === null
  const isAsked = session.value !== null && trader.value !== null && isComplete
  const answer = useEstimate(isAsked ? estimateRequest(market.market_id, form) : null)
  const estimated = { ...answer, refusal: answer.refusal ?? crossing(market, form) ?? refused }
  const mayPlace = estimated.refusal === null && keyState.value.name === 'ready' && canTrade.value
  const quantity = (mayPlace && isComplete && estimated.estimate?.estimate?.quantity_e18_raw) || null
  const send = async (): Promise<void> => {
    if (quantity === null) return
    setConfirming(false)
    setSending(true)
    try {
      const isPlaced = await submit(market, form, BigInt(quantity), setRefused)
      if (isPlaced) set({ size: '', hasBracket: false, takeProfit: '', stopLoss: '' })
    } finally {
      setSending(false)
    }
  }
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    if (quantity === null || isSending) return
    if (settings.value.confirmOrders) setConfirming(true)
    else void send()
  }
  return { form, set, estimated, quantity, isSending, isConfirming, setConfirming, send, onSubmit }
}

export function Ticket({ market }: { market: Market }) {
  const ticket = useTicket(market)
  const { form, set, estimated, quantity, isSending } = ticket
  const way = form.side === 'LONG' ? 'buy' : 'sell'
  return (
    <section class="panel ticket" aria-label="Order ticket" data-testid="ticket">
      <form onSubmit={ticket.onSubmit}>
        <Choice
          label="Side"
          class="sides"
          options={SIDES}
          value={form.side}
          onChange={(side) => set({ side })}
        />
        <TypeChoice form={form} set={set} />
        <Holdings market={market} />
        <PriceFields market={market} form={form} set={set} invalid={estimated.refusal?.field ?? null} />
        <SizeFields form={form} set={set} market={market} refusal={estimated.refusal} />
        <BracketFields form={form} set={set} invalid={estimated.refusal?.field ?? null} />
        <Blocked form={form} estimated={estimated} set={set} />
        {quantity !== null || isSending ? (
          <button type="submit" class={`button wide ${way}`} data-testid="place" disabled={isSending}>
            {isSending ? 'Placing …' : `${form.side === 'LONG' ? 'Buy' : 'Sell'} ${market.symbol}`}
          </button>
        ) : null}
        <Preview market={market} form={form} estimated={estimated} />
      </form>
      {ticket.isConfirming && quantity !== null ? (
        <Dialog title="Confirm the order" onClose={() => ticket.setConfirming(false)}>
          <p>{describeTicket(market, form, quantity)}</p>
          <button type="button" class={`button wide ${way}`} onClick={() => void ticket.send()}>
            Confirm
          </button>
        </Dialog>
      ) : null}
    </section>
  )
}
