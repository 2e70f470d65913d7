/** The visitor's choices. */
import type { ComponentChildren } from 'preact'
import { change, settings } from '../base/settings.ts'
import { toast } from '../base/toasts.ts'
import { NodeChoice } from '../proof/node-choice.tsx'
import { Choice } from '../ui/controls.tsx'

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

export function SettingsScreen() {
  const current = settings.value
  return (
    <section class="page narrow-page">
      <h1>Settings</h1>
      <div class="panel settings">
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
          <Choice
            label="Times"
            options={TIMES}
            value={current.times}
            onChange={(times) => change({ times })}
          />
        </Line>
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
      </div>
      <p class="muted">These choices stay in this browser.</p>
    </section>
  )
}
