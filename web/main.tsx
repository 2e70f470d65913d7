/** Entry point of the page. */
import { render } from 'preact'
import './style/base.css'
import './style/panels.css'
import './style/trade.css'
import { isSessionKnown, session, startSession } from './account/session.ts'
import { reconnect } from './account/wallet.ts'
import { App } from './app.tsx'
import { toast } from './base/toasts.ts'
import { startMarkets } from './feed/markets.ts'
import { isStaleChunk, reloadOnce } from './ui/error-boundary.tsx'
import { loadTrading } from './ui/lazy.tsx'
import './feed/connection.ts'

startMarkets()
/** Shows errors that no panel catches, so that none is only in the console. */
addEventListener('unhandledrejection', ({ reason }) => {
  const error = reason instanceof Error ? reason : new Error(String(reason))
  if (isStaleChunk(error) && reloadOnce()) return
  toast({ id: 'failure', kind: 'bad', title: 'The page could not do this', text: error.message })
})

// Runs on every screen, because the dead-man switch fires unless a tab renews it.
void startSession().then(async () => {
  if (session.value !== null) await Promise.all([reconnect(), loadTrading()])
})
session.subscribe((opened) => {
  if (opened !== null && isSessionKnown.value) void loadTrading()
})

const root = document.getElementById('app') as HTMLElement
root.replaceChildren()
render(<App />, root)
