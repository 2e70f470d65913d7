/** Notices of own fills, if the visitor has turned them on. */
import type { Fill } from '../../client/responses.ts'
import { number } from '../base/numbers.ts'
import { settings } from '../base/settings.ts'
import { toast } from '../base/toasts.ts'

const known = new Set<string>()
const MOST_KNOWN = 5_000

const STAGES = {
  MATCHED: 'matched, being submitted',
  SUBMITTED: 'submitted to the chain',
  MINED: 'mined',
  CONFIRMED: 'confirmed',
  RETRYING: 'being submitted again after a fork',
  FAILED: 'voided: it does not count',
} as const

export function notifyFills(fills: readonly Fill[]): void {
  for (const fill of fills) {
    const isNew = !known.has(fill.fill_id)
    known.add(fill.fill_id)
    if (known.size > MOST_KNOWN) known.delete(known.values().next().value as string)
    const what = `${fill.side === 'LONG' ? 'Bought' : 'Sold'} ${number(fill.quantity_e18_raw, { places: 8, short: true })} ${fill.symbol}`
    const title = `${what} at ${number(fill.price_e18_raw, { places: 8, short: true })}`
    const kind = fill.status === 'FAILED' ? 'bad' : 'good'
    toast({ id: `fill-${fill.fill_id}`, kind, title, text: STAGES[fill.status] })
    if (!isNew) continue
    if (settings.value.sounds) beep()
    if (settings.value.notifications && document.hidden && Notification.permission === 'granted')
      new Notification(title, { tag: fill.fill_id, body: 'Clearbatch' })
  }
}

let audio: AudioContext | null = null

function beep(): void {
  audio ??= new AudioContext()
  const [tone, volume] = [audio.createOscillator(), audio.createGain()]
  tone.frequency.value = 880
  volume.gain.setValueAtTime(0.08, audio.currentTime)
  volume.gain.exponentialRampToValueAtTime(0.0001, audio.currentTime + 0.15)
  tone.connect(volume).connect(audio.destination)
  tone.start()
  tone.stop(audio.currentTime + 0.15)
}
