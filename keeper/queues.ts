/**
 * The queues. A queue only wakes a worker: the work is in Postgres, and a sweep finds it if the wake-up is lost. A wake-up with the job id
 * of a waiting one is dropped.
 */
export interface QueueRule<Payload> {
  readonly name: string
  readonly jobId: (payload: Payload) => string
}

export interface SettleWakeUp {
  readonly market_id: number
  readonly batch_id: number
}

/** One per market. Only the owner of the market's settlement lease receives from it. */
export const settleQueue = (marketId: number): QueueRule<SettleWakeUp> => ({
  name: `settle-m${marketId}`,
  jobId: ({ market_id, batch_id }) => `m${market_id}-b${batch_id}`,
})
