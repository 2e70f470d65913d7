/** Notes when each market has a new batch, by the monotonic clock: the database's clock is a subject of faults. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'

const PACE_MS = 100

export class BatchWatch {
  readonly at = new Map<number, number[]>()
  readonly #db: Db
  readonly #newest = new Map<number, number>()
  readonly #loop: Promise<void>
  #isOver = false

  constructor(db: Db) {
    this.#db = db
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#loop
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      // The database may be stopped: then no batch is stored either.
      await this.#read().catch(() => {})
      await sleep(PACE_MS)
    }
  }

  async #read(): Promise<void> {
    const { rows } = await sql<{ market_id: number; newest: number | null }>`
      select market_id, (select max(batch_id) from batches b where b.market_id = m.market_id)::float8 as newest from markets m
    `.execute(this.#db)
    const now = performance.now()
    for (const { market_id, newest } of rows) {
      if (newest === null || newest <= (this.#newest.get(market_id) ?? -1)) continue
      this.#newest.set(market_id, newest)
      this.at.set(market_id, [...(this.at.get(market_id) ?? []), now])
    }
  }
}
