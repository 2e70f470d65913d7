/** Runs one projection loop per shard, so that each shard's read model stays at the head of its journal. */
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import { Loop } from '../loop.ts'
import type { Metrics } from '../ports.ts'
import { type ChunkOptions, projectChunk, registerShards } from './project-shard.ts'

export interface ShardLoopPorts {
  readonly db: Db
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'projected' | 'failed'>
}

export interface ShardLoopOptions extends ChunkOptions {
  /** Finds what no notification announces: new shards, and rows that were announced while the session was down. */
  readonly pollMs: number
}

/** A chunk of a few rows costs almost as much as one of a hundred: under load, all rows of this interval share a chunk. */
const REST_MS = 20
const RETRY_MS = 100
const RETRY_MAX_MS = 5_000

export class ShardLoops {
  readonly #ports: ShardLoopPorts
  readonly #options: ShardLoopOptions
  readonly #shards = new Map<string, Loop>()
  readonly #discovery: Loop

  constructor(ports: ShardLoopPorts, options: ShardLoopOptions) {
    this.#ports = ports
    this.#options = options
    this.#discovery = this.#createLoop('shards', async () => {
      for (const shard of await registerShards(ports.db)) this.#startLoop(shard)
      return false
    })
  }

  start(): void {
    this.#discovery.start()
  }

  /** A shard has new rows. Without a name, any shard may have new rows. */
  wake(shard?: string): void {
    if (shard === undefined) for (const loop of this.#shards.values()) loop.wake()
    const loop = shard === undefined ? undefined : this.#shards.get(shard)
    if (loop === undefined) this.#discovery.wake()
    else loop.wake()
  }

  /** Resolves when the running chunks are committed. */
  async stop(): Promise<void> {
    await this.#discovery.stop()
    await Promise.all([...this.#shards.values()].map((loop) => loop.stop()))
  }

  #startLoop(shard: string): void {
    if (this.#shards.has(shard)) return
    const loop = this.#createLoop(shard, () => this.#project(shard))
    this.#shards.set(shard, loop)
    loop.start()
  }

  async #project(shard: string): Promise<boolean> {
    const { db, clock, metrics } = this.#ports
    const start = clock.now()
    const progress = await projectChunk(db, shard, this.#options)
    if (progress === null || progress.rows === 0) return false
    metrics.projected(shard, progress.rows, (clock.now() - start) / 1000)
    return progress.rows === this.#options.limit
  }

  #createLoop(name: string, run: () => Promise<boolean>): Loop {
    const { logger, metrics } = this.#ports
    return new Loop({
      run,
      intervalMs: this.#options.pollMs,
      restMs: REST_MS,
      retryMs: RETRY_MS,
      retryMaxMs: RETRY_MAX_MS,
      onFailure(error, pause_ms) {
        metrics.failed('project')
        logger.error({ err: error, shard: name, pause_ms }, 'projection failed; will retry')
      },
    })
  }
}
