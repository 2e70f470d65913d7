/**
 * Generated journals of one market with funding: trades, forced fills, inheritances, updates, the market's end and rollbacks, beside deposits
 * and withdrawals. The reference model pays every open position at every update and at every change, one row each.
 */
import fc from 'fast-check'
import type { BalanceChanged } from '../../../domain/journal/accounts-row.ts'
import type { FundingUpdatedRow, MarketEndedRow } from '../../../domain/journal/action-rows.ts'
import type { FillSettled, PartSettled, PositionChange } from '../../../domain/journal/batch-rows.ts'
import type { PositionsMoved } from '../../../domain/journal/journal-row.ts'
import type { TransactionType } from '../../../domain/journal/transaction-type.ts'

export const USERS = [1, 2, 3, 4] as const

type MarketEvent = PartSettled | PositionsMoved | FundingUpdatedRow | MarketEndedRow

/** A transaction as the model expects it. */
export interface ExpectedTransaction {
  readonly user_id: number
  readonly type: TransactionType
  readonly amount: bigint
  readonly available: bigint
  readonly funding: bigint | null
  readonly tx_hash: string
  readonly at: number
}

const anyStep = fc.record({
  act: fc.constantFrom(
    ...(['trade', 'trade', 'trade', 'accrue', 'accrue', 'accrue', 'update', 'update', 'inherit'] as const),
    'force',
    ...(['rollback', 'deposit', 'withdraw', 'block', 'block', 'ledger rollback', 'end'] as const),
  ),
  a: fc.nat(3),
  b: fc.nat(3),
  steps: fc.integer({ min: 1, max: 9 }),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

export class FundingHistory {
  readonly market: MarketEvent[] = []
  readonly accounts: BalanceChanged[] = []
  readonly sizes = new Map<number, number>()
  index = 0n
  #rate = 0n
  #block = 1
  #actions = 0
  #logs = 0
  #isEnded = false
  /** Rows up to this number have no index, as earlier versions wrote them. */
  readonly #old: number
  readonly #live: { readonly row: MarketEvent; readonly index: bigint; readonly before: [bigint, bigint] }[] =
    []
  #ledger: BalanceChanged[] = []

  constructor(old: number) {
    this.#old = old
  }

  play({ act, a, b, steps }: Step): void {
    const [first, second] = [USERS[a] as number, USERS[b] as number]
    if (act === 'block') this.#block++
    if (act === 'accrue') this.index += this.#rate * BigInt(steps)
    if (act === 'trade' && !this.#isEnded) this.#trade(first, second, steps)
    if (act === 'force' && !this.#isEnded && a !== b) this.#trade(first, second, steps, true)
    if (act === 'update' && !this.#isEnded) this.#update(BigInt(steps - 5) * 1_000_003n)
    if (act === 'inherit') this.#inherit(first, second)
    if (act === 'end' && !this.#isEnded && steps === 9) this.#end()
    if (act === 'rollback') for (let at = 0; at < steps; at++) this.#rollBack()
    if (act === 'deposit' || act === 'withdraw') this.#move(first, act, steps)
    if (act === 'ledger rollback') this.#rollBackLedger()
  }

  get #mined() {
    const block = this.#block
    return { block, tx_hash: `0x${block}-${++this.#logs}`, log_index: this.#logs, at: block * 1000 }
  }

  get #isOld(): boolean {
    return this.market.length < this.#old
  }

  /** The index at which a row counts: rows without one count at that of the last update. */
  #indexOfRow(): bigint {
    const updates = this.#live.filter(({ row }) => isUpdate(row))
    return this.#isOld ? (updates.at(-1)?.index ?? 0n) : this.index
  }

  #push(row: MarketEvent, index: bigint, before: [bigint, bigint]): void {
    this.#live.push({ row, index, before })
    this.market.push(row)
    if (isUpdate(row)) return
    for (const { user_id, size_delta } of row.positions) this.#resize(user_id, size_delta)
  }

  #resize(userId: number, delta: number): void {
    this.sizes.set(userId, (this.sizes.get(userId) ?? 0) + delta)
  }

  /** `isForced`: the seller is liquidated. */
  #trade(buyer: number, seller: number, steps: number, isForced = false): void {
    const positions =
      buyer === seller ? [change(buyer, 0)] : [change(buyer, steps, 11), change(seller, -steps, -7 * steps)]
    const index = this.#indexOfRow()
    const batch_id = ++this.#actions
    const mined = this.#mined
    const row: PartSettled = {
      kind: 'part_settled',
      ...{ rollback: false, batch_id, part: 1, parts: 1, action_id: batch_id, price: 100 },
      ...(this.#isOld ? {} : { funding_index: `${index}` }),
      // A part is not mined before its auction, whose clock may be ahead of the block's.
      ...{ ...mined, at: mined.at + (steps % 3) * 700 },
      ...{
        fills: isForced ? [forcedFill(seller, steps), ownFill(seller)] : [],
        positions,
        orders: [],
        position_closed: [],
      },
    }
    this.#push(row, index, [this.index, this.#rate])
  }

  #inherit(account: number, backstop: number): void {
    const size = this.sizes.get(account) ?? 0
    if (account === backstop || size === 0) return
    const index = this.#indexOfRow()
    const isClaim = this.#isEnded
    const row: PositionsMoved = {
      kind: 'positions_moved',
      ...{ cause: isClaim ? 'claimed' : 'inherited', rollback: false },
      ...(isClaim || this.#isOld ? {} : { action_id: ++this.#actions }),
      ...(this.#isOld ? {} : { funding_index: `${index}` }),
      ...this.#mined,
      positions: isClaim ? [change(account, -size)] : [change(account, -size, -5), change(backstop, size, 9)],
      balances: isClaim ? payoutOf(account) : [{ user_id: backstop, free_delta: '-4' }],
    }
    this.#push(row, index, [this.index, this.#rate])
  }

  #update(rate: bigint): void {
    const row: FundingUpdatedRow = {
      kind: 'funding_updated',
      ...{ rollback: false, action_id: ++this.#actions, ...this.#mined, as_of: 1, rate: `${rate}` },
      ...{ valid_until: 1, funding_index: `${this.index}`, oracle_price: '1', oracle_at: 1 },
    }
    this.#push(row, this.index, [this.index, this.#rate])
    this.#rate = rate
  }

  #end(): void {
    const row: MarketEndedRow = {
      kind: 'market_ended',
      ...{ rollback: false, action_id: ++this.#actions, ...this.#mined, how: 'frozen', price: '1' },
      ...{ price_at: 1, funding_index: `${this.index}`, mode_before: 'open' },
    }
    this.#push(row, this.index, [this.index, this.#rate])
    this.#rate = 0n
    this.#isEnded = true
  }

  /** Undoes the newest row. The index and the rate are those of that time again. */
  #rollBack(): void {
    const last = this.#live.pop()
    if (last === undefined) return
    const { row, before } = last
    ;[this.index, this.#rate] = before
    if (row.kind === 'market_ended') this.#isEnded = false
    this.market.push({ ...row, rollback: true })
    if (!isUpdate(row))
      for (const { user_id, size_delta } of row.positions) this.#resize(user_id, -size_delta)
  }

  #move(userId: number, act: 'deposit' | 'withdraw', amount: number): void {
    const isDeposit = act === 'deposit'
    const row: BalanceChanged = {
      kind: 'balance_changed',
      ...{ cause: isDeposit ? 'deposit' : 'withdrawal_request', rollback: false, user_id: userId },
      ...{
        free_delta: `${isDeposit ? amount : -amount}`,
        pending_withdrawal_delta: isDeposit ? '0' : `${amount}`,
      },
      ...this.#mined,
    }
    this.#ledger.push(row)
    this.accounts.push(row)
    if (isDeposit) return
    // The payout of an earlier request is no transaction; fees of the treasury are a deposit.
    this.accounts.push({ ...row, cause: 'withdrawal', free_delta: '0', ...this.#mined })
    const collected = { ...row, cause: 'fees_collected', free_delta: '3', ...this.#mined } as const
    this.#ledger.push(collected)
    this.accounts.push(collected)
  }

  #rollBackLedger(): void {
    const last = this.#ledger.pop()
    if (last !== undefined) this.accounts.push({ ...last, rollback: true })
  }

  expected(): ExpectedTransaction[] {
    const ledger = this.#ledger.map(({ cause, user_id, free_delta, tx_hash, at }): ExpectedTransaction => {
      const type = cause === 'withdrawal_request' ? 'withdrawal' : 'deposit'
      const available = BigInt(free_delta)
      return { user_id, type, amount: absolute(available), available, funding: null, tx_hash, at }
    })
    return [...ledger, ...this.#moves(), ...this.#payments()]
  }

  /** Rows without an index count at 0: when they were written, no rate was ever set. */
  #moves(): ExpectedTransaction[] {
    return this.#live.flatMap(({ row }) => {
      if (isUpdate(row)) return []
      if (row.kind === 'positions_moved' && row.cause === 'claimed') return payouts(row)
      if (row.kind === 'part_settled') return forcedIn(row)
      const index = BigInt(row.funding_index ?? '0')
      return row.positions.map(({ user_id, size_delta, folded_margin_delta }): ExpectedTransaction => {
        const amount = absolute(BigInt(folded_margin_delta) - BigInt(size_delta) * index)
        const own = row.balances.find((each) => each.user_id === user_id)
        const [available, tx_hash, at] = [BigInt(own?.free_delta ?? 0), row.tx_hash, row.at]
        return { user_id, type: 'liquidation', amount, available, funding: null, tx_hash, at }
      })
    })
  }

  /** What each account receives from its last payment until `this.index`. */
  accrued(): Map<number, bigint> {
    const { sizes, paid } = this.#replay()
    return new Map(
      USERS.map((user) => [user, -BigInt(sizes.get(user) ?? 0) * (this.index - (paid.get(user) ?? 0n))]),
    )
  }

  #payments(): ExpectedTransaction[] {
    return this.#replay().payments
  }

  #replay() {
    const sizes = new Map<number, number>()
    const paid = new Map<number, bigint>()
    const payments: ExpectedTransaction[] = []
    for (const { row, index } of this.#live) {
      const touched = isUpdate(row) ? [...USERS] : row.positions.map(({ user_id }) => user_id)
      for (const user_id of touched) {
        const funding = -BigInt(sizes.get(user_id) ?? 0) * (index - (paid.get(user_id) ?? 0n))
        paid.set(user_id, index)
        const { tx_hash, at } = row
        const [type, amount] = ['funding_payment' as const, absolute(funding)]
        if (funding !== 0n) payments.push({ user_id, type, amount, available: 0n, funding, tx_hash, at })
      }
      if (isUpdate(row)) continue
      for (const { user_id, size_delta } of row.positions)
        sizes.set(user_id, (sizes.get(user_id) ?? 0) + size_delta)
    }
    return { sizes, paid, payments }
  }
}

const isUpdate = (row: MarketEvent): row is FundingUpdatedRow | MarketEndedRow =>
  row.kind === 'funding_updated' || row.kind === 'market_ended'

const absolute = (wei: bigint): bigint => (wei < 0n ? -wei : wei)

const change = (userId: number, delta: number, folded = 0): PositionChange => ({
  ...{ user_id: userId, size_delta: delta, entry_notional_delta: '0', folded_margin_delta: `${folded}` },
  ...{ leverage_before: 1, leverage_after: 1 },
})

/** The first account has nothing to be paid. */
const payoutOf = (account: number): PositionsMoved['balances'] =>
  account === USERS[0] ? [] : [{ user_id: account, free_delta: '7' }]

const payouts = ({ balances, tx_hash, at }: PositionsMoved): ExpectedTransaction[] =>
  balances.map(({ user_id, free_delta }) => {
    const paid = BigInt(free_delta)
    return {
      user_id,
      type: 'market_delisting_payout',
      amount: paid,
      available: paid,
      funding: null,
      tx_hash,
      at,
    }
  })

const fillOf = (userId: number, id: string, free: number): FillSettled => ({
  ...{
    fill_id: `${id}-${userId}`,
    matched: false,
    order_id: `${id}-${userId}`,
    user_id: userId,
    side: 'SHORT',
  },
  ...{
    steps: 1,
    taker_steps: 1,
    fee: '2',
    free_delta: `${free}`,
    from_pending: '0',
    realized_pnl: '-9',
    held: '0',
  },
})

/** It releases a margin of 17: a loss of 9 and a fee of 2 leave 6. */
const forcedFill = (userId: number, steps: number): FillSettled => ({
  ...fillOf(userId, 'forced', 6),
  ...{ forced: true, steps, taker_steps: steps },
})

/** Of an order that the liquidated account has placed meanwhile. */
const ownFill = (userId: number): FillSettled => fillOf(userId, 'own', 30)

const forcedIn = ({ fills, tx_hash, at }: PartSettled): ExpectedTransaction[] =>
  fills
    .filter(({ forced }) => forced)
    .map(({ user_id }) => ({
      user_id,
      type: 'liquidation',
      amount: 17n,
      available: 6n,
      funding: null,
      tx_hash,
      at,
    }))

/** Histories with indexes in all rows, and histories whose first rows have none. */
export const anyFundingHistory = fc
  .tuple(fc.array(anyStep, { minLength: 30, maxLength: 150 }), fc.constantFrom(0, 0, 12))
  .map(([steps, old]) => {
    const history = new FundingHistory(old)
    for (const step of steps) history.play(step)
    return history
  })
