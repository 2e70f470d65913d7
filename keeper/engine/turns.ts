/**
 * The engine's own commands: market turns, funding, due dead-man switches, and releases of ended entries. They are
 * submitted like client commands, so that each class has its share.
 */

import { NO_MEMORY, type TurnMemory } from '../../domain/exchange/decide/turn/memory.ts'
import { firstStep } from '../../domain/exchange/decide/turn/turn.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import { BANK } from '../../domain/exchange/tables/chain.ts'
import type { MarketId, Millis } from '../../domain/units.ts'
import type { Logger } from '../../service/logger.ts'
import {
  type AnswerOf,
  accountOf,
  type CommandKind,
  type CommandOf,
  classOf,
  type ExchangeCommand,
} from './commands.ts'
import type { ConnectionDeadlines, DueConnection } from './connection-deadlines.ts'
import type { Reply, Request } from './owner.ts'
import type { EngineClock, Timer } from './ports.ts'
import { Releases } from './releases.ts'

export interface TurnPorts {
  readonly state: ExchangeState
  readonly submit: (request: Request<ExchangeCommand>) => Promise<Reply<unknown>>
  readonly deadlines: ConnectionDeadlines
  readonly clock: EngineClock
  readonly timer: Timer
  readonly logger: Logger
  /** A turn has begun this much after it was due. */
  readonly onTurn: (marketId: MarketId, lateMs: number) => void
}

interface TurningMarket {
  readonly marketId: MarketId
  memory: TurnMemory
  isTurning: boolean
  /** When a further turn became due meanwhile; null if none did. */
  missedAt: number | null
}

export interface TurnIntervals {
  readonly auctionMs: number
  /** Between two funding updates of a market. */
  readonly fundingMs: Millis
}

const FUNDING_POLL_MS = 1_000
const SWITCH_POLL_MS = 250
const LISTING_POLL_MS = 500
const RELEASE_POLL_MS = 10_000
/** Markets' turns are answered every 200 ms. Without an answer for so long nothing is stored, so connections cannot renew their switches. */
const STALL_MS = 1_000

export class Turns {
  readonly #ports: TurnPorts
  readonly #intervals: TurnIntervals
  readonly #markets = new Set<MarketId>()
  readonly #phases: TurningMarket[][] = []
  readonly #releases = new Releases()
  #isStopped = false
  /** By the monotonic clock. */
  #answeredAt: number
  #wasStalled = false

  constructor(ports: TurnPorts, intervals: TurnIntervals) {
    this.#ports = ports
    this.#intervals = intervals
    this.#answeredAt = ports.clock.monotonic()
    this.#addListed()
    void this.#every(SWITCH_POLL_MS, () => this.#fireSwitches())
    void this.#every(RELEASE_POLL_MS, () => this.#release())
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Markets that were listed since the last look join the last phase, or begin the next one. */
  #addListed(): void {
    if (this.#isStopped) return
    const { state, timer } = this.#ports
    for (const { market_id } of state.markets.rows()) {
      const marketId = market_id as MarketId
      if (this.#markets.has(marketId)) continue
      const phase = Math.floor(this.#markets.size / PHASE_MARKETS)
      this.#markets.add(marketId)
      const market: TurningMarket = { marketId, memory: NO_MEMORY, isTurning: false, missedAt: null }
      const members = this.#phases[phase]
      if (members === undefined) this.#beginPhase(phase, market)
      else members.push(market)
    }
    timer.after(LISTING_POLL_MS, () => this.#addListed())
  }

  /** Phases are spread over the interval, so that not all markets' turns begin at once. */
  #beginPhase(phase: number, market: TurningMarket): void {
    const { auctionMs } = this.#intervals
    const markets = [market]
    const delay = (phase * PHI * auctionMs) % auctionMs
    this.#phases[phase] = markets
    this.#ports.timer.after(delay, () => void this.#turns(markets))
    this.#ports.timer.after(delay, () =>
      this.#every(FUNDING_POLL_MS, async () => {
        await Promise.all(markets.map(({ marketId }) => this.#updateFunding(marketId)))
      }),
    )
  }

  async #turns(markets: readonly TurningMarket[]): Promise<void> {
    const { auctionMs } = this.#intervals
    const { clock } = this.#ports
    let dueAt = clock.monotonic()
    while (!this.#isStopped) {
      // A turn that takes longer than the interval is followed by one more, however many it has missed.
      for (const market of markets)
        if (market.isTurning) market.missedAt ??= dueAt
        else void this.#turnOf(market, dueAt)
      dueAt += auctionMs
      const missed = Math.floor((clock.monotonic() - dueAt) / auctionMs)
      if (missed > 0) dueAt += missed * auctionMs
      await this.#pause(dueAt - clock.monotonic())
    }
  }

  async #turnOf(market: TurningMarket, firstDueAt: number): Promise<void> {
    const { clock, onTurn } = this.#ports
    market.isTurning = true
    for (let dueAt: number | null = firstDueAt; dueAt !== null && !this.#isStopped; ) {
      onTurn(market.marketId, clock.monotonic() - dueAt)
      market.missedAt = null
      market.memory = await this.#turn(market.marketId, market.memory)
      dueAt = market.missedAt
    }
    market.isTurning = false
  }

  /** Memory for the next turn; without an answer, the memory of the previous turn. */
  async #turn(marketId: MarketId, memory: TurnMemory): Promise<TurnMemory> {
    const answer = await this.#ask<'turn'>({ kind: 'turn', turn: firstStep(marketId, memory) })
    if (answer === null) return memory
    const { refused } = answer
    if (refused.length > 0)
      this.#ports.logger.error(
        { market_id: marketId, refused },
        'orders that the contract would reject were left out',
      )
    return answer.memory
  }

  async #updateFunding(marketId: MarketId): Promise<void> {
    const { state, clock } = this.#ports
    const pausedUntil = (state.bank.get(BANK)?.pause_ends_at ?? 0) * 1_000
    await this.#ask<'update_funding'>({
      kind: 'update_funding',
      marketId,
      interval: this.#intervals.fundingMs,
      isBankPaused: clock.now() < pausedUntil,
    })
  }

  async #fireSwitches(): Promise<void> {
    const { state, clock, deadlines } = this.#ports
    const now = clock.now()
    const due = this.#dueConnections(now)
    if (due.length === 0 && state.switchIndex.due(now).length === 0) return
    if ((await this.#ask<'fire_switches'>({ kind: 'fire_switches', due })) !== null) deadlines.fired(due)
  }

  /** None while nothing is stored. After that each connection has its whole time again, as after a takeover. */
  #dueConnections(now: Millis): readonly DueConnection[] {
    const { state, clock, deadlines } = this.#ports
    if (clock.monotonic() - this.#answeredAt > STALL_MS) {
      this.#wasStalled = true
      return []
    }
    if (this.#wasStalled) deadlines.restart(state, now)
    this.#wasStalled = false
    return deadlines.due(now)
  }

  async #release(): Promise<void> {
    const { state, clock } = this.#ports
    for (const command of this.#releases.poll(state, clock.now())) await this.#ask<'release_ended'>(command)
  }

  async #ask<Kind extends CommandKind>(command: CommandOf<Kind>): Promise<AnswerOf<Kind> | null> {
    const reply = await this.#ports.submit({
      command,
      class: classOf(command),
      account: accountOf(command),
      deadline: Number.POSITIVE_INFINITY,
    })
    if (!('answer' in reply)) return null
    this.#answeredAt = this.#ports.clock.monotonic()
    return reply.answer as AnswerOf<Kind>
  }

  async #every(ms: number, work: () => Promise<void>): Promise<void> {
    while (!this.#isStopped) {
      await work()
      await this.#pause(ms)
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#ports.timer.after(Math.max(0, ms), resolve)
    })
  }
}

/**
 * Markets whose turns start together, so that their batches share a journal group, a table write, a projection chunk
 * and often a block. The last is decided a few ms later.
 */
const PHASE_MARKETS = 4

/** Multiples of it spread evenly over the unit interval, however many there are. */
const PHI = 0.618_033_988_75
