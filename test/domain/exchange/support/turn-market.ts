/** A perpetual market in a state in memory, whose journal is written by the rules: placements reserve as accepted ones do, and turns decide the rest. */
import { apply, type Entry } from '../../../../domain/exchange/apply.ts'
import { MarketState } from '../../../../domain/exchange/decide/turn/market-state.ts'
import { NO_MEMORY, type TurnMemory } from '../../../../domain/exchange/decide/turn/memory.ts'
import {
  firstStep,
  marketTurn,
  type TurnAnswer,
  type TurnCommand,
} from '../../../../domain/exchange/decide/turn/turn.ts'
import { type Decider, type Decision, decideOn } from '../../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../../domain/exchange/inputs.ts'
import { createState, digestOf } from '../../../../domain/exchange/state.ts'
import { toHex } from '../../../../domain/hex.ts'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../../../domain/journal/journal-row.ts'
import { priceBand } from '../../../../domain/market/band.ts'
import { priceOf } from '../../../../domain/market/market.ts'
import { toStoredSpec } from '../../../../domain/market/stored-spec.ts'
import { isReservable, reservable } from '../../../../domain/orders/open-order.ts'
import {
  isAlwaysReduceOnly,
  isConditional,
  type OrderType,
  type Side,
} from '../../../../domain/orders/order.ts'
import { reservationsOf, reservedPriceOf } from '../../../../domain/orders/reservation.ts'
import type { OracleReport } from '../../../../domain/settlement/settlement.ts'
import type { Millis, OrderHash, Quote, Seq, Steps, Ticks, UserId } from '../../../../domain/units.ts'
import { perpetual } from '../../../support/markets.ts'

const MARKET = marketShard(perpetual.marketId)
const hexOf = (number: number, bytes: number): string => `0x${number.toString(16).padStart(bytes * 2, '0')}`

export interface AnyPlacement {
  readonly by: number
  readonly side: Side
  readonly steps: number
  /** In ticks; 0: a market order. */
  readonly limit: number
  readonly type?: OrderType
  readonly trigger?: number
  readonly leverage?: number
  readonly reduceOnly?: boolean
  /** In Unix seconds. */
  readonly expiration?: number
}

export class TurnMarket {
  readonly state = createState()
  readonly rows: JournalRow[] = []
  now = 1_800_000_000_000
  /** In ticks. */
  oracle = 1000
  observedAt = this.now
  memory: TurnMemory = NO_MEMORY
  readonly #decider = marketTurn((order) => hexOf(Number(order.salt), 32) as OrderHash)

  constructor(users: number, deposit = 10n ** 26n) {
    this.#write(MARKET, { kind: 'market_listed', spec: toStoredSpec(perpetual) })
    for (let user = 1; user <= users; user++) {
      this.#write(ACCOUNTS_SHARD, { kind: 'user_created', user_id: user, address: hexOf(user, 20), at: 0 })
      this.#write(ACCOUNTS_SHARD, {
        kind: 'balance_changed',
        cause: 'deposit',
        rollback: false,
        user_id: user,
        free_delta: deposit.toString(),
        pending_withdrawal_delta: '0',
        block: 1,
        tx_hash: '0x',
        log_index: user,
        at: 0,
      })
    }
  }

  get inputs(): Inputs {
    const report: OracleReport = {
      price: priceOf(perpetual, this.oracle as Ticks),
      observedAt: this.observedAt as Millis,
      signatures: '0x',
    }
    return {
      now: this.now as Millis,
      report: () => report,
      session: () => null,
      reportRules: () => ({
        kind: perpetual.kind,
        tick: perpetual.tick,
        maxAge: 10_000 as Millis,
        moveBase: 1_000_000n,
        moveSlope: 0n,
        moveWindow: 1 as Millis,
      }),
      headTime: this.now as Millis,
      chainSeenAt: this.now as Millis,
      limits: { oracleMaxAgeMs: 10_000, chainMaxAgeMs: 10_000 },
    }
  }

  get head(): number {
    return this.state.heads.get(perpetual.marketId)?.seq ?? 0
  }

  /** Time passes, and the oracle reports this price. */
  wait(ms: number, oracle = this.oracle): void {
    this.now += ms
    this.oracle = oracle
    this.observedAt = this.now
  }

  /** False if the account cannot pay for the order. */
  place(placement: AnyPlacement): boolean {
    const { by, side, steps, limit, trigger = 0, leverage = 5, expiration = 0 } = placement
    const { type = limit === 0 ? 'MARKET' : 'LIMIT' } = placement
    const { reduceOnly = isAlwaysReduceOnly(type) } = placement
    const account = by as UserId
    const market = new MarketState(this.state, perpetual.marketId)
    const terms = { side, type, price: limit as Ticks, trigger: trigger as Ticks }
    const band = priceBand(perpetual, priceOf(perpetual, this.oracle as Ticks))
    const mine = {
      seq: (this.head + 1) as Seq,
      side,
      leverage,
      reduceOnly,
      limit: limit as Ticks,
      remaining: steps as Steps,
      reservedPrice: reservedPriceOf(perpetual, terms, band),
    }
    const others = market.liveOrders([account]).filter(isReservable).map(reservable)
    const all = reservationsOf(perpetual, market.positions.of(account).size, [...others, mine])
    const own = all.find(({ seq }) => seq === mine.seq)
    const amount = own?.amount ?? (0n as Quote)
    const { free, reserved } = market.fundsOf(account)
    if (reserved + amount > free) return false
    this.#write(MARKET, {
      kind: 'order_placed',
      order_id: `${perpetual.marketId}-${mine.seq}`,
      user_id: by,
      maker: hexOf(by, 20),
      signer: hexOf(by, 20),
      hash: hexOf(mine.seq, 32),
      salt: mine.seq,
      side,
      type,
      price: limit,
      quantity: steps,
      trigger,
      leverage,
      reduce_only: reduceOnly,
      expiration,
      alive_until: expiration,
      status: isConditional(type) ? 'PENDING_TRIGGER' : 'OPEN',
      accepted_at: this.now,
      openable: own?.openable ?? 0,
      reserved: amount.toString(),
      reserved_price: mine.reservedPrice,
    })
    return true
  }

  /** Decides a command of traders or workers, and applies its rows. */
  take<Command, Answer>(decider: Decider<Command, Answer, never>, command: Command): Decision<Answer, never> {
    const before = digestOf(this.state)
    const decision = decideOn<Command, Answer, never>(this.state, this.inputs, { decider, command })
    if (toHex(digestOf(this.state)) !== toHex(before)) throw new Error('a decision has changed the state')
    for (const { shard, row } of decision.entries) this.#write(shard, JSON.parse(JSON.stringify(row)))
    return decision
  }

  /** One step of a turn, whose rows are not applied. */
  decide(command: TurnCommand): Decision<TurnAnswer, TurnCommand> {
    return decideOn(this.state, this.inputs, { decider: this.#decider, command })
  }

  /** Runs a whole turn. Returns the rows of each of its steps. */
  turn(check: (decision: Decision<TurnAnswer, TurnCommand>, command: TurnCommand) => void = () => {}) {
    const steps: (readonly Entry[])[] = []
    let command: TurnCommand | null = firstStep(perpetual.marketId, this.memory)
    while (command !== null) {
      const decision: Decision<TurnAnswer, TurnCommand> = this.decide(command)
      check(decision, command)
      for (const { shard, row } of decision.entries) this.#write(shard, row)
      this.state.core.undo.clear()
      this.memory = decision.answer.memory
      steps.push(decision.entries)
      command = decision.next
    }
    return steps
  }

  #write(shard: string, row: JournalRow): void {
    const head = this.state.heads.get((shard === MARKET ? perpetual.marketId : 0) as never)?.seq ?? 0
    apply(this.state, { shard, seq: head + 1, row })
    this.state.core.undo.clear()
    this.rows.push(row)
  }
}
