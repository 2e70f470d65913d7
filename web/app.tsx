/** The frame of every screen: navigation, the state of the feed, and messages. */
import { useEffect, useRef } from 'preact/hooks'
import { balance, totalPnl } from './account/live-account.ts'
import { session } from './account/session.ts'
import { signOf, usd } from './base/numbers.ts'
import { screen } from './base/router.ts'
import { now } from './base/times.ts'
import { dismiss, toasts } from './base/toasts.ts'
import { feedState, staleSince } from './feed/connection.ts'
import { TradeScreen } from './trade/screen.tsx'
import { ErrorBoundary } from './ui/error-boundary.tsx'
import { lazy, loadTrading } from './ui/lazy.tsx'

const DataScreen = lazy(async () => (await import('./screens/data-screen.tsx')).DataScreen)
const AccountScreen = lazy(async () => (await loadTrading()).AccountScreen)
const OperateScreen = lazy(async () => (await import('./operate/screen.tsx')).OperateScreen)

const LINKS = [
  { path: '/trade', name: 'trade', text: 'Trade' },
  { path: '/markets', name: 'markets', text: 'Markets' },
  { path: '/portfolio', name: 'portfolio', text: 'Portfolio' },
  { path: '/risk', name: 'risk', text: 'Risk' },
  { path: '/status', name: 'status', text: 'Status' },
] as const

const STATES = { connecting: 'Connecting', live: 'Live', stale: 'Reconnecting' } as const

export const shortAddress = (address: string): string => `${address.slice(0, 6)}…${address.slice(-4)}`

function Equity() {
  const total = balance.value?.total_e18_raw
  if (session.value === null || total === undefined) return null
  const equity = BigInt(total) + totalPnl.value
  return (
    <span class="equity" title="Balance with the profit of open positions at the mark">
      <span class="muted">Equity</span> {usd(equity)}{' '}
      <span class={signOf(totalPnl.value)}>{usd(totalPnl.value, { sign: true })}</span>
    </span>
  )
}

function Bar() {
  const current = screen.value.name
  const links = useRef<HTMLElement>(null)
  // On a phone not all links fit.
  useEffect(() => {
    const chosen = links.current?.querySelector('[aria-current]')
    chosen?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [current])
  const signedIn = session.value
  return (
    <header class="bar">
      <a class="brand" href="/trade" aria-label="Clearbatch, trade">
        <img src="/icon.svg" alt="" width="22" height="22" />
        <span>Clearbatch</span>
      </a>
      <nav class="links" aria-label="Screens" ref={links}>
        {LINKS.map(({ path, name, text }) => (
          <a key={name} href={path} aria-current={current === name ? 'page' : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <span class="grow" />
      <Equity />
      <span class={`feed-state ${feedState.value}`} role="status" data-testid="feed-state">
        <i aria-hidden="true" />
        <span>{STATES[feedState.value]}</span>
      </span>
      <a class="icon-button" href="/settings" aria-label="Settings" title="Settings">
        ⚙
      </a>
      <a class={`button ${signedIn === null ? 'primary' : ''}`} href="/account" data-testid="account-link">
        {signedIn === null ? 'Connect' : shortAddress(signedIn.address)}
      </a>
    </header>
  )
}

/** Numbers stay on the screen while the feed is away, dimmed and with their age, so that none passes for live. */
function Banner() {
  const since = staleSince.value
  useEffect(() => {
    document.documentElement.dataset.feed = feedState.value
  }, [feedState.value])
  if (since === null) return null
  const seconds = Math.max(0, Math.round((now.value - since) / 1000))
  return (
    <p class="banner" role="alert" data-testid="banner">
      Reconnecting to the exchange. Everything below is as of {seconds} s ago.
    </p>
  )
}

function Screen() {
  const current = screen.value
  switch (current.name) {
    case 'trade':
      return <TradeScreen />
    case 'batch':
    case 'markets':
    case 'portfolio':
    case 'risk':
    case 'status':
    case 'settings':
      return <DataScreen screen={current} />
    case 'operate':
      return <OperateScreen />
    case 'account':
    case 'signed-in':
      return <AccountScreen isReturning={current.name === 'signed-in'} />
    default:
      return (
        <section class="page">
          <h1>There is no such page</h1>
          <a class="button" href="/trade">
            Trade
          </a>
        </section>
      )
  }
}

function Toasts() {
  return (
    <section class="toasts" aria-label="Messages" aria-live="polite">
      {toasts.value.map(({ id, kind, title, text }) => (
        <div key={id} class={`toast ${kind}`} data-testid="toast" data-kind={kind}>
          <div>
            <strong>{title}</strong>
            {text === undefined ? null : <p>{text}</p>}
          </div>
          <button
            type="button"
            class="icon-button"
            aria-label={`Dismiss: ${title}`}
            onClick={() => dismiss(id)}
          >
            ✕
          </button>
        </div>
      ))}
    </section>
  )
}

export function App() {
  const { name } = screen.value
  useEffect(() => {
    if (name !== 'trade')
      document.title = `${name[0]?.toUpperCase()}${name.slice(1).replace('-', ' ')} · Clearbatch`
  }, [name])
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <Bar />
      <Banner />
      <main id="content" tabIndex={-1}>
        <ErrorBoundary name="This screen" key={name}>
          <Screen />
        </ErrorBoundary>
      </main>
      <Toasts />
    </>
  )
}
