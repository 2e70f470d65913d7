/** The visitor's choices. */
import type { ComponentChildren } from 'preact'
import { session } from '../account/session.ts'
import { change, settings } from '../base/settings.ts'
import { toast } from '../base/toasts.ts'
import { NodeChoice } from '../proof/node-choice.tsx'
import { Button, Choice } from '../ui/controls.tsx'
import { loadTrading } from '../ui/lazy.tsx'

const THEMES = [
  { value: 'system', text: 'System' },
  { value: 'dark', text: 'Dark' },
  { value: 'light', text: 'Light' },
] as const

const COLOURS = [
  { value: 'standard', text: 'Green and red' },
  { value: 'colour-blind', text: 'Blue and orange' },
] as const

const TIMES = [
  { value: 'local', text: 'Local' },
  { value: 'utc', text: 'UTC' },
] as const

const MINUTES = [5, 15, 30, 60, 240]

function Line({ label, note, children }: { label: string; note?: string; children: ComponentChildren }) {
  return (
    <div class="setting">
      <div>
        <h2>{label}</h2>
        {note === undefined ? null : <p class="muted">{note}</p>}
      </div>
      {children}
    </div>
  )
}

function Toggle({
  label,
  checked,
  onChange,
}: {
  label: string
  checked: boolean
  onChange: (checked: boolean) => void
}) {
  return (
    <input
      type="checkbox"
      class="toggle"
      role="switch"
      aria-checked={checked}
      aria-label={label}
      checked={checked}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
  )
}

async function allowNotifications(wanted: boolean): Promise<void> {
  if (!wanted) return change({ notifications: false })
  const isAllowed = (await Notification.requestPermission()) === 'granted'
  change({ notifications: isAllowed })
  if (!isAllowed)
    toast({
      id: 'notifications',
      kind: 'bad',
      title: 'The browser does not allow notifications for this page',
    })
}

/** Only for a trader, for whom the module of the key is loaded anyway. */
function ForgetKey() {
  if (session.value === null) return null
  const forget = async (): Promise<void> => {
    const { forgetSessionKey } = await loadTrading()
    await forgetSessionKey()
    toast({ id: 'session-key', kind: 'good', title: 'This browser has forgotten the session key' })
  }
  return (
    <Line
      label="Session key"
      note="Forgetting it removes it from this browser. On the chain it stays valid until you revoke it or it expires."
    >
      <Button onClick={() => void forget()}>Forget the key</Button>
    </Line>
  )
}

function Looks() {
  const current = settings.value
  return (
    <>
      <Line label="Theme">
        <Choice
          label="Theme"
          options={THEMES}
          value={current.theme}
          onChange={(theme) => change({ theme })}
        />
      </Line>
      <Line label="Colours of gains and losses">
        <Choice
          label="Colours"
          options={COLOURS}
          value={current.colours}
          onChange={(colours) => change({ colours })}
        />
      </Line>
      <Line label="Times">
        <Choice label="Times" options={TIMES} value={current.times} onChange={(times) => change({ times })} />
      </Line>
      <Line
        label="Price flash"
        note="The last price lights up as it changes, unless your system asks for less motion."
      >
        <Toggle
          label="Price flash"
          checked={current.priceFlash}
          onChange={(priceFlash) => change({ priceFlash })}
        />
      </Line>
    </>
  )
}

function KeyLock() {
  const current = settings.value
  return (
    <Line
      label="Lock the session key"
      note="After this time without input, the key leaves the memory of this tab."
    >
      <select
        class="select"
        aria-label="Lock after"
        value={current.idleLockMinutes}
        onChange={({ currentTarget }) => change({ idleLockMinutes: Number(currentTarget.value) })}
      >
        {MINUTES.map((each) => (
          <option key={each} value={each}>
            {each} minutes
          </option>
        ))}
      </select>
    </Line>
  )
}

export function SettingsScreen() {
  const current = settings.value
  return (
    <section class="page narrow-page">
      <h1>Settings</h1>
      <div class="panel settings">
        <Looks />
        <Line
          label="Node for proofs"
          note="Your browser asks this node for the settlement transactions. Until you choose one, no proof turns green."
        >
          <NodeChoice />
        </Line>
        <Line label="Confirm orders" note="Show each order once more before it is signed.">
          <Toggle
            label="Confirm orders"
            checked={current.confirmOrders}
            onChange={(confirmOrders) => change({ confirmOrders })}
          />
        </Line>
        <Line label="Notifications" note="Of fills while this tab is in the background.">
          <Toggle
            label="Notifications"
            checked={current.notifications}
            onChange={(wanted) => void allowNotifications(wanted)}
          />
        </Line>
        <Line label="Sounds" note="A tone at each fill.">
          <Toggle label="Sounds" checked={current.sounds} onChange={(sounds) => change({ sounds })} />
        </Line>
        <KeyLock />
        <ForgetKey />
      </div>
      <p class="muted">These choices stay in this browser.</p>
    </section>
  )
}
