/**
 * Jobs of relayer lanes: active while the process that holds the lane's lease works on it. Only the lease decides who
 * runs a lane, so lost, repeated or stalled jobs change nothing.
 */
import { type Clock, elapsed } from '../../service/clock.ts'
import type { JobEnd, LaneQueue } from '../ports.ts'
import type { LaneProgress } from '../relayer/lane-watch.ts'
import type { LeaderLoop } from './leader-loop.ts'

export interface LaneJobPorts {
  readonly queue: Pick<LaneQueue, 'add'>
  readonly clock: Pick<Clock, 'now'>
}

/** A lane that is idle for a shorter time keeps its job, so that a market with a batch every few seconds has one job, not one per batch. */
export const LINGER_MS = 5_000

/** Interval at which the owner of a busy lane without a job adds one: the first may be lost, or waiting in another process. */
const ADD_AGAIN_MS = 1_000

interface Follower {
  readonly end: (reason: JobEnd) => void
  readonly fail: (error: Error) => void
}

interface Lane {
  readonly loop: Pick<LeaderLoop, 'wake' | 'isLeader'>
  idleSince: number | null
  addedAt: number
  follower: Follower | null
}

/** The queue page shows the error, so it states the kind alone: a message can contain addresses and credentials. */
const withoutDetails = (error: unknown): Error => {
  const { name = 'Error', code } = error as NodeJS.ErrnoException
  return new Error(`step failed with ${code ?? name}; the log of the keeper has the error`)
}

export class LaneJobs {
  readonly #ports: LaneJobPorts
  readonly #lanes = new Map<string, Lane>()

  constructor(ports: LaneJobPorts) {
    this.#ports = ports
  }

  add(lane: string, loop: Lane['loop']): void {
    this.#lanes.set(lane, { loop, idleSince: null, addedAt: Number.NEGATIVE_INFINITY, follower: null })
  }

  owns(name: string): boolean {
    return this.#lanes.get(name)?.loop.isLeader() === true
  }

  /** A lane has work. Its owner in this process is woken at once; the queue finds an owner in another process. */
  wake(name: string): void {
    const lane = this.#lanes.get(name)
    if (lane?.loop.isLeader()) lane.loop.wake()
    else this.#ports.queue.add(name)
  }

  /** Runs a job: wakes the lane and resolves once it is idle. Rejects if a step of the lane fails. */
  follow(name: string): Promise<JobEnd> {
    const lane = this.#lanes.get(name)
    if (!lane?.loop.isLeader()) return Promise.resolve('elsewhere')
    if (lane.follower !== null) return Promise.resolve('followed')
    return new Promise((end, fail) => {
      lane.follower = { end, fail }
      lane.idleSince = null
      lane.loop.wake()
    })
  }

  /** A pass over the lane has ended. */
  passed(name: string, progress: LaneProgress): void {
    const lane = this.#lanes.get(name)
    if (lane === undefined) return
    if (progress === 'waiting') this.#busy(name, lane)
    else this.#idle(lane)
  }

  /** A pass over the lane has failed. The lane is stepped again by its loop, and its job by the queue's retry. */
  failed(name: string, error: unknown): void {
    const lane = this.#lanes.get(name)
    if (lane === undefined) return
    if (lane.follower === null) this.#busy(name, lane)
    else this.#release(lane)?.fail(withoutDetails(error))
  }

  /** Another process may own the lane's lease now, and gets its job. */
  released(name: string): void {
    const lane = this.#lanes.get(name)
    if (lane !== undefined) this.#release(lane)?.end('elsewhere')
  }

  /** The queue has lost the job that follows the lane. A busy lane gets another one. */
  lost(name: string): void {
    const lane = this.#lanes.get(name)
    if (lane !== undefined) this.#release(lane)?.end('lost')
  }

  #busy(name: string, lane: Lane): void {
    const { clock, queue } = this.#ports
    lane.idleSince = null
    if (lane.follower !== null || elapsed(clock, lane.addedAt) < ADD_AGAIN_MS) return
    lane.addedAt = clock.now()
    queue.add(name)
  }

  #idle(lane: Lane): void {
    const { clock } = this.#ports
    lane.idleSince ??= clock.now()
    if (elapsed(clock, lane.idleSince) >= LINGER_MS) this.#release(lane)?.end('idle')
  }

  #release(lane: Lane): Follower | null {
    const { follower } = lane
    lane.follower = null
    return follower
  }
}
