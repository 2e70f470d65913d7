/** The dead-man switch: the exchange cancels every order unless a tab renews it. One tab owns it (Web Locks). */
import { signal } from '@preact/signals'
import { toast } from '../base/toasts.ts'
import { trader } from './trader.ts'

export interface SwitchState {
  /** Null: off in this browser. */
  readonly seconds: number | null
  /** This tab renews it. */
  readonly isOwner: boolean
  /** As the exchange has answered last. */
  readonly fireAt: string | null
}

const KEY = 'clearbatch.dead-man'
const LOCK = 'clearbatch.dead-man'

const stored = (): number | null => Number(localStorage.getItem(KEY)) || null

export const deadMan = signal<SwitchState>({ seconds: stored(), isOwner: false, fireAt: null })

let renewedAt = 0

/** A hidden tab is slowed down by the browser and does not renew. If the switch fires meanwhile, the page states it. */
async function renew(): Promise<void> {
  const current = trader.value
  const { seconds, isOwner } = deadMan.value
  if (seconds === null || !isOwner || current === null || document.hidden) return
  renewedAt = Date.now()
  try {
    const { fire_at } = await current.orders.cancelAllAfter(seconds)
    deadMan.value = { ...deadMan.value, fireAt: fire_at }
  } catch (error) {
    toast({
      id: 'dead-man',
      kind: 'bad',
      title: 'The dead-man switch was not renewed',
      text: (error as Error).message,
    })
  }
}

let release: (() => void) | null = null

/** Waits until no other tab owns the switch. */
function own(): void {
  if (release !== null || deadMan.value.isOwner) return
  void navigator.locks.request(LOCK, () => {
    deadMan.value = { ...deadMan.value, isOwner: true }
    void renew()
    return new Promise<void>((resolve) => {
      release = () => {
        release = null
        deadMan.value = { ...deadMan.value, isOwner: false }
        resolve()
      }
    })
  })
}

/** Null turns it off, at the exchange as well. */
export async function setDeadMan(seconds: number | null): Promise<void> {
  if (seconds === null) localStorage.removeItem(KEY)
  else localStorage.setItem(KEY, String(seconds))
  deadMan.value = { ...deadMan.value, seconds, fireAt: null }
  if (seconds === null) {
    release?.()
    await trader.value?.orders.cancelAllAfter(0)
    return
  }
  own()
  await renew()
}

addEventListener('storage', ({ key }) => {
  if (key !== KEY) return
  deadMan.value = { ...deadMan.value, seconds: stored() }
  if (stored() === null) release?.()
  else own()
})

document.addEventListener('visibilitychange', () => {
  const { seconds, isOwner, fireAt } = deadMan.value
  if (seconds === null || !isOwner) return
  if (document.hidden) {
    document.title = `Dead-man switch: ${seconds} s · Clearbatch`
    return
  }
  if (fireAt !== null && Date.parse(fireAt) < Date.now())
    toast({
      id: 'dead-man',
      kind: 'bad',
      title: 'The dead-man switch has fired while this tab was hidden',
      text: 'Your orders were cancelled.',
    })
  void renew()
})

if (deadMan.value.seconds !== null) own()

/** Four times within the time after which the switch fires, so that a slow answer does not fire it. */
const TICK_MS = 1_000
setInterval(() => {
  const { seconds } = deadMan.value
  if (seconds !== null && Date.now() - renewedAt >= (seconds * 1_000) / 4) void renew()
}, TICK_MS)
