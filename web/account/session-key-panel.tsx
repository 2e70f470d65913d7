/** The session key of this browser and all keys of the account. */
import { useEffect, useState } from 'preact/hooks'
import type { PreparedOperation, SessionKey } from '../../client/session-keys.ts'
import { dateTime, longDate } from '../base/times.ts'
import { toast } from '../base/toasts.ts'
import { ReadError } from '../screens/read-error.tsx'
import { useRead } from '../screens/use-read.ts'
import { Dialog } from '../ui/controls.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { type DecodedRequest, decodeRequest, listKeys, prepareRequest, signAndRelay } from './register-key.ts'
import { createKey, forgetKey, keyState, lockKey, markRegistered, unlockKey } from './session-key.ts'
import { requireTrader, trader } from './trader.ts'

interface Pending {
  readonly prepared: PreparedOperation
  readonly decoded: DecodedRequest
}

/** Shown beside the wallet's own window, whose `data` is opaque. */
function RequestDialog({
  pending,
  onClose,
  onDone,
}: {
  pending: Pending
  onClose: () => void
  onDone: () => void
}) {
  const [isSigning, setSigning] = useState(false)
  const { prepared, decoded } = pending
  const sign = async (): Promise<void> => {
    setSigning(true)
    const id = 'session-key'
    toast({ id, kind: 'pending', title: 'Confirm the request in your wallet' })
    try {
      await signAndRelay(prepared)
      if (decoded.operation === 'register') await markRegistered(requireTrader().session.address, decoded.key)
      toast({
        id,
        kind: 'good',
        title: decoded.operation === 'register' ? 'The session key is registered' : 'The key is revoked',
      })
      onDone()
    } catch (error) {
      toast({
        id,
        kind: 'bad',
        title: `Not ${decoded.operation === 'register' ? 'registered' : 'revoked'}`,
        text: (error as Error).message,
      })
    }
    onClose()
  }
  return (
    <Dialog
      title={decoded.operation === 'register' ? 'Register the session key' : 'Revoke a session key'}
      onClose={onClose}
    >
      <p>Your wallet shows this request as bytes. This page has decoded them:</p>
      <dl class="facts" data-testid="decoded">
        <dt>Action</dt>
        <dd>
          {decoded.operation === 'register'
            ? 'register a key for your account'
            : 'revoke a key of your account'}
        </dd>
        <dt>Key</dt>
        <dd class="mono wrap">{decoded.key}</dd>
        {decoded.operation === 'register' ? (
          <>
            <dt>It may</dt>
            <dd>{decoded.permissions.join('; ')}. It cannot withdraw.</dd>
            <dt>Lifetime</dt>
            <dd>
              set by the contract, shown in the list once it is registered; you can revoke it at any time
            </dd>
          </>
        ) : null}
        <dt>Contract</dt>
        <dd class="mono wrap">{decoded.contract}</dd>
        <dt>Sign before</dt>
        <dd>{dateTime(decoded.validUntil)}</dd>
      </dl>
      <button
        type="button"
        class="button primary wide"
        data-testid="sign-request"
        disabled={isSigning}
        onClick={() => void sign()}
      >
        {isSigning ? 'Waiting for the wallet and the chain …' : 'Sign in the wallet'}
      </button>
    </Dialog>
  )
}

function KeyRow({
  entry,
  own,
  onRevoke,
}: {
  entry: SessionKey
  own: string | null
  onRevoke: (address: string) => void
}) {
  const { session_public_address: address, status, expires_at, permissions, revocation_requested } = entry
  return (
    <tr>
      <th scope="row" class="mono">
        {address.slice(0, 10)}…{address.slice(-4)}{' '}
        {address === own ? <b class="own-share own-key">this browser</b> : null}
      </th>
      <td>{revocation_requested ? 'being revoked' : status.toLowerCase()}</td>
      <td>{permissions.join(', ')}</td>
      <td>{longDate(expires_at)}</td>
      <td class="num">
        {status === 'ACTIVE' && !revocation_requested ? (
          <button type="button" class="button small" onClick={() => onRevoke(address)}>
            Revoke
          </button>
        ) : null}
      </td>
    </tr>
  )
}

function OwnKey({ account, onRegister }: { account: string; onRegister: () => void }) {
  const state = keyState.value
  const isHere = state.name === 'ready' || state.name === 'locked'
  return (
    <div class="form">
      <p class="muted">
        A session key signs orders and changes of margin and leverage in this browser, so that your wallet is
        asked once. It cannot withdraw. It is stored encrypted by a key that no script can read, which
        protects it from a copied disk, not from a malicious script in this page.
      </p>
      {state.name === 'ready' ? (
        <p class="up" data-testid="key-ready">
          ● This browser has a registered key.
        </p>
      ) : null}
      {state.name === 'locked' ? <p class="warn">The key of this browser is locked.</p> : null}
      <div class="form-line">
        {isHere ? null : (
          <button type="button" class="button primary" data-testid="register-key" onClick={onRegister}>
            Register a session key
          </button>
        )}
        {state.name === 'ready' ? (
          <button type="button" class="button" onClick={lockKey}>
            Lock
          </button>
        ) : null}
        {state.name === 'locked' ? (
          <button type="button" class="button primary" onClick={() => void unlockKey()}>
            Unlock
          </button>
        ) : null}
        {state.name === 'none' ? null : (
          <button type="button" class="button" onClick={() => void forgetKey(account)}>
            Forget the key
          </button>
        )}
      </div>
    </div>
  )
}

export function SessionKeyPanel({ account }: { account: string }) {
  const [pending, setPending] = useState<Pending | null>(null)
  const isReady = trader.value !== null
  const read = useRead(
    `keys-${account}-${isReady}`,
    () => (isReady ? listKeys() : Promise.resolve(null)),
    15_000,
  )
  const keys = read.value?.session_keys ?? []
  const own = keyState.value.name === 'none' ? null : keyState.value.address
  const active = keys.find(
    ({ session_public_address, status }) => session_public_address === own && status === 'ACTIVE',
  )
  useEffect(() => {
    // Registered from here in an earlier visit, whose answer was lost.
    if (active !== undefined && keyState.value.name === 'unregistered')
      void markRegistered(account, active.session_public_address)
  }, [active?.session_public_address])
  const ask = async (operation: 'register' | 'revoke', address?: string): Promise<void> => {
    try {
      const key = address ?? (await createKey(account))
      const prepared = await prepareRequest(operation, key)
      setPending({ prepared, decoded: decodeRequest(prepared) })
    } catch (error) {
      toast({
        id: 'session-key',
        kind: 'bad',
        title: 'The request cannot be prepared',
        text: (error as Error).message,
      })
    }
  }
  return (
    <section class="panel" aria-label="Session keys" data-testid="session-keys">
      <header class="panel-head">
        <h2>Session key</h2>
      </header>
      <OwnKey account={account} onRegister={() => void ask('register')} />
      <ReadError read={read} />
      {keys.length === 0 ? null : (
        <Scroll label="Session keys">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Status</th>
                <th scope="col">May change</th>
                <th scope="col">Expires</th>
                <th scope="col">
                  <span class="hidden">Revoke</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {keys.map((entry) => (
                <KeyRow
                  key={entry.session_key_id}
                  entry={entry}
                  own={own}
                  onRevoke={(address) => void ask('revoke', address)}
                />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {pending === null ? null : (
        <RequestDialog pending={pending} onClose={() => setPending(null)} onDone={read.again} />
      )}
    </section>
  )
}
