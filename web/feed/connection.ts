/** Whether what the page shows is live. */
import { signal } from '@preact/signals'
import { feed } from './exchange.ts'

export type FeedState = 'connecting' | 'live' | 'stale'

export const feedState = signal<FeedState>('connecting')
/** Since when the feed is not current; null while it is. */
export const staleSince = signal<number | null>(null)

const POLL_MS = 200
/** A shorter interruption changes nothing that a reader could see. */
const GRACE_MS = 600

let firstStale: number | null = null

function check(): void {
  if (feed.isCurrent) {
    firstStale = null
    staleSince.value = null
    feedState.value = 'live'
    return
  }
  firstStale ??= Date.now()
  if (feedState.value === 'connecting' || Date.now() - firstStale < GRACE_MS) return
  staleSince.value = firstStale
  feedState.value = 'stale'
}

setInterval(check, POLL_MS)
