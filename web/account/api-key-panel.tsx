/** The account's API key, for programs: shown once. */
import { useState } from 'preact/hooks'
import type { Challenge, KeyScope, RotatedKey } from '../../client/api-keys.ts'
import { dateTime } from '../base/times.ts'
import { toast } from '../base/toasts.ts'
import { ReadError } from '../screens/read-error.tsx'
import { useRead } from '../screens/use-read.ts'
import { Choice } from '../ui/controls.tsx'
import { requireTrader, trader } from './trader.ts'
import { ownerWallet, signText } from './wallet.ts'

const SCOPES = [
  { value: 'trade', text: 'May trade' },
  { value: 'read', text: 'Read-only' },
] as const

async function rotate(scope: KeyScope): Promise<RotatedKey> {
  const { http } = requireTrader()
  const { challenge_id, message } = await http.post<Challenge>('/v0/auth/challenge', {
    action: 'rotate_api_key',
  })
  const signature = await signText(await ownerWallet(), message)
  const body = { challenge_id, signature, scope }
  return http.send({ method: 'POST', path: '/v0/me/api-key/rotate', body, idempotent: false })
}

export function ApiKeyPanel() {
  const [scope, setScope] = useState<KeyScope>('trade')
  const [created, setCreated] = useState<string | null>(null)
  const isReady = trader.value !== null
  const read = useRead(
    `me-${isReady}`,
    () => (isReady ? requireTrader().account.me() : Promise.resolve(null)),
    null,
  )
  const current = read.value?.api_key ?? null
  const create = async (): Promise<void> => {
    const id = 'api-key'
    toast({ id, kind: 'pending', title: 'Confirm the text in your wallet' })
    try {
      setCreated((await rotate(scope)).api_key)
      toast({ id, kind: 'good', title: 'The API key is created', text: 'It is shown once.' })
      read.again()
    } catch (error) {
      toast({ id, kind: 'bad', title: 'No key was created', text: (error as Error).message })
    }
  }
  return (
    <section class="panel" aria-label="API key">
      <header class="panel-head">
        <h2>API key</h2>
      </header>
      <div class="form">
        <ReadError read={read} />
        <p class="muted">
          {current === null
            ? 'For programs. The account has none yet.'
            : `${current.prefix}… (${current.scope}), created ${dateTime(current.created_at)}, last used ${dateTime(current.last_used_at)}. A new key replaces it.`}
        </p>
        <Choice label="Scope" options={SCOPES} value={scope} onChange={setScope} />
        <div class="form-line">
          <button type="button" class="button" onClick={() => void create()}>
            {current === null ? 'Create an API key' : 'Replace the API key'}
          </button>
        </div>
        {created === null ? null : (
          <>
            <p>Copy it now; the exchange stores only its hash.</p>
            <output class="secret mono" data-testid="created-key">
              {created}
            </output>
            <div class="form-line">
              <button
                type="button"
                class="button small"
                onClick={() => void navigator.clipboard.writeText(created)}
              >
                Copy
              </button>
              <button type="button" class="button small" onClick={() => setCreated(null)}>
                I have stored it
              </button>
            </div>
          </>
        )}
      </div>
    </section>
  )
}
