/** The session key of this browser: it signs orders and changes of margin and leverage, so that the wallet signs only once. */
import { signal } from '@preact/signals'
import { settings } from '../base/settings.ts'
import { session } from './session.ts'
import { randomKey, type SessionSigner, sessionSigner } from './session-signer.ts'
import { forget, seal, unseal } from './vault.ts'

interface StoredKey {
  readonly privateKey: string
  readonly address: string
}

export type KeyState =
  | { readonly name: 'none' }
  /** Created here and not registered yet. */
  | { readonly name: 'unregistered'; readonly address: string }
  | { readonly name: 'locked'; readonly address: string }
  | { readonly name: 'ready'; readonly address: string }

export const keyState = signal<KeyState>({ name: 'none' })

let unlocked: SessionSigner | null = null
let lastInput = Date.now()

const nameOf = (account: string): string => `session-key:${account}`
const registeredKey = (account: string): string => `clearbatch.registered:${account}`

/** Throws if the page has no key that may sign now. */
export function currentSigner(): SessionSigner {
  if (unlocked !== null && keyState.value.name === 'ready') return unlocked
  if (keyState.value.name === 'locked') throw new Error('the session key is locked: unlock it first')
  throw new Error('register a session key first')
}

/** Reads the key of the account that is signed in. */
export async function loadKey(account: string): Promise<void> {
  const stored = await unseal<StoredKey>(nameOf(account))
  if (stored === null) {
    unlocked = null
    keyState.value = { name: 'none' }
    return
  }
  unlocked = sessionSigner(stored.privateKey)
  const { address } = stored
  const isRegistered = localStorage.getItem(registeredKey(account)) === address
  keyState.value = { name: isRegistered ? 'ready' : 'unregistered', address }
}

/** Another tab may have created one meanwhile: both tabs then use that key. */
export async function createKey(account: string): Promise<string> {
  return navigator.locks.request(`clearbatch.key:${account}`, async () => {
    await loadKey(account)
    if (keyState.value.name !== 'none') return keyState.value.address
    const privateKey = randomKey()
    const { address } = sessionSigner(privateKey)
    await seal(nameOf(account), { privateKey, address } satisfies StoredKey)
    await loadKey(account)
    return address
  })
}

export async function markRegistered(account: string, address: string): Promise<void> {
  localStorage.setItem(registeredKey(account), address)
  await loadKey(account)
}

/** The private key is gone from this browser; its registration on the chain remains until it expires or is revoked. */
export async function forgetKey(account: string): Promise<void> {
  await forget(nameOf(account))
  localStorage.removeItem(registeredKey(account))
  unlocked = null
  keyState.value = { name: 'none' }
}

export function lockKey(): void {
  if (keyState.value.name !== 'ready') return
  unlocked = null
  keyState.value = { name: 'locked', address: keyState.value.address }
}

export async function unlockKey(): Promise<void> {
  lastInput = Date.now()
  if (session.value !== null) await loadKey(session.value.address)
}

for (const type of ['pointerdown', 'keydown'] as const)
  addEventListener(type, () => {
    lastInput = Date.now()
  })
setInterval(() => {
  if (Date.now() - lastInput > settings.value.idleLockMinutes * 60_000) lockKey()
}, 5_000)

addEventListener('storage', ({ key }) => {
  const account = session.value?.address
  if (account !== undefined && key === registeredKey(account)) void loadKey(account)
})
