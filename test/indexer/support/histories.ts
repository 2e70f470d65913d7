/** Generated journal histories: two markets, a few accounts, changes in any valid order. */
import fc from 'fast-check'
import type { BalanceChanged } from '../../../domain/journal/accounts-row.ts'
import type { JournalRow } from '../../../domain/journal/journal-row.ts'
import { ACCOUNTS, type ModelBalance, ModelMarket } from './model-market.ts'
import type { ModelOrder } from './model-order.ts'

export interface History {
  readonly accounts: readonly JournalRow[]
  readonly markets: readonly ModelMarket[]
  readonly balances: ReadonlyMap<number, ModelBalance>
}

const ACTS = [
  ...Array(6).fill('place'),
  ...Array(3).fill('clear'),
  ...Array(4).fill('submit'),
  ...Array(4).fill('settle'),
  ...Array(2).fill('rollback'),
  ...['cancel', 'cancel', 'confirm', 'void', 'unmatched', 'prices', 'reserve', 'deposit'],
] as const

const anyStep = fc.record({
  act: fc.constantFrom(...(ACTS as readonly string[])),
  market: fc.nat(1),
  a: fc.nat(1_000),
  b: fc.nat(1_000),
  c: fc.nat(1_000),
})
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

export const anyHistory = fc.array(anyStep, { minLength: 40, maxLength: 160 }).map(play)

function play(steps: readonly Step[]): History {
  const balances = new Map<number, ModelBalance>()
  const accounts: JournalRow[] = []
  for (let id = 1; id <= ACCOUNTS; id++) {
    balances.set(id, { free: 0n, reserved: 0n, pending: 0n })
    accounts.push({ kind: 'user_created', user_id: id, address: `0x${id}`, at: 1 })
  }
  const ledger = new Ledger(balances)
  const markets = [new ModelMarket(1, balances), new ModelMarket(2, balances)]
  for (const step of steps) {
    if (step.act === 'deposit') accounts.push(ledger.move(step))
    else act(markets[step.market] as ModelMarket, step)
  }
  return { accounts, markets, balances }
}

function act(market: ModelMarket, { act, a, b, c }: Step): void {
  const account = (n: number) => (n % ACCOUNTS) + 1
  const active = [...market.orders.values()].filter(({ status, closing }) => status === 'OPEN' && !closing)
  const order = active[a % Math.max(1, active.length)] as ModelOrder
  if (act === 'place') {
    // Every fifth order is a market order.
    const price = c % 5 === 0 ? 0 : 95 + (b % 10)
    const quantity = 1 + (c % 20)
    // Half of the orders are covered whole; a quarter are reduce-only.
    const openable = b % 4 === 0 ? 'reduce-only' : b % 4 === 1 ? a % (quantity + 1) : quantity
    market.place(account(a), a % 8 < 4 ? 'LONG' : 'SHORT', price, quantity, openable)
  }
  if (act === 'cancel' && order) market.cancel(order)
  if (act === 'reserve' && order) market.reserve(order, b % 21)
  if (act === 'clear') {
    const side = (of: string) => market.open().filter((candidate) => candidate.side === of)
    const sells = side('SHORT').slice(0, 1 + (b % 3))
    const buys = side('LONG')
    market.clear(
      sells.flatMap((sell, at) => (buys[at] ? [[buys[at], sell] as const] : [])),
      95 + (c % 10),
    )
  }
  if (act === 'submit') market.submit()
  if (act === 'settle') market.settle()
  if (act === 'confirm') market.confirm()
  if (act === 'rollback') market.rollback()
  if (act === 'void') market.voidBatches()
  if (act === 'unmatched') market.settleUnmatched(account(a), account(a + 1), 1 + (b % 9))
  if (act === 'prices') market.updatePrices(90 + (a % 20))
}

/** The bank's ledger, with what can still be rolled back. */
class Ledger {
  readonly #balances: ReadonlyMap<number, ModelBalance>
  readonly #live: BalanceChanged[] = []
  #logs = 0

  constructor(balances: ReadonlyMap<number, ModelBalance>) {
    this.#balances = balances
  }

  /** A deposit, a withdrawal request, or the rollback of the last one. */
  move({ a, b, c }: Step): BalanceChanged {
    const last = c % 3 === 0 ? this.#live.pop() : undefined
    const isRequest = b % 2 === 0
    const row: BalanceChanged = last
      ? { ...last, rollback: true }
      : {
          kind: 'balance_changed',
          cause: isRequest ? 'withdrawal_request' : 'deposit',
          ...{ rollback: false, user_id: (a % ACCOUNTS) + 1, free_delta: `${isRequest ? -b : b}` },
          ...{ pending_withdrawal_delta: `${isRequest ? b : 0}` },
          ...{ block: 1, tx_hash: '0x', log_index: ++this.#logs, at: 1 },
        }
    if (last === undefined) this.#live.push(row)
    const balance = this.#balances.get(row.user_id) as ModelBalance
    const sign = row.rollback ? -1n : 1n
    balance.free += sign * BigInt(row.free_delta)
    balance.pending += sign * BigInt(row.pending_withdrawal_delta)
    return row
  }
}
