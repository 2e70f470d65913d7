/** Moves the oracle price of a running exchange until the keeper liquidates a position, under faults, and waits until that is over. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../../client/client.ts'
import { settled } from '../../../stack/audit/audit.ts'
import type { Stack } from '../../../stack/stack.ts'
import { waitFor } from '../../support/patience.ts'
import { type Place, TRADERS } from './commands.ts'
import type { FaultInjector } from './fault-injector.ts'
import type { Crash, MarketId } from './faults.ts'
import type { Prices } from './prices.ts'

/** Moves of the price in thousandths, from below the threshold of the trader with little margin to beyond its margin. */
const MOVES: Readonly<Record<MarketId, readonly [least: number, most: number]>> = {
  1: [50, 90],
  3: [145, 235],
  4: [145, 235],
}

/** Two auctions after the step of a liquidation, and the block of an action. */
const STEPS_MS = 1_200
/** The contracts accept a move of a tenth within a second. */
const MS_PER_THOUSANDTH = 10
const ACTION_LIMIT_MS = 20_000
/** Longer than a keeper's lease, a late action and its resending together. */
const OVER_LIMIT_MS = 120_000

export interface CrashParts {
  readonly stack: Stack
  readonly injector: FaultInjector
  readonly prices: Prices
  readonly reader: Client
  /** Applies everything that was written so far to the model, at the present prices. */
  readonly catchUp: () => Promise<void>
  readonly count: (name: string) => void
}

export class Crashes {
  readonly #parts: CrashParts

  constructor(parts: CrashParts) {
    this.#parts = parts
  }

  /** No change is due at its start. At its end the price is still that of the crash, and liquidations may run. */
  async play(crash: Crash, place: (by: number, order: Place) => Promise<unknown>): Promise<void> {
    const { injector, prices, reader, count } = this.#parts
    const { market, side, share, faults } = crash
    const [least, most] = MOVES[market]
    count('crashes')
    await injector.openLeveraged(crash, place)
    const distance = Math.round(least + ((most - least) * share) / 100)
    const moved = side === 'LONG' ? -distance : distance
    if (crash.isCushioned) await this.#cushion(crash, prices.moved(market) + moved, place)
    await this.#catchUp()
    await prices.move(market, moved, reader)
    await injector.inject(faults, () => Promise.reject(new Error('no fault of a crash places orders')))
    await sleep(STEPS_MS + distance * MS_PER_THOUSANDTH)
    // On a slow machine an action can end unsent and be decided again. The liquidation goes on at the next price.
    for (const deadline = Date.now() + ACTION_LIMIT_MS; Date.now() < deadline; await sleep(100))
      if ((await this.#running(['inheriting', 'deleveraging'])) === 0) break
    await this.#catchUp()
  }

  async #cushion(
    { market, by, side, units }: Crash,
    limit: number,
    place: (by: number, order: Place) => Promise<unknown>,
  ): Promise<void> {
    const order = { kind: 'place', type: 'LIMIT', trigger: 0, life: 0, key: null, leverage: 2 } as const
    await place((by + 1) % TRADERS, { ...order, market, side, units, limit, reduceOnly: false })
  }

  /** What a crash has not closed is healthy again at the price after it. */
  async untilOver(): Promise<void> {
    await waitFor(
      () => this.#running(['waiting', 'closing', 'inheriting', 'deleveraging']),
      (running) => running === 0,
      { budgetMs: OVER_LIMIT_MS },
    )
  }

  async #catchUp(): Promise<void> {
    await settled(this.#parts.stack.db, OVER_LIMIT_MS)
    await this.#parts.catchUp()
  }

  async #running(
    stages: readonly ('waiting' | 'closing' | 'inheriting' | 'deleveraging')[],
  ): Promise<number> {
    const running = this.#parts.stack.db.selectFrom('liquidations').select('user_id')
    return (await running.where('stage', 'in', stages).execute()).length
  }
}
