/** Rate limits of the account, and the switch that cancels its orders if this browser dies. */

import { useState } from 'preact/hooks'
import { number } from '../base/numbers.ts'
import { countdown } from '../base/times.ts'
import { toast } from '../base/toasts.ts'
import { Button, Head } from '../ui/controls.tsx'
import { ReadError } from '../ui/read-error.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { useRead } from '../ui/use-read.ts'
import { deadMan, setDeadMan } from './dead-man.ts'
import { requireTrader, trader } from './trader.ts'

const CHOICES = [30, 60, 300, 900]

function Switch() {
  const [seconds, setSeconds] = useState(60)
  const { seconds: armed, isOwner, fireAt } = deadMan.value
  const set = (value: number | null): void => {
    setDeadMan(value).catch((error: Error) =>
      toast({ id: 'dead-man', kind: 'bad', title: 'The dead-man switch is unchanged', text: error.message }),
    )
  }
  return (
    <div class="form">
      <h2>Dead-man switch</h2>
      <p class="muted">
        The exchange cancels all your orders unless a visible tab of this browser renews the switch. A hidden
        tab does not renew it.
      </p>
      {armed === null ? (
        <div class="form-line">
          <select
            class="select"
            aria-label="Seconds until the switch fires"
            value={seconds}
            onChange={({ currentTarget }) => setSeconds(Number(currentTarget.value))}
          >
            {CHOICES.map((each) => (
              <option key={each} value={each}>
                {each} seconds
              </option>
            ))}
          </select>
          <Button data-testid="arm" onClick={() => set(seconds)}>
            Turn on
          </Button>
        </div>
      ) : (
        <div class="form-line">
          <span data-testid="armed">
            {armed} s,{' '}
            {isOwner ? `renewed by this tab, fires in ${countdown(fireAt)}` : 'renewed by another tab'}
          </span>
          <Button onClick={() => set(null)}>Turn off</Button>
        </div>
      )}
    </div>
  )
}

export function SafetyPanel() {
  const isReady = trader.value !== null
  const read = useRead(
    `limits-${isReady}`,
    () => (isReady ? requireTrader().account.limits() : Promise.resolve([])),
    5_000,
  )
  return (
    <section class="panel" aria-label="Safety and limits">
      <Switch />
      <ReadError read={read} />
      <Scroll label="Limits">
        <table class="table">
          <Head columns={['Limit', { num: 'Remaining' }, { num: 'Of' }, { num: 'Window' }]} />
          <tbody>
            {(read.value ?? []).map(({ bucket, limit, remaining, window_seconds }) => (
              <tr key={bucket}>
                <th scope="row">{bucket}</th>
                <td class="num">{number(BigInt(remaining) * 10n ** 18n, { places: 0 })}</td>
                <td class="num">{number(BigInt(limit) * 10n ** 18n, { places: 0 })}</td>
                <td class="num">{window_seconds} s</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  )
}
