/** Sign-in for a visitor; keys, funds and safety for an account. */

import { useState } from 'preact/hooks'
import { config } from '../base/config.ts'
import { toast } from '../base/toasts.ts'
import { Button } from '../ui/controls.tsx'
import '../style/account.css'
import { ApiKeyPanel } from './api-key-panel.tsx'
import { FundsPanel } from './funds-panel.tsx'
import { SafetyPanel } from './safety-panel.tsx'
import { begin, end, session } from './session.ts'
import { SessionKeyPanel } from './session-key-panel.tsx'
import { startSignIn } from './sign-in.ts'
import { SignedInScreen } from './signed-in.tsx'
import { announced, connect, wallet } from './wallet.ts'

function Wallets() {
  const list = announced.value
  const run = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work
    } catch (error) {
      toast({
        id: 'wallet',
        kind: 'bad',
        title: 'The wallet is not connected',
        text: (error as Error).message,
      })
    }
  }
  return (
    <div class="form">
      <h2>{session.value === null ? '1. Wallet' : 'Wallet'}</h2>
      {list.length === 0 ? (
        <p class="note">
          This browser has no wallet that announces itself (EIP-6963). Install one and load the page again.
        </p>
      ) : null}
      {list.map((each) => (
        <Button
          class="wallet"
          key={each.info.uuid}
          data-testid="wallet"
          onClick={() => void run(connect(each))}
        >
          {/^data:image\//.test(each.info.icon) ? (
            <img src={each.info.icon} alt="" width="20" height="20" />
          ) : null}
          {each.info.name}
          {wallet.value?.info.uuid === each.info.uuid ? <span class="up">connected</span> : null}
        </Button>
      ))}
      {wallet.value === null ? null : <p class="mono wrap">{wallet.value.address}</p>}
    </div>
  )
}

function SignIn() {
  const [isLeaving, setLeaving] = useState(false)
  const start = async (): Promise<void> => {
    setLeaving(true)
    try {
      await startSignIn()
    } catch (error) {
      setLeaving(false)
      toast({ id: 'sign-in', kind: 'bad', title: 'The sign-in cannot start', text: (error as Error).message })
    }
  }
  return (
    <div class="form">
      <h2>2. Sign in</h2>
      {config.issuerUrl === null ? (
        <p class="note">This site has no identity provider. Use an API key.</p>
      ) : (
        <>
          <p class="muted">
            {new URL(config.issuerUrl).host} shows a text that your wallet signs. The signature moves no
            funds. You come back here.
          </p>
          <Button class="primary" data-testid="sign-in" disabled={isLeaving} onClick={() => void start()}>
            {isLeaving ? 'Opening …' : 'Sign in with the wallet'}
          </Button>
        </>
      )}
    </div>
  )
}

function KeySignIn() {
  const [key, setKey] = useState('')
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    try {
      await begin(`Key ${key.trim()}`, null)
    } catch (error) {
      toast({ id: 'sign-in', kind: 'bad', title: 'The key is not accepted', text: (error as Error).message })
    }
  }
  return (
    <details class="form">
      <summary>Use an API key instead</summary>
      <form class="form-line" onSubmit={(event) => void submit(event)}>
        <input
          class="input"
          type="password"
          autoComplete="off"
          aria-label="API key"
          placeholder="cb_…"
          value={key}
          data-testid="api-key"
          onInput={({ currentTarget }) => setKey(currentTarget.value)}
        />
        <button type="submit" class="button" disabled={key.trim() === ''}>
          Use the key
        </button>
      </form>
    </details>
  )
}

/** `isReturning`: on the path to which the identity provider sends the visitor back. */
export function AccountScreen({ isReturning = false }: { isReturning?: boolean }) {
  const current = session.value
  if (isReturning) return <SignedInScreen />
  if (current === null)
    return (
      <section class="page narrow-page">
        <h1>Connect</h1>
        <p class="muted">
          The page works without an account. To trade, connect a wallet once and register a session key: after
          that, every order is one click.
        </p>
        <div class="panel">
          <Wallets />
          <SignIn />
          <KeySignIn />
        </div>
      </section>
    )
  return (
    <section class="page" data-testid="account">
      <header class="page-head">
        <h1>Account</h1>
        <span class="mono wrap">{current.address}</span>
        <span class="badge">{current.scope === 'trade' ? 'may trade' : 'read-only'}</span>
        <span class="grow" />
        <Button onClick={() => void end('You have signed out.')}>Sign out</Button>
      </header>
      <div class="account-grid">
        <SessionKeyPanel account={current.address} />
        <FundsPanel />
        <SafetyPanel />
        <ApiKeyPanel />
        <section class="panel" aria-label="Wallet">
          <Wallets />
        </section>
      </div>
    </section>
  )
}
