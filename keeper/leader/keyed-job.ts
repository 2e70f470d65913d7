/** Runs the job of a relayer lane with the lane's present key, and starts it again with another key when that changes. */

import { type Fence, LeaseLost } from '../../db/fence.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Keyring, Relayer } from '../relayer/keyring.ts'
import type { LaneWatch } from '../relayer/lane-watch.ts'
import type { LaneJobs } from './lane-jobs.ts'
import type { LeaderJob } from './leader-loop.ts'

export interface KeyedJobPorts {
  readonly keyring: Pick<Keyring, 'present'>
  readonly laneWatch: Pick<LaneWatch, 'started' | 'released' | 'passed'>
  readonly laneJobs: Pick<LaneJobs, 'failed' | 'released'>
  readonly clock: Clock
  readonly logger: Logger
  /** Interval at which another key is looked for. */
  readonly keyPollMs: number
}

export function keyedJob(
  { keyring, laneWatch, laneJobs, clock, logger, keyPollMs }: KeyedJobPorts,
  name: string,
  make: (relayer: Relayer) => LeaderJob,
): LeaderJob {
  let current: { readonly relayer: Relayer; readonly job: LeaderJob } | null = null
  let lookedAt = Number.NEGATIVE_INFINITY

  async function begin(fence: Fence, relayer: Relayer): Promise<void> {
    if (current?.relayer.signer !== relayer.signer) current = { relayer, job: make(relayer) }
    await current.job.start?.(fence)
  }

  /**
   * The lane's other key, or the same key in another place, if that has changed and can sign. Otherwise nothing changes: the lane continues with
   * its present one.
   */
  async function changedKey(): Promise<Relayer | null> {
    if (elapsed(clock, lookedAt) < keyPollMs) return null
    lookedAt = clock.now()
    try {
      const relayer = await keyring.present(name)
      if (relayer.signer === current?.relayer.signer) return null
      await relayer.signer.ready()
      return relayer
    } catch (err) {
      logger.error({ lane: name, err }, 'the relayer key cannot be used; the lane keeps its present one')
      return null
    }
  }

  async function step(fence: Fence): Promise<number> {
    const changed = await changedKey()
    if (changed !== null) {
      const from = current?.relayer.lane.relayer
      const { relayer: to } = changed.lane
      logger.warn({ lane: name, from, to, key: changed.signer.place }, 'relayer key of the lane changed')
      await current?.job.finish?.(fence)
      await begin(fence, changed)
    }
    return (current as { readonly job: LeaderJob }).job.step(fence)
  }

  function release(): void {
    laneWatch.released(name)
    laneJobs.released(name)
  }

  /** A lane whose passes fail makes no progress. */
  async function watched<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work()
    } catch (err) {
      if (err instanceof LeaseLost) release()
      else {
        laneWatch.passed(name, 'waiting')
        laneJobs.failed(name, err)
      }
      throw err
    }
  }

  return {
    start: (fence) => {
      laneWatch.started(name, fence.token)
      lookedAt = clock.now()
      return watched(async () => begin(fence, await keyring.present(name)))
    },
    step: (fence) => watched(() => step(fence)),
    reset() {
      laneJobs.released(name)
      current?.job.reset?.()
    },
    async finish(fence) {
      release()
      await current?.job.finish?.(fence)
    },
  }
}
