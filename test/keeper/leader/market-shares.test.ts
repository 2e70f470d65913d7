/** Keepers in one process that share markets on a real database, with jobs that only note their turns. */
import { expect } from 'chai'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../../db/client.ts'
import { checkFence, type Fence } from '../../../db/fence.ts'
import { createLeases, type Leases } from '../../../db/leases.ts'
import type { MarketId } from '../../../domain/units.ts'
import { type LeaderLoop, runLeaderLoop } from '../../../keeper/leader/leader-loop.ts'
import { type MarketShares, runMarketShares, type SharesStore } from '../../../keeper/leader/market-shares.ts'
import { createSharesStore } from '../../../keeper/leader/shares-store.ts'
import { systemClock } from '../../../service/clock.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { until } from '../support/keeper-process.ts'
import { SILENT_LOGGER } from '../support/market-fixture.ts'

const MARKETS = 12
const LEASE_MS = 2_000
const PASS_MS = 60
const TURN_MS = 20
const IDS = Array.from({ length: MARKETS }, (_, at) => (at + 1) as MarketId)

interface Turn {
  readonly owner: string
  readonly token: number
}

class Killed extends Error {}

/** A keeper whose database can become unreachable, as by a kill: it renews and releases nothing. */
class SharingKeeper {
  readonly owner: string
  readonly #db: Db
  readonly #shares: MarketShares
  readonly #loops: LeaderLoop[]
  #isKilled = false
  givenBack = 0
  lateMs = 0

  constructor(db: Db, owner: string, turns: Map<number, Turn[]>) {
    this.owner = owner
    this.#db = db
    const common = { clock: systemClock, logger: SILENT_LOGGER }
    this.#shares = runMarketShares({
      ...common,
      shares: this.#cuttable(createSharesStore(db, LEASE_MS)),
      metrics: {
        turnStarted: () => {},
        marketsOwned: () => {},
        marketsGivenBack: (count) => {
          this.givenBack += count
        },
      },
      ...{ owner, passMs: PASS_MS },
    })
    const leases = this.#cuttable<Leases>(createLeases(db, owner, LEASE_MS))
    this.#loops = IDS.map((market) => {
      const job = {
        step: (fence: Fence) => this.#step(market, fence, turns),
        isWanted: () => this.#shares.isWanted(market),
      }
      const loop = runLeaderLoop({ ...common, leases, leaseMs: LEASE_MS }, `auction:m${market}`, job)
      this.#shares.add(market, () => loop.wake())
      return loop
    })
  }

  async #step(market: MarketId, fence: Fence, turns: Map<number, Turn[]>): Promise<number> {
    if (this.#isKilled) throw new Killed()
    this.#shares.turnStarted(this.lateMs)
    await this.#db.transaction().execute(async (tx) => {
      await checkFence(tx, fence)
      turns.get(market)?.push({ owner: this.owner, token: fence.token })
    })
    return TURN_MS
  }

  #cuttable<Port extends Leases | SharesStore>(port: Port): Port {
    return new Proxy(port, {
      get: (of, name, receiver) => {
        const method = Reflect.get(of, name, receiver) as (...input: unknown[]) => unknown
        return (...input: unknown[]) => {
          if (this.#isKilled) return Promise.reject(new Killed())
          return Reflect.apply(method, of, input)
        }
      },
    })
  }

  /** Leaves leases and announcement as they are. */
  async kill(): Promise<void> {
    this.#isKilled = true
    await this.stop()
  }

  async stop(): Promise<void> {
    await this.#shares.stop()
    await Promise.all(this.#loops.map((loop) => loop.stop()))
  }
}

describe('keepers that share the markets', function () {
  this.timeout(60_000)
  let db: Db
  let turns: Map<number, Turn[]>
  let running: SharingKeeper[]

  beforeEach(async () => {
    db = createDb(
      createPool({
        url: await freshDatabase(),
        connections: 12,
        name: 'shares test',
        idleInTransactionMs: 0,
      }),
    )
    turns = new Map(IDS.map((market) => [market, []]))
    running = []
  })

  afterEach(async () => {
    await Promise.all(running.map((keeper) => keeper.stop()))
    for (const [market, of] of turns) {
      for (const [at, turn] of of.entries()) {
        const before = of[at - 1]
        if (before === undefined || before.token === turn.token)
          expect(before?.owner ?? turn.owner, `one owner of market ${market} per token`).to.equal(turn.owner)
        else expect(turn.token, `tokens of market ${market}`).to.be.greaterThan(before.token)
      }
    }
    await db.destroy()
  })

  function start(owner: string): SharingKeeper {
    const keeper = new SharingKeeper(db, owner, turns)
    running.push(keeper)
    return keeper
  }

  async function counts(): Promise<Record<string, number>> {
    const { rows } = await sql<{ owner: string; count: number }>`
      select owner, count(*) as count from leases where expires_at > extract(epoch from clock_timestamp()) * 1000 group by owner
    `.execute(db)
    return Object.fromEntries(rows.map(({ owner, count }) => [owner, count]))
  }

  const untilOwned = (expected: Record<string, number>) =>
    until(async () => {
      const now = await counts()
      return Object.entries(expected).every(([owner, count]) => (now[owner] ?? 0) === count)
    })

  /** Every market has a turn after now. */
  async function untilTurns(): Promise<void> {
    const before = new Map([...turns].map(([market, of]) => [market, of.length]))
    await until(async () => [...turns].every(([market, of]) => of.length > (before.get(market) ?? 0)))
  }

  it('when keepers join, each gets its share from those that have more, and every market keeps its turns', async () => {
    const one = start('one')
    await untilOwned({ one: 12 })
    const two = start('two')
    await untilOwned({ one: 6, two: 6 })
    expect(one.givenBack).to.be.at.least(6)
    start('three')
    await untilOwned({ one: 4, two: 4, three: 4 })
    expect(two.givenBack).to.be.at.least(2)
    await untilTurns()
  })

  it('when a keeper is killed, the survivors acquire its markets after the lease; when one stops, at once', async () => {
    const keepers = [start('one'), start('two'), start('three')]
    await untilOwned({ one: 4, two: 4, three: 4 })
    await keepers[0]?.kill()
    await untilOwned({ one: 0, two: 6, three: 6 })
    await keepers[1]?.stop()
    await untilOwned({ two: 0, three: 12 })
    await untilTurns()
    const { rows } = await sql<{ owner: string }>`select owner from keepers`.execute(db)
    expect(rows).to.deep.equal([{ owner: 'three' }])
  })

  it('when the turns of a keeper are late, it gives back markets to one that is on time', async () => {
    const slow = start('late')
    start('prompt')
    await untilOwned({ late: 6, prompt: 6 })
    slow.lateMs = 1_000
    await until(async () => {
      const { late = 0, prompt = 0 } = await counts()
      return late < 6 && late + prompt === MARKETS
    })
    await untilTurns()
  })
})
