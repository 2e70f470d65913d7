/** Messages about own fills and about orders that have ended; sounds and notifications if the visitor has turned them on. */
import type { Fill, PlacedOrder } from '../../client/responses.ts'
import { quantity } from '../base/numbers.ts'
import { reasonWords } from '../base/reasons.ts'
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
    const what = `${fill.side === 'LONG' ? 'Bought' : 'Sold'} ${quantity(fill.quantity_e18_raw)} ${fill.symbol}`
    const title = `${what} at ${quantity(fill.price_e18_raw)}`
    const kind = fill.status === 'FAILED' ? 'bad' : 'good'
    toast({ id: `fill-${fill.fill_id}`, kind, title, text: STAGES[fill.status] })
    if (!isNew) continue
    if (settings.value.sounds) beep()
    if (settings.value.notifications && document.hidden && Notification.permission === 'granted')
      new Notification(title, { tag: fill.fill_id, body: 'Clearbatch' })
  }
}

/** Ends that the trader has asked for, or that the toast of a fill shows. */
const EXPECTED: readonly string[] = ['FILLED', 'USER_CANCELLED', 'REPLACED']

/** Ends that a bracket is for, or a closed position. */
const LINKED: readonly string[] = ['ENTRY_ENDED', 'EXIT_TRIGGERED', 'EXIT_FILLED', 'POSITION_CLOSED']

/** Shows why own orders have ended, unless the trader has ended them. */
export function notifyEnds(orders: readonly PlacedOrder[]): void {
  for (const { order_id, side, symbol, status_reason: reason, filled_quantity_e18_raw } of orders) {
    if (reason === null || EXPECTED.includes(reason)) continue
    const isUnfilled = filled_quantity_e18_raw === '0'
    toast({
      id: `end-${order_id}`,
      kind: isUnfilled && !LINKED.includes(reason) ? 'bad' : 'info',
      title: `${side === 'LONG' ? 'Buy' : 'Sell'} order in ${symbol} has ended`,
      text: `${isUnfilled ? 'It has not filled' : 'It has filled in part'}: ${reasonWords(reason)}.`,
    })
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
