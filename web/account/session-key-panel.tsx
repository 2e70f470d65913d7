/** The session key of this browser and all keys of the account. */
import { useEffect, useState } from 'preact/hooks'
import type { PreparedOperation, SessionKey } from '../../client/session-keys.ts'
import { dateTime, longDate } from '../base/times.ts'
import { attempt, toast } from '../base/toasts.ts'
import { Button, Dialog, Head } from '../ui/controls.tsx'
import { ReadError } from '../ui/read-error.tsx'
import { Scroll } from '../ui/scroll.tsx'
import { useRead } from '../ui/use-read.ts'
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
  const isRegistering = decoded.operation === 'register'
  const sign = async (): Promise<void> => {
    setSigning(true)
    const words = {
      id: 'session-key',
      doing: 'Confirm the request in your wallet',
      done: isRegistering ? 'The session key is registered' : 'The key is revoked',
      failed: isRegistering ? 'Not registered' : 'Not revoked',
    }
    await attempt(words, async () => {
      await signAndRelay(prepared)
      if (isRegistering) await markRegistered(requireTrader().session.address, decoded.key)
      onDone()
    })
    onClose()
  }
  return (
    <Dialog title={isRegistering ? 'Register the session key' : 'Revoke a session key'} onClose={onClose}>
      <p>Your wallet shows this request as bytes. This page has decoded them:</p>
      <dl class="facts" data-testid="decoded">
        <dt>Action</dt>
        <dd>{isRegistering ? 'register a key for your account' : 'revoke a key of your account'}</dd>
        <dt>Key</dt>
        <dd class="mono wrap">{decoded.key}</dd>
        {isRegistering ? (
          <>
            <dt>It may</dt>
            <dd>{decoded.permissions.join('; ')}. It cannot withdraw.</dd>
            <dt>Lifetime</dt>
            <dd>30 days from its first registration, by the contract; you can revoke it at any time</dd>
          </>
        ) : null}
        <dt>Contract</dt>
        <dd class="mono wrap">{decoded.contract}</dd>
        <dt>Sign before</dt>
        <dd>{dateTime(decoded.validUntil)}</dd>
      </dl>
      <Button
        class="primary wide"
        data-testid="sign-request"
        disabled={isSigning}
        onClick={() => void sign()}
      >
        {isSigning ? 'Waiting for the wallet and the chain …' : 'Sign in the wallet'}
      </Button>
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
          <Button class="small" onClick={() => onRevoke(address)}>
            Revoke
          </Button>
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
          <Button class="primary" data-testid="register-key" onClick={onRegister}>
            Register a session key
          </Button>
        )}
        {state.name === 'ready' ? <Button onClick={lockKey}>Lock</Button> : null}
        {state.name === 'locked' ? (
          <Button class="primary" onClick={() => void unlockKey()}>
            Unlock
          </Button>
        ) : null}
        {state.name === 'none' ? null : (
          <Button onClick={() => void forgetKey(account)}>Forget the key</Button>
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
  const mine = keys.filter(({ session_public_address }) => session_public_address === own)
  const active = mine.find(({ status }) => status === 'ACTIVE')
  const hasEnded = active === undefined && mine.length > 0
  useEffect(() => {
    // Registered from here in an earlier visit, whose answer was lost.
    if (active !== undefined && keyState.value.name === 'unregistered')
      void markRegistered(account, active.session_public_address)
    // Revoked or expired: the exchange would refuse each of its signatures.
    if (hasEnded) void forgetKey(account)
  }, [active?.session_public_address, hasEnded])
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
            <Head columns={['Key', 'Status', 'May change', 'Expires']}>
              <th scope="col">
                <span class="hidden">Revoke</span>
              </th>
            </Head>
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
