/** The signed-in account, shared by all tabs of this browser. */
import { computed, signal } from '@preact/signals'
import { createHttpSession, type HttpSession } from '../../client/http-session.ts'
import type { Me } from '../../client/responses.ts'
import { config } from '../base/config.ts'
import { toast } from '../base/toasts.ts'
import { forget, seal, unseal } from './vault.ts'

export interface Session {
  /** Address in lower case. */
  readonly address: string
  readonly userId: number
  /** Value of the Authorization header. */
  readonly authorization: string
  /** Unix milliseconds; null for an API key. */
  readonly expiresAt: number | null
  readonly scope: 'trade' | 'read'
}

export const session = signal<Session | null>(null)
/** False until the stored session was read. */
export const isSessionKnown = signal(false)
export const canTrade = computed(() => session.value?.scope === 'trade')

const NAME = 'session'
const channel = new BroadcastChannel('clearbatch.session')

/**
 * Exceeds the time for which the exchange waits for the chain, so that the page shows the exchange's answer instead of
 * a time-out.
 */
const TIMEOUT_MS = 15_000

export const httpOf = ({ authorization }: Pick<Session, 'authorization'>): HttpSession =>
  createHttpSession({ baseUrl: config.apiUrl, authorization, timeoutMs: TIMEOUT_MS })

/** Throws `ClearbatchError` if the exchange refuses the credential. */
export async function begin(authorization: string, expiresAt: number | null): Promise<Session> {
  const me = await httpOf({ authorization }).get<Me>('/v0/me')
  const begun = {
    address: me.address.toLowerCase(),
    userId: me.user_id,
    authorization,
    expiresAt,
    scope: me.scope,
  }
  await seal(NAME, begun)
  session.value = begun
  channel.postMessage('changed')
  return begun
}

/** Ends the session in every tab and shows `reason`. */
export async function end(reason: string): Promise<void> {
  if (session.value === null) return
  session.value = null
  await forget(NAME)
  channel.postMessage('changed')
  toast({ id: 'session', kind: 'info', title: 'Signed out', text: reason })
}

async function restore(): Promise<void> {
  const stored = await unseal<Session>(NAME).catch(() => null)
  const isOver = stored?.expiresAt != null && stored.expiresAt <= Date.now()
  if (isOver) await forget(NAME)
  session.value = isOver ? null : stored
  isSessionKnown.value = true
}

channel.onmessage = () => void restore()

export async function startSession(): Promise<void> {
  await restore()
  setInterval(() => {
    const { expiresAt } = session.value ?? { expiresAt: null }
    if (expiresAt !== null && expiresAt <= Date.now())
      void end('The sign-in has expired. Sign in again to trade.')
  }, 5_000)
}
