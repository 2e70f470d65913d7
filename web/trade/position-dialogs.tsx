/** Margin, leverage and exits of a position. */
import { useState } from 'preact/hooks'
import type { PlacedOrder, Position } from '../../client/responses.ts'
import { balance } from '../account/live-account.ts'
import { fromE18, number, parsed, placesOf, usd } from '../base/numbers.ts'
import { marketById } from '../feed/markets.ts'
import { Button, Choice, Dialog } from '../ui/controls.tsx'
import { addMargin, changeLeverage, exitsOf, removeMargin, setExits } from './position-actions.ts'
import { Field } from './ticket-fields.tsx'
import { exitKind } from './ticket-form.ts'

interface Props {
  readonly position: Position
  readonly onClose: () => void
}

const WAYS = [
  { value: 'add', text: 'Add' },
  { value: 'remove', text: 'Remove' },
] as const

export function MarginDialog({ position, onClose }: Props) {
  const [way, setWay] = useState<'add' | 'remove'>('add')
  const [amount, setAmount] = useState('')
  const isValid = (parsed(amount) ?? 0n) > 0n
  const send = (): void => {
    const run = way === 'add' ? addMargin : removeMargin
    void run(position.market_id, amount)
    onClose()
  }
  return (
    <Dialog title={`Margin of ${position.symbol}`} onClose={onClose}>
      <Choice label="Direction" options={WAYS} value={way} onChange={setWay} />
      <p class="available">
        <span>{way === 'add' ? 'Available' : 'Margin of the position'}</span>
        <span>{usd(way === 'add' ? balance.value?.available_e18_raw : position.margin_e18_raw)} USDM</span>
      </p>
      <Field label="Amount" value={amount} unit="USDM" testId="margin-amount" onInput={setAmount} />
      <Button class="primary wide" data-testid="margin-send" disabled={!isValid} onClick={send}>
        {way === 'add' ? 'Add margin' : 'Remove margin'}
      </Button>
    </Dialog>
  )
}

export function LeverageDialog({ position, onClose }: Props) {
  const [leverage, setLeverage] = useState(position.leverage)
  const most = marketById(position.market_id)?.max_leverage ?? position.leverage
  return (
    <Dialog title={`Leverage of ${position.symbol}`} onClose={onClose}>
      <label class="leverage">
        <span>Leverage</span>
        <input
          type="range"
          class="range"
          min="1"
          max={most}
          value={leverage}
          onInput={({ currentTarget }) => setLeverage(Number(currentTarget.value))}
        />
        <output>{leverage}×</output>
      </label>
      <p class="muted">
        Your open orders in this market are cancelled first. A lower leverage moves margin into the position,
        a higher one out of it.
      </p>
      <Button
        class="primary wide"
        disabled={leverage === position.leverage}
        onClick={() => {
          void changeLeverage(position.market_id, leverage)
          onClose()
        }}
      >
        Set {leverage}×
      </Button>
    </Dialog>
  )
}

/** The trigger of the exit that the position has, as the fields show it. */
const triggerOf = (exits: readonly PlacedOrder[], kind: ReturnType<typeof exitKind>): string => {
  const found = exits.find(({ order_type }) => exitKind(order_type) === kind)
  return found === undefined ? '' : fromE18(BigInt(found.trigger_price_e18_raw))
}

export function ExitDialog({ position, onClose }: Props) {
  const [exits] = useState(() => exitsOf(position.market_id))
  const [takeProfit, setTakeProfit] = useState(() => triggerOf(exits, 'take_profit'))
  const [stopLoss, setStopLoss] = useState(() => triggerOf(exits, 'stop_loss'))
  const market = marketById(position.market_id)
  if (market === undefined) return null
  const places = placesOf(market.tick_size_e18_raw)
  const isEmpty = takeProfit === '' && stopLoss === ''
  const isValid = [takeProfit, stopLoss].every((text) => text === '' || (parsed(text) ?? 0n) > 0n)
  return (
    <Dialog title={`Take profit and stop loss of ${position.symbol}`} onClose={onClose}>
      <p class="available">
        <span>Entry · mark</span>
        <span>
          {number(position.entry_price_e18_raw, { places })} ·{' '}
          {number(position.mark_price_e18_raw, { places })}
        </span>
      </p>
      <Field
        label="Take profit at mark"
        value={takeProfit}
        unit="USDM"
        testId="take-profit"
        onInput={setTakeProfit}
      />
      <Field
        label="Stop loss at mark"
        value={stopLoss}
        unit="USDM"
        testId="stop-loss"
        onInput={setStopLoss}
      />
      <p class="muted">
        Market orders that close the whole position. They are linked: when one has filled or the position is
        closed, the exchange ends the other. An empty field removes its order.
      </p>
      <Button
        class="primary wide"
        data-testid="exits-send"
        disabled={!isValid || (isEmpty && exits.length === 0)}
        onClick={() => {
          void setExits(market, position, { takeProfit, stopLoss })
          onClose()
        }}
      >
        {isEmpty ? 'Remove' : 'Set'}
      </Button>
    </Dialog>
  )
}
