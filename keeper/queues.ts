/**
 * The queues, one row each. A queue only wakes a worker: what there is to do stands in Postgres, and a sweep finds it where the
 * wake-up was lost. Job ids make a second wake-up for the same work a no-op while the first one waits.
 */
export interface QueueRule<Payload> {
  readonly name: string
  readonly jobId: (payload: Payload) => string
}

export interface SettleWakeUp {
  readonly market_id: number
  readonly batch_id: number
}

export interface RelayWakeUp {
  readonly request_id: number
}

/** One queue per market, read by the owner of its lane alone. */
export const settleQueue = (marketId: number): QueueRule<SettleWakeUp> => ({
  name: `settle-m${marketId}`,
  jobId: ({ market_id, batch_id }) => `m${market_id}-${batch_id}`,
})

export const relayQueue: QueueRule<RelayWakeUp> = {
  name: 'relay',
  jobId: ({ request_id }) => `request-${request_id}`,
}
