/** A state that changes by decisions alone: two markets, and users with balances. */
import { applyAll } from '../../../../../domain/exchange/apply.ts'
import { type Decider, decideOn } from '../../../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../../../domain/exchange/inputs.ts'
import { createState, digestOf } from '../../../../../domain/exchange/state.ts'
import { toHex } from '../../../../../domain/hex.ts'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../../../../domain/journal/journal-row.ts'
import { toStoredSpec } from '../../../../../domain/market/stored-spec.ts'
import type { OrderType, SignedOrder } from '../../../../../domain/orders/order.ts'
import type {
  Address,
  MarketId,
  Millis,
  OrderHash,
  Price,
  Seconds,
  Steps,
  Ticks,
  UserId,
} from '../../../../../domain/units.ts'
import { binary, e18, perpetual } from '../../../../support/markets.ts'

export const MARKETS = [perpetual, binary]
export const addressOf = (user: number): Address => `0x${user.toString(16).padStart(40, '0')}` as Address

export interface OrderTerms {
  readonly by: number
  readonly market?: number
  readonly isLong?: boolean
  readonly type?: OrderType
  readonly offset?: number
  readonly quantity?: number
  readonly salt: number
}

/** The digits of the hash differ for every other order. */
export function orderOf(terms: OrderTerms): SignedOrder {
  const { by, market = 0, isLong = true, type = 'LIMIT', offset = 0, quantity = 20, salt } = terms
  const spec = MARKETS[market] as typeof perpetual
  const middle = market === 0 ? 1_000 : 500
  const text = [market, by, Number(isLong), type, offset, quantity, salt].join('/')
  const maker = addressOf(by)
  return {
    marketId: spec.marketId,
    maker,
    side: isLong ? 'LONG' : 'SHORT',
    type,
    price: (type === 'MARKET' ? 0 : middle + offset) as Ticks,
    quantity: quantity as Steps,
    trigger: 0 as Ticks,
    leverage: 2,
    reduceOnly: false,
    expiration: 0 as Seconds,
    salt: BigInt(salt),
    hash: `0x${Buffer.from(text).toString('hex').padEnd(64, '0').slice(0, 64)}` as OrderHash,
    signer: maker,
    signature: `0x${'11'.repeat(66)}`,
  }
}

export class DecidedExchange {
  readonly state = createState(7)
  now = 1_800_000_000_000 as Millis
  chainSeenAt: Millis | null = this.now

  constructor(balances: readonly string[]) {
    for (const spec of MARKETS) this.write(spec.marketId, { kind: 'market_listed', spec: toStoredSpec(spec) })
    for (const [at, balance] of balances.entries()) {
      this.write(0, { kind: 'user_created', user_id: at + 1, address: addressOf(at + 1), at: this.now })
      this.deposit(at + 1, e18(balance))
    }
  }

  get inputs(): Inputs {
    const { now, chainSeenAt } = this
    const prices = new Map<number, bigint>([
      [perpetual.marketId, e18('100')],
      [binary.marketId, e18('0.5')],
    ])
    return {
      now,
      report: (marketId) => ({
        price: prices.get(marketId) as Price,
        observedAt: now,
        signatures: '0x',
      }),
      session: () => null,
      reportRules: () => null,
      headTime: now,
      chainSeenAt,
      limits: { oracleMaxAgeMs: 5_000, chainMaxAgeMs: 5_000 },
    }
  }

  digest(): string {
    return toHex(digestOf(this.state))
  }

  /** Applies a row that no trader has caused. */
  write(marketId: number, row: JournalRow): void {
    const seq = (this.state.heads.get(marketId as MarketId)?.seq ?? 0) + 1
    const shard = marketId === 0 ? ACCOUNTS_SHARD : marketShard(marketId)
    applyAll(this.state, [{ shard, seq, row }])
  }

  deposit(user: number, amount: bigint): void {
    this.write(0, {
      kind: 'balance_changed',
      cause: 'deposit',
      rollback: false,
      user_id: user,
      free_delta: amount.toString(),
      pending_withdrawal_delta: '0',
      block: 1,
      tx_hash: '0x',
      log_index: 0,
      at: this.now,
    })
  }

  /** Decides, checks that nothing has changed, and applies the rows. */
  take<Command, Answer, Next>(decider: Decider<Command, Answer, Next>, command: Command) {
    const before = this.digest()
    const decision = decideOn<Command, Answer, Next>(this.state, this.inputs, { decider, command })
    if (this.digest() !== before) throw new Error('a decision has changed the state')
    applyAll(this.state, structuredClone(decision.entries))
    this.now = (this.now + 1) as Millis
    this.chainSeenAt = this.chainSeenAt === null ? null : this.now
    return decision
  }

  /** All steps of a long command: the last answer, and how many rows each step has written. */
  takeAll<Command, Answer, Next extends Command>(decider: Decider<Command, Answer, Next>, command: Command) {
    const steps: number[] = []
    for (let next: Command = command; ; ) {
      const decision = this.take(decider, next)
      steps.push(decision.entries.length)
      if (decision.next === null) return { answer: decision.answer, steps }
      next = decision.next
    }
  }
}

export const userOf = (by: number): UserId => by as UserId
