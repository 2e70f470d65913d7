/** Decides in the engine's place: for actions that no command asks for, such as one that the contract rejects. */
import { createPool, type Db } from '../../../db/client.ts'
import type { QueueRefusal } from '../../../domain/actions/queue.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { decideOn } from '../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import type { MarketId, Millis } from '../../../domain/units.ts'
import type { Verdict } from '../../../domain/verdict.ts'
import { recoverState } from '../../../keeper/engine/checkpoints.ts'
import { GROUP_VERSION } from '../../../keeper/engine/ports.ts'
import { createJournal, createLease, createTables } from '../../../keeper/engine/store.ts'
import type { Stack } from '../../../stack/stack.ts'
import { SILENT_LOGGER } from '../../keeper/support/market-fixture.ts'
import { type BuildAction, enqueueOn } from '../../support/enqueue.ts'
import { waitFor } from '../../support/patience.ts'

export interface Enqueuing {
  readonly marketId: number
  /** The present time, on which the action is decided. */
  readonly now: Millis
  readonly build: BuildAction
}

/**
 * Queues the action that `build` makes for the end of the queue. Returns its number; null if `build` returns null, or if no action can be mined now. The engine is
 * stopped meanwhile: this process takes its lease, as another member of the engine would.
 */
export async function enqueueAsOwner(
  { engine, databaseUrls, provider, db }: Stack,
  { marketId, now, build }: Enqueuing,
): Promise<Verdict<number | null, QueueRefusal>> {
  await engine.stop()
  const pool = createPool({ url: databaseUrls.engine, connections: 2, name: 'test owner' })
  try {
    const headTime = (((await provider.getBlock('latest'))?.timestamp ?? 0) * 1000) as Millis
    const owner = await OwnerInTest.take(pool)
    return await owner.enqueue(marketId as MarketId, { now, headTime }, build)
  } finally {
    await pool.end()
    await engine.restart('SIGTERM')
    await engine.ready()
    await untilChainSeen(db)
  }
}

/** The engine has lost when the chain was last read: until it is read again, it refuses placements. */
async function untilChainSeen(db: Db): Promise<void> {
  const completedAt = () => db.selectFrom('chain_progress').select('completed_at').executeTakeFirstOrThrow()
  // The second pass from here on has begun after the engine was ready.
  for (let passes = 0; passes < 2; passes++) {
    const { completed_at: before } = await completedAt()
    await waitFor(completedAt, ({ completed_at }) => completed_at !== before, { everyMs: 20 })
  }
}

type Pool = ReturnType<typeof createPool>
type Times = Pick<Inputs, 'now' | 'headTime'>

class OwnerInTest {
  readonly #pool: Pool
  readonly #token: number
  readonly #recovered: Awaited<ReturnType<typeof recoverState>>

  private constructor(pool: Pool, token: number, recovered: Awaited<ReturnType<typeof recoverState>>) {
    this.#pool = pool
    this.#token = token
    this.#recovered = recovered
  }

  static async take(pool: Pool): Promise<OwnerInTest> {
    const lease = createLease(pool)
    const token = await lease.take(await lease.read())
    if (token === null) throw new Error('another member has taken the lease')
    return new OwnerInTest(pool, token, await recoverState(pool, { ...SILENT_LOGGER, debug() {} }))
  }

  async enqueue(
    marketId: MarketId,
    { now, headTime }: Times,
    build: BuildAction,
  ): Promise<Verdict<number | null, QueueRefusal>> {
    const number = await this.#follow()
    const { applied } = this.#recovered
    const decided = decideOn(applied.state, inputsAt({ now, headTime }), {
      decider: (draft, inputs) => enqueueOn(draft, inputs, marketId, build),
      command: null,
    })
    await this.#append(number + 1, decided.entries)
    await createLease(this.#pool).release(this.#token)
    return decided.answer
  }

  /** Returns the number of the journal's last group. */
  async #follow(): Promise<number> {
    const journal = createJournal<Entry>(this.#pool)
    const { applied } = this.#recovered
    let { number } = this.#recovered
    for (;;) {
      const groups = await journal.read(number, 1_000)
      if (groups.length === 0) return number
      for (const { rows } of groups) for (const row of rows) applied.apply(row)
      number = groups.at(-1)?.number ?? number
      applied.forget(applied.position())
    }
  }

  async #append(number: number, entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return
    const { applied } = this.#recovered
    const tables = createTables(this.#pool, applied.state, { logger: SILENT, onRefused() {} })
    tables.begin()
    const journal = createJournal<Entry>(this.#pool)
    const rows = JSON.parse(JSON.stringify(entries)) as Entry[]
    const before = applied.digest()
    for (const row of rows) applied.apply(row)
    const group = { number, token: this.#token, version: GROUP_VERSION, rows, before }
    if (!(await journal.append({ ...group, digest: applied.digest() })))
      throw new Error(`group ${number} does not follow the head of the journal`)
    await tables.collect(rows).run({ token: this.#token, from: number - 1, to: number })
  }
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

const inputsAt = (times: Times): Inputs => ({
  ...times,
  report: () => null,
  session: () => null,
  reportRules: () => null,
  chainSeenAt: null,
  limits: { oracleMaxAgeMs: 0, chainMaxAgeMs: 0 },
})
