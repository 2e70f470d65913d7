/**
 * Runs one projection loop per shard, so that each shard's read model stays at the head of its journal, and one loop that fills
 * projections which are behind.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import { Loop } from '../loop.ts'
import type { Metrics } from '../ports.ts'
import { Announcer } from './announcer.ts'
import { type FillOptions, fillStep } from './fill.ts'
import { type ChunkProgress, projectAlone, projectChunk } from './project-chunk.ts'
import { registerShards } from './project-shard.ts'
import type { Projection } from './projection.ts'
import { PROJECTIONS } from './projections.ts'

export interface ShardLoopPorts {
  /** For chunks. */
  readonly db: Db
  /** For fills, which read whole tables, and for new shards. */
  readonly fillDb: Db
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'projected' | 'failed'>
}

export interface ShardLoopOptions extends FillOptions {
  /** Finds what no notification announces: new shards, and rows that were announced while the session was down. */
  readonly pollMs: number
}

/** A chunk of a few rows costs almost as much as one of a hundred: under load, all rows of this interval share a chunk. */
const REST_MS = 40
/**
 * A shard's chunks take at most a tenth of its time, so that a busy machine has fewer and larger ones. After a batch the next one waits for at
 * most 70 ms: orders that follow the batch are then projected before the next batch, whose fills do not wait for them. With the
 * tenth, a slow chunk of a batch would make the next one slower still.
 */
const REST = { restMs: REST_MS, restRatio: 10, restMaxMs: 250, urgentRestMaxMs: 70 }
const RETRY_MS = 100
const RETRY_MAX_MS = 5_000
/** Least pause after a step of filling. */
const FILL_REST_MS = 10

/** A projection that failed on a shard: the shard's chunks leave it out until `until`. */
interface Setback {
  readonly pauseMs: number
  readonly until: number
}

export class ShardLoops {
  readonly #ports: ShardLoopPorts
  readonly #announcer: Announcer
  readonly #options: ShardLoopOptions
  readonly #shards = new Map<string, Loop>()
  readonly #discovery: Loop
  readonly #filling: Loop
  readonly #setbacks = new Map<string, Setback>()

  constructor(ports: ShardLoopPorts, options: ShardLoopOptions) {
    this.#ports = ports
    this.#announcer = new Announcer(ports.db, (err) =>
      ports.logger.warn({ err }, 'announcing projected rows failed; readers find them by polling'),
    )
    this.#options = { ...options, announcer: this.#announcer }
    this.#discovery = this.#createLoop('shards', async () => {
      for (const shard of await registerShards(ports.fillDb, options.projections)) this.#startLoop(shard)
      return false
    })
    this.#filling = this.#createLoop('fills', () => this.#fill())
  }

  start(): void {
    this.#discovery.start()
    this.#filling.start()
  }

  /** A shard has new rows. Without a name, any shard may have new rows. A batch is urgent: readers of the live feed wait for it. */
  wake(shard?: string, isUrgent = false): void {
    if (shard === undefined) for (const loop of this.#shards.values()) loop.wake()
    const loop = shard === undefined ? undefined : this.#shards.get(shard)
    if (loop === undefined) this.#discovery.wake()
    else loop.wake(isUrgent)
  }

  /** Resolves when the running chunks are committed. */
  async stop(): Promise<void> {
    await this.#discovery.stop()
    await this.#filling.stop()
    await Promise.all([...this.#shards.values()].map((loop) => loop.stop()))
    await this.#announcer.stop()
  }

  #startLoop(shard: string): void {
    if (this.#shards.has(shard)) return
    const loop = this.#createLoop(shard, () => this.#project(shard))
    this.#shards.set(shard, loop)
    loop.start()
  }

  async #project(shard: string): Promise<boolean> {
    const { clock, metrics } = this.#ports
    const start = clock.now()
    const projections = this.#projections().filter((each) => !this.#isPaused(shard, each))
    const progress = await this.#projectTogether(shard, projections)
    if (progress === null || progress.rows === 0) return false
    metrics.projected(shard, progress.rows, (clock.now() - start) / 1000)
    return progress.hasMore
  }

  /** A projection that fails must not hold up the others, so after a failure each projects the chunk alone. */
  async #projectTogether(shard: string, projections: readonly Projection[]): Promise<ChunkProgress | null> {
    const { db } = this.#ports
    try {
      const progress = await projectChunk(db, shard, { ...this.#options, projections })
      for (const name of progress?.projections ?? []) this.#setbacks.delete(`${shard} ${name}`)
      return progress
    } catch (error) {
      let advanced: ChunkProgress | null = null
      const failed: (readonly [Projection, Error])[] = []
      for (const projection of projections) {
        try {
          advanced = (await projectAlone(db, shard, projection, this.#options)) ?? advanced
        } catch (alone) {
          failed.push([projection, alone as Error])
        }
      }
      if (advanced === null) throw error
      for (const [projection, alone] of failed) this.#setBack(shard, projection, alone)
      return advanced
    }
  }

  #projections(): readonly Projection[] {
    return this.#options.projections ?? PROJECTIONS
  }

  #isPaused(shard: string, { name }: Projection): boolean {
    return (this.#setbacks.get(`${shard} ${name}`)?.until ?? 0) > this.#ports.clock.now()
  }

  #setBack(shard: string, { name }: Projection, error: Error): void {
    const { clock, logger, metrics } = this.#ports
    const before = this.#setbacks.get(`${shard} ${name}`)
    const pauseMs = before === undefined ? RETRY_MS : Math.min(RETRY_MAX_MS, 2 * before.pauseMs)
    this.#setbacks.set(`${shard} ${name}`, { pauseMs, until: clock.now() + pauseMs })
    metrics.failed('project')
    logger.error({ err: error, shard, projection: name, pause_ms: pauseMs }, 'projection failed; will retry')
  }

  /** Pauses after each step for as long as the step took, so that filling takes at most half of one connection. */
  async #fill(): Promise<boolean> {
    const start = performance.now()
    const { fillDb, logger } = this.#ports
    const { isFilling, emptied, completed } = await fillStep(fillDb, this.#options)
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
        logger.error({ err: error, shard: name, pause_ms }, 'projection failed; will retry')
      },
    })
  }
}
