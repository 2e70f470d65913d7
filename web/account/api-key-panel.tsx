/** The account's API key, for programs: shown once. */
import { useState } from 'preact/hooks'
import type { Challenge, KeyScope, RotatedKey } from '../../client/api-keys.ts'
import { dateTime } from '../base/times.ts'
import { attempt } from '../base/toasts.ts'
import { Button, Choice } from '../ui/controls.tsx'
import { ReadError } from '../ui/read-error.tsx'
import { useRead } from '../ui/use-read.ts'
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
    const words = {
      id: 'api-key',
      doing: 'Confirm the text in your wallet',
      done: 'The API key is created',
      failed: 'No key was created',
    }
    const rotated = await attempt(words, () => rotate(scope))
    if (rotated === null) return
    setCreated(rotated.api_key)
    read.again()
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
          <Button onClick={() => void create()}>
            {current === null ? 'Create an API key' : 'Replace the API key'}
          </Button>
        </div>
        {created === null ? null : (
          <>
            <p>Copy it now; the exchange stores only its hash.</p>
            <output class="secret mono" data-testid="created-key">
              {created}
            </output>
            <div class="form-line">
              <Button class="small" onClick={() => void navigator.clipboard.writeText(created)}>
                Copy
              </Button>
              <Button class="small" onClick={() => setCreated(null)}>
                I have stored it
              </Button>
            </div>
          </>
        )}
      </div>
    </section>
  )
}
