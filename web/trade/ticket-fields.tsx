/** The input fields of the ticket. */
import type { Market } from '../../client/responses.ts'
import { ORDER_TYPES, type OrderType } from '../../domain/orders/order.ts'
import { Choice } from '../ui/controls.tsx'
import { typeWords } from './order-actions.ts'
import { hasFlags, isReducing, type SizeUnit, type TicketForm } from './ticket-form.ts'
import type { Refusal } from './use-estimate.ts'

const MAIN_TYPES = [
  { value: 'LIMIT', text: 'Limit' },
  { value: 'MARKET', text: 'Market' },
  { value: 'MORE', text: 'Trigger' },
] as const

const CONDITIONAL = ORDER_TYPES.filter((type) => type !== 'LIMIT' && type !== 'MARKET')

export type SetFields = (changes: Partial<TicketForm>) => void

interface FieldProps {
  readonly label: string
  readonly value: string
  readonly unit: string
  readonly onInput: (value: string) => void
  readonly invalid?: boolean
  readonly testId?: string
}

export function Field({ label, value, unit, onInput, invalid = false, testId }: FieldProps) {
  return (
    <label class={`field ${invalid ? 'invalid' : ''}`}>
      <span class="field-label">{label}</span>
      <input
        inputMode="decimal"
        autoComplete="off"
        value={value}
        aria-invalid={invalid}
        data-testid={testId}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      <span class="field-unit">{unit}</span>
    </label>
  )
}

export function TypeChoice({ form, set }: { form: TicketForm; set: SetFields }) {
  const isMain = form.type === 'LIMIT' || form.type === 'MARKET'
  return (
    <>
      <Choice
        label="Order type"
        class="underlined"
        options={MAIN_TYPES}
        value={isMain ? (form.type as 'LIMIT' | 'MARKET') : 'MORE'}
        onChange={(value) => set({ type: value === 'MORE' ? 'STOP_MARKET' : value })}
      />
      {isMain ? null : (
        <select
          class="select"
          aria-label="Trigger order type"
          value={form.type}
          onChange={({ currentTarget }) => set({ type: currentTarget.value as OrderType })}
        >
          {CONDITIONAL.map((type) => (
            <option key={type} value={type}>
              {typeWords(type)}
            </option>
          ))}
        </select>
      )}
    </>
  )
}

const UNITS: readonly SizeUnit[] = ['units', 'notional', 'available_margin']

export function SizeFields({
  form,
  set,
  market,
  refusal,
}: {
  form: TicketForm
  set: SetFields
  market: Market
  refusal: Refusal | null
}) {
  const base = market.symbol.split('-')[0] ?? 'units'
  const names = { units: base, notional: 'USDM', available_margin: '%' }
  const invalid = refusal?.field === 'quantity' || refusal?.field === 'size'
  return (
    <>
      <div class="field-row">
        <Field
          label="Size"
          value={form.size}
          unit=""
          invalid={invalid}
          testId="size"
          onInput={(size) => set({ size })}
        />
        <select
          class="select unit"
          aria-label="Size unit"
          value={form.unit}
          onChange={({ currentTarget }) => set({ unit: currentTarget.value as SizeUnit, size: '' })}
        >
          {UNITS.map((unit) => (
            <option key={unit} value={unit}>
              {names[unit]}
            </option>
          ))}
        </select>
      </div>
      <input
        type="range"
        class="range"
        min="0"
        max="100"
        step="1"
        aria-label={isReducing(form) ? 'Per cent of the position' : 'Per cent of the available balance'}
        value={form.unit === 'available_margin' ? form.size || '0' : '0'}
        onInput={({ currentTarget }) => set({ unit: 'available_margin', size: currentTarget.value })}
      />
      {isReducing(form) ? null : (
        <label class="leverage">
          <span>Leverage</span>
          <input
            type="range"
            class="range"
            min="1"
            max={market.max_leverage}
            step="1"
            value={form.leverage}
            onInput={({ currentTarget }) => set({ leverage: Number(currentTarget.value) })}
          />
          <output>{form.leverage}×</output>
        </label>
      )}
    </>
  )
}

function FlagFields({ form, set }: { form: TicketForm; set: SetFields }) {
  if (!hasFlags(form)) return null
  return (
    <>
      <label class="check" title="Refused if it would take from the book; it always pays the maker fee">
        <input
          type="checkbox"
          checked={form.postOnly}
          onChange={({ currentTarget }) => set({ postOnly: currentTarget.checked, isIoc: false })}
        />
        Post only
      </label>
      <label class="check" title="Immediate or cancel: takes part in one batch, and its rest is cancelled">
        <input
          type="checkbox"
          checked={form.isIoc}
          onChange={({ currentTarget }) => set({ isIoc: currentTarget.checked, postOnly: false })}
        />
        IOC
      </label>
    </>
  )
}

interface BracketFieldsProps {
  readonly form: TicketForm
  readonly set: SetFields
  readonly invalid: string | null
}

export function BracketFields({ form, set, invalid }: BracketFieldsProps) {
  return (
    <>
      <div class="check-row">
        <label class="check">
          <input
            type="checkbox"
            checked={isReducing(form)}
            disabled={form.type.startsWith('TAKE_PROFIT') || form.type.startsWith('STOP_LOSS')}
            onChange={({ currentTarget }) => set({ reduceOnly: currentTarget.checked, hasBracket: false })}
          />
          Reduce only
        </label>
        {isReducing(form) ? null : (
          <label class="check">
            <input
              type="checkbox"
              checked={form.hasBracket}
              onChange={({ currentTarget }) => set({ hasBracket: currentTarget.checked })}
            />
            TP / SL
          </label>
        )}
        <FlagFields form={form} set={set} />
      </div>
      {form.hasBracket && !isReducing(form) ? (
        <>
          <Field
            label="Take profit"
            value={form.takeProfit}
            unit="USDM"
            invalid={invalid === 'take_profit'}
            onInput={(takeProfit) => set({ takeProfit })}
          />
          <Field
            label="Stop loss"
            value={form.stopLoss}
            unit="USDM"
            invalid={invalid === 'stop_loss'}
            onInput={(stopLoss) => set({ stopLoss })}
          />
        </>
      ) : null}
    </>
  )
}
