/**
 * Keeps the read model at the heads of all journals, one transaction per chunk for all shards. Other loops find new
 * shards and fill projections. One process projects (`standby.ts`).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import { Loop } from '../loop.ts'
import type { PartSpans } from '../part-spans.ts'
import type { Metrics } from '../ports.ts'
import { Announcer } from './announcer.ts'
import { isOfRows } from './chunk-errors.ts'
import { type FillOptions, fillStep } from './fill.ts'
import { HeldGroups } from './held-groups.ts'
import { OtherProjectorError } from './next-shards.ts'
import { projectAlone, projectChunk } from './project-chunk.ts'
import { registerShards } from './project-shards.ts'
import { PROJECTIONS } from './projections.ts'
import { Standby } from './standby.ts'
import { Stopped, type StoppedPlace } from './stopped.ts'

export interface ProjectorPorts {
  /** For chunks. */
  readonly db: Db
  /** For fills, which read whole tables, and for new shards. */
  readonly fillDb: Db
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'projected' | 'failed'>
  /** Absent or null: no spans. */
  readonly partSpans?: Pick<PartSpans, 'projected'> | null
}

export interface ProjectorOptions extends FillOptions {
  /** Finds what no notification announces: new shards, and rows that were announced while the session was down. */
  readonly pollMs: number
}

/**
 * Pauses between chunks, because a small chunk costs almost as much as one of 100 rows. The urgent limit lets orders
 * after a batch be projected before the next batch, whose fills then need not wait.
 */
const REST = { restMs: 40, restRatio: 4, restMaxMs: 250, urgentRestMaxMs: 70, leastRestMaxMs: 5 }
/** Duration that a chunk should not exceed, so that a bookmark on one shard never waits long for the burst of another. */
const CHUNK_MS = 40
/** Least size of a chunk, however slow the machine is. */
const LEAST_ROWS = 100
const RETRY_MS = 100
const RETRY_MAX_MS = 5_000
/** Least pause after a step of filling. */
const FILL_REST_MS = 10

export class Projector {
  readonly #ports: ProjectorPorts
  readonly #announcer: Announcer
  readonly #options: ProjectorOptions
  readonly #chunks: Loop
  readonly #discovery: Loop
  readonly #filling: Loop
  readonly #standby: Standby
  readonly #stopped: Stopped
  /** Shards with a place in every projection. */
  #known: ReadonlySet<string> = new Set()
  /** Shards that may have rows. */
  #due = new Set<string>()
  /** Bound of the next chunk's rows. */
  #limit: number
  readonly #held = new HeldGroups()

  constructor(ports: ProjectorPorts, options: ProjectorOptions) {
    this.#ports = ports
    this.#announcer = new Announcer(ports.db, (err) =>
      ports.logger.warn({ err }, 'announcing projected rows failed; readers find them by polling'),
    )
    this.#options = { ...options, announcer: this.#announcer }
    this.#limit = options.limit
    this.#stopped = new Stopped(ports, { leastMs: RETRY_MS, mostMs: RETRY_MAX_MS })
    this.#standby = new Standby(ports)
    this.#chunks = this.#createLoop('chunks', () => this.#run())
    this.#discovery = this.#createLoop('shards', () => this.#discover())
    this.#filling = this.#createLoop('fills', () => this.#fill())
  }

  start(): void {
    this.#discovery.start()
    this.#filling.start()
    this.#chunks.start()
  }

  /** A shard has new rows. Without a name, any shard may have new rows. Urgent if a batch has cleared or a bookmark waits. */
  wake(shard?: string, isUrgent = false): void {
    if (shard === undefined || !this.#known.has(shard)) this.#discovery.wake()
    if (shard === undefined) return
    this.#due.add(shard)
    this.#chunks.wake(isUrgent)
  }

  /** Resolves when the running chunk is committed. */
  async stop(): Promise<void> {
    await this.#discovery.stop()
    await this.#filling.stop()
    await this.#chunks.stop()
    await this.#announcer.stop()
  }

  async #discover(): Promise<boolean> {
    const shards = await registerShards(this.#ports.fillDb, this.#options.projections)
    this.#known = new Set(shards)
    for (const shard of shards) this.#due.add(shard)
    this.#chunks.wake()
    return false
  }

  /** Returns true if rows are left. */
  async #run(): Promise<boolean> {
    // Runs also in standby, because the other process may lack a projection that this process fills.
    for (const place of this.#stopped.due()) await this.#projectStopped(place)
    if (!(await this.#standby.mayProject())) return false
    const shards = [...this.#due].filter((shard) => this.#known.has(shard))
    if (shards.length === 0) return false
    this.#due = new Set()
    try {
      return await this.#project(shards)
    } catch (error) {
      for (const shard of shards) this.#due.add(shard)
      throw error
    }
  }

  /**
   * Projects the next chunk of the shards; true if rows are left. If a row fails, each half of the shards is projected
   * alone, so that only failing projections of its shard stop.
   */
  async #project(shards: readonly string[]): Promise<boolean> {
    try {
      return await this.#projectTogether(shards)
    } catch (error) {
      if (error instanceof OtherProjectorError) {
        this.#standby.yield()
        return false
      }
      if (!isOfRows(error)) throw error
      if (shards.length === 1) return this.#projectEach(shards[0] as string)
      const middle = Math.ceil(shards.length / 2)
      const first = await this.#project(shards.slice(0, middle))
      const second = await this.#project(shards.slice(middle))
      return first || second
    }
  }

  async #projectTogether(shards: readonly string[]): Promise<boolean> {
    const start = performance.now()
    const options = {
      ...this.#options,
      limit: this.#limit,
      held: this.#held,
      isSole: true,
      except: this.#stopped.names(),
    }
    const progress = await projectChunk(this.#ports.db, shards, options)
    // The next poll finds shards that others have locked.
    if (progress === null) return false
    const tookMs = performance.now() - start
    if (progress.rows > 0) this.#ports.metrics.projected(progress.shards, tookMs / 1000)
    this.#ports.partSpans?.projected(progress, tookMs / 1000)
    this.#adapt(progress.rows, tookMs)
    for (const shard of progress.more) this.#due.add(shard)
    return progress.more.length > 0
  }

  /** The bound of the next chunk, so that it takes about `CHUNK_MS`. */
  #adapt(rows: number, tookMs: number): void {
    if (rows < LEAST_ROWS) return
    const most = Math.round((rows * CHUNK_MS) / tookMs)
    const least = Math.min(LEAST_ROWS, this.#options.limit)
    this.#limit = Math.min(this.#options.limit, Math.max(least, most))
  }

  /** A projection that fails must not hold up other projections of its shard. */
  async #projectEach(shard: string): Promise<boolean> {
    const places = this.#projections()
      .map(({ name }) => ({ shard, projection: name }))
      .filter((place) => !this.#stopped.has(place))
    for (const place of places) await this.#projectStopped(place)
    this.#due.add(shard)
    return true
  }

  /** Projects one chunk of a place alone: it is stopped if that fails, and no longer if it succeeds. */
  async #projectStopped(place: StoppedPlace): Promise<void> {
    const projection = this.#projections().find(({ name }) => name === place.projection)
    if (projection === undefined) return
    try {
      const progress = await projectAlone(this.#ports.db, [place.shard], projection, this.#options)
      if (progress === null) return
      if (this.#stopped.resume(place)) this.#due.add(place.shard)
    } catch (error) {
      if (!isOfRows(error)) throw error
      this.#stopped.stop(place, error as Error)
    }
  }

  #projections() {
    return this.#options.projections ?? PROJECTIONS
  }

  /** Pauses after each step for as long as the step took, so that filling takes at most half of one connection. */
  async #fill(): Promise<boolean> {
    const start = performance.now()
    const { fillDb, logger } = this.#ports
    const { isFilling, emptied, completed } = await fillStep(fillDb, {
      ...this.#options,
      except: this.#stopped.names(),
      // One failing fill must not pause the fills of all shards. The loop of chunks tries it again.
      onPlaceFailed: (place, error) => this.#stopped.stop(place, error),
    })
    if (emptied.length > 0) logger.info({ projections: emptied }, 'filling read tables from the journal')
    if (completed.length > 0) logger.info({ projections: completed }, 'read tables filled')
    if (isFilling) await sleep(Math.max(FILL_REST_MS, performance.now() - start))
    return isFilling
  }

  #createLoop(name: string, run: () => Promise<boolean>): Loop {
    const { logger, metrics } = this.#ports
    return new Loop({
      run,
      intervalMs: this.#options.pollMs,
      ...REST,
      retryMs: RETRY_MS,
      retryMaxMs: RETRY_MAX_MS,
      onFailure(error, pause_ms) {
        metrics.failed('project')
        logger.error({ err: error, loop: name, pause_ms }, 'projection failed; will retry')
      },
    })
  }
}
