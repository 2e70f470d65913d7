/** A process with a queue of lanes. Its lanes do no work: the test says when it owns them, and what their passes find. */
import type { JobState, Queue } from 'bullmq'
import type { Millis } from '../../../domain/units.ts'
import {
  type BullLaneQueue,
  createLaneQueue,
  type LaneQueueOptions,
} from '../../../keeper/adapters/lane-queue.ts'
import { LaneJobs, LINGER_MS } from '../../../keeper/leader/lane-jobs.ts'
import type { LaneProgress } from '../../../keeper/relayer/lane-watch.ts'
import { until } from './keeper-process.ts'
import { SILENT_LOGGER } from './market-fixture.ts'

export const LANE = 'm1'
export const UNFINISHED = ['active', 'waiting', 'delayed'] as const

export class LaneProcess {
  readonly jobs: LaneJobs
  readonly queue: BullLaneQueue
  readonly #owned = new Set<string>()
  readonly #wakes = new Map<string, number>()
  #now = 1_000_000

  constructor(options: LaneQueueOptions, lanes: readonly string[] = [LANE]) {
    this.queue = createLaneQueue(options, SILENT_LOGGER)
    this.jobs = new LaneJobs({ queue: this.queue, clock: { now: () => this.#now as Millis } })
    for (const lane of lanes)
      this.jobs.add(lane, {
        isLeader: () => this.#owned.has(lane),
        wake: () => void this.#wakes.set(lane, this.wakes(lane) + 1),
      })
    this.queue.serve(this.jobs)
  }

  wakes(lane = LANE): number {
    return this.#wakes.get(lane) ?? 0
  }

  own(...lanes: string[]): this {
    for (const lane of lanes) this.#owned.add(lane)
    return this
  }

  release(lane = LANE): void {
    this.#owned.delete(lane)
    this.jobs.released(lane)
  }

  later(ms: number): void {
    this.#now += ms
  }

  pass(progress: LaneProgress, lane = LANE): void {
    this.jobs.passed(lane, progress)
  }

  /** The lane is idle for as long as a job lingers. */
  idle(lane = LANE): void {
    this.pass('idle', lane)
    this.later(LINGER_MS)
    this.pass('idle', lane)
  }

  async opened(): Promise<Queue> {
    await until(async () => this.queue.queue() !== null)
    return this.queue.queue() as Queue
  }

  async count(...states: JobState[]): Promise<number> {
    return (await this.opened()).getJobCountByTypes(...states)
  }

  untilCount(expected: number, ...states: JobState[]): Promise<void> {
    return until(async () => (await this.count(...states)) === expected)
  }

  /** The lane is idle until it has no job. */
  finishAll(): Promise<void> {
    return until(async () => {
      this.idle()
      return (await this.count(...UNFINISHED)) === 0
    })
  }

  close(): Promise<void> {
    return this.queue.close()
  }
}
