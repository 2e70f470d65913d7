/** The first thing that keeps the visitor from placing the order, with the button that removes it. */

import { canTrade, session } from '../account/session.ts'
import { keyState, unlockKey } from '../account/session-key.ts'
import { Button } from '../ui/controls.tsx'
import type { SetFields } from './ticket-fields.tsx'
import { missingField, type TicketForm } from './ticket-form.ts'
import type { Estimated, Refusal } from './use-estimate.ts'

/** The first thing that keeps the visitor from placing, with what removes it. */
export function Blocked({
  form,
  estimated,
  set,
}: {
  form: TicketForm
  estimated: Estimated
  set: SetFields
}) {
  if (session.value === null)
    return (
      <a class="button primary wide" href="/account">
        Connect to trade
      </a>
    )
  if (!canTrade.value) return <p class="blocked">This API key is read-only.</p>
  if (keyState.value.name === 'locked')
    return (
      <Button class="primary wide" onClick={() => void unlockKey()}>
        Unlock the session key
      </Button>
    )
  if (keyState.value.name !== 'ready')
    return (
      <a class="button primary wide" href="/account">
        Register a session key
      </a>
    )
  const missing = missingField(form)
  if (missing !== null)
    return (
      <p class="blocked" role="status">
        {missing}
      </p>
    )
  const { refusal } = estimated
  if (refusal === null) return null
  return (
    <div class="blocked bad" role="status" data-testid="refusal" data-code={refusal.code}>
      <p>{refusal.message}</p>
      <Remedy refusal={refusal} form={form} set={set} />
    </div>
  )
}

const FIELDS: Readonly<Record<string, (value: string) => Partial<TicketForm>>> = {
  price: (price) => ({ price }),
  trigger_price: (trigger) => ({ trigger }),
  quantity: (size) => ({ size, unit: 'units' }),
  size: (size) => ({ size }),
  leverage: (value) => ({ leverage: Number(value) }),
  take_profit: (takeProfit) => ({ takeProfit }),
  stop_loss: (stopLoss) => ({ stopLoss }),
}

function Remedy({ refusal, set }: { refusal: Refusal; form: TicketForm; set: SetFields }) {
  const { nearest, field, nearestLeverage } = refusal
  const change = field === null ? undefined : FIELDS[field]
  return (
    <>
      {nearest !== null && change !== undefined ? (
        <Button class="small" data-testid="remedy" onClick={() => set(change(nearest))}>
          Use {nearest}
        </Button>
      ) : null}
      {nearestLeverage !== null ? (
        <Button class="small" onClick={() => set({ leverage: nearestLeverage })}>
          Use {nearestLeverage}× leverage
        </Button>
      ) : null}
    </>
  )
}
