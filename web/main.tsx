/** Starts the page. */
import { render } from 'preact'
import './style/base.css'
import './style/panels.css'
import './style/trade.css'
import { isSessionKnown, session, startSession } from './account/session.ts'
import { reconnect } from './account/wallet.ts'
import { App } from './app.tsx'
import { startMarkets } from './feed/markets.ts'
import './feed/connection.ts'

startMarkets()
void startSession().then(async () => {
  if (session.value !== null) await Promise.all([reconnect(), import('./account/trader.ts')])
})
session.subscribe((opened) => {
  if (opened !== null && isSessionKnown.value) void import('./account/trader.ts')
})

const root = document.getElementById('app') as HTMLElement
root.replaceChildren()
render(<App />, root)
