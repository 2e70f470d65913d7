/** Keeps one loop per shard at its head. */
import type { Db } from '../../db/client.ts'
import { Loop } from '../loop.ts'
import type { Clock, Logger, Metrics } from '../ports.ts'
import { type ChunkOptions, projectChunk, registerShards } from './project-shard.ts'

export interface ShardLoopPorts {
  readonly db: Db
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'projected' | 'failed'>
}

export interface ShardLoopOptions extends ChunkOptions {
  /** For what no notification tells: new shards, and rows announced while nobody listened. */
  readonly pollMs: number
}

/** A chunk of a few rows costs hardly less than one of a hundred: under load the rows of this time are projected together. */
const REST_MS = 20
const RETRY_MS = 100
const RETRY_MAX_MS = 5_000

export class ShardLoops {
  readonly #ports: ShardLoopPorts
  readonly #options: ShardLoopOptions
  readonly #shards = new Map<string, Loop>()
  /** Shards whose next row tells of others. */
  readonly #waiting = new Set<string>()
  readonly #discovery: Loop

  constructor(ports: ShardLoopPorts, options: ShardLoopOptions) {
    this.#ports = ports
    this.#options = options
    this.#discovery = this.#loop('shards', async () => {
      for (const shard of await registerShards(ports.db)) this.#follow(shard)
      return false
    })
  }

  start(): void {
    this.#discovery.start()
  }

  /** A shard has new rows; without a name, any may have. */
  wake(shard?: string): void {
    if (shard === undefined) for (const loop of this.#shards.values()) loop.wake()
    const loop = shard === undefined ? undefined : this.#shards.get(shard)
    if (loop === undefined) this.#discovery.wake()
    else loop.wake()
  }

  /** Some shard has moved: those that wait for others look again. */
  wakeWaiting(moved: string): void {
    for (const shard of this.#waiting) if (shard !== moved) this.#shards.get(shard)?.wake()
  }

  /** Resolves once the chunks under way are committed. */
  async stop(): Promise<void> {
    await this.#discovery.stop()
    await Promise.all([...this.#shards.values()].map((loop) => loop.stop()))
  }

  #follow(shard: string): void {
    if (this.#shards.has(shard)) return
    const loop = this.#loop(shard, () => this.#project(shard))
    this.#shards.set(shard, loop)
    loop.start()
  }

  async #project(shard: string): Promise<boolean> {
    const { db, clock, metrics } = this.#ports
    const start = clock.now()
    const progress = await projectChunk(db, shard, this.#options)
    if (progress === null) return false
    const hasWaited = this.#waiting.has(shard)
    if (progress.isWaiting) this.#waiting.add(shard)
    else this.#waiting.delete(shard)
    if (progress.rows > 0) this.wakeWaiting(shard)
    // Another may have moved between the look at it and now: look again, with everyone knowing that it waits.
    if (progress.isWaiting && !hasWaited) return true
    if (progress.rows === 0) return false
    metrics.projected(shard, progress.rows, (clock.now() - start) / 1000)
    return progress.rows === this.#options.limit
  }

  #loop(name: string, run: () => Promise<boolean>): Loop {
    const { logger, metrics } = this.#ports
    return new Loop({
      run,
      intervalMs: this.#options.pollMs,
      restMs: REST_MS,
      retryMs: RETRY_MS,
      retryMaxMs: RETRY_MAX_MS,
      onFailure(error, pause_ms) {
        metrics.failed('project')
        logger.error({ err: error, shard: name, pause_ms }, 'projection failed')
      },
    })
  }
}
