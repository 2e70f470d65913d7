/** The exchange as every visitor reads it: one HTTP session and one connection of the live feed per tab. */
import { createHttpSession } from '../../client/http-session.ts'
import { LiveTopics } from '../../client/live/live-topics.ts'
import { MarketData } from '../../client/market-data.ts'
import { config } from '../base/config.ts'
import { toast } from '../base/toasts.ts'

export const http = createHttpSession({ baseUrl: config.apiUrl })
export const marketData = new MarketData(http)

export const feed = new LiveTopics({
  baseUrl: config.apiUrl,
  onError: ({ message }) =>
    toast({ id: 'feed', kind: 'bad', title: 'The live feed refused a request', text: message }),
})
