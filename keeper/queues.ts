/**
 * The queues, one row each. A queue only wakes a worker: what there is to do stands in Postgres, and a sweep finds it where the
 * wake-up was lost. A second wake-up with the job id of one that still waits is dropped.
 */
export interface QueueRule<Payload> {
  readonly name: string
  readonly jobId: (payload: Payload) => string
}

export interface SettleWakeUp {
  readonly market_id: number
  readonly batch_id: number
}

/** One per market, read by the owner of its lane alone. */
export const settleQueue = (marketId: number): QueueRule<SettleWakeUp> => ({
  name: `settle-m${marketId}`,
  jobId: ({ market_id, batch_id }) => `m${market_id}-b${batch_id}`,
})
