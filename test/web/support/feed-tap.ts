/** Stands between a page and its live feed, so that a test can choose the prices that the page receives. */
import type { Page } from 'playwright-core'

interface MarketPrices {
  readonly market_id: number
  readonly mark_price_e18_raw: string | null
  readonly last_price_e18_raw: string | null
}

interface Message {
  readonly topic?: string
  readonly data?: { readonly markets?: readonly MarketPrices[] }
}

export interface FeedTap {
  /** In place of what the exchange sends from now on, for one market. */
  override: Partial<MarketPrices>
}

/** Called before the page is opened. */
export async function tapFeed(page: Page, marketId: number): Promise<FeedTap> {
  const tap: FeedTap = { override: {} }
  const changed = (text: string): string => {
    const message = JSON.parse(text) as Message
    const list = message.topic === 'markets' ? message.data?.markets : undefined
    if (list === undefined) return text
    const markets = list.map((each) => (each.market_id === marketId ? { ...each, ...tap.override } : each))
    return JSON.stringify({ ...message, data: { ...message.data, markets } })
  }
  await page.routeWebSocket(/\/v0\/ws$/, (socket) => {
    socket.connectToServer().onMessage((text) => socket.send(changed(String(text))))
  })
  return tap
}
