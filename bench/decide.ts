/**
 * Measures the engine's time per placement and per cancel on one thread: decide, apply, and forget the undo entries of
 * a group of 50. Also in units of a signature recovery.
 */
// npm run bench:decide -- [--orders 100000] [--accounts 10000] [--commands 20000]
import { apply } from '../domain/exchange/apply.ts'
import type { Item, OrdersAnswer, OrdersCommand } from '../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../domain/exchange/decide/orders/decide-orders.ts'
import { decideOn } from '../domain/exchange/decide.ts'
import type { Inputs } from '../domain/exchange/inputs.ts'
import { createState, type ExchangeState } from '../domain/exchange/state.ts'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../domain/journal/journal-row.ts'
import { toStoredSpec } from '../domain/market/stored-spec.ts'
import type { SignedOrder } from '../domain/orders/order.ts'
import type { Address, Millis, OrderHash, Price, Seconds, Steps, Ticks, UserId } from '../domain/units.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { e18, perpetual } from '../test/support/markets.ts'
import { measureSignatures } from './intake/signatures.ts'

const { orders, accounts, commands } = argumentsOf({
  command: 'npm run bench:decide --',
  flags: {
    orders: withDefault(wholeNumber('live orders', { least: 1 }), 100_000),
    accounts: withDefault(wholeNumber('accounts', { least: 1 }), 10_000),
    commands: withDefault(wholeNumber('measured placements, and as many cancels', { least: 50 }), 20_000),
  },
})

/** Commands whose rows are appended together. */
const GROUP = 50
const START = 1_800_000_000_000
const MARKET = perpetual.marketId

const hexOf = (number: number, bytes: number): string => `0x${number.toString(16).padStart(bytes * 2, '0')}`
/** Digits that look random, as those of a hash do. */
const hashOf = (number: number): OrderHash =>
  (hexOf(Math.imul(number + 1, 0x9e3779b1) >>> 0, 4).padEnd(58, '7') +
    number.toString(16).padStart(8, '0')) as OrderHash

let now = START
const inputs: Inputs = {
  get now() {
    return now as Millis
  },
  report: () => ({ price: e18('10000') as Price, observedAt: now as Millis, signatures: '0x' }),
  session: () => null,
  reportRules: () => null,
  get headTime() {
    return now as Millis
  },
  get chainSeenAt() {
    return now as Millis
  },
  limits: { oracleMaxAgeMs: 5_000, chainMaxAgeMs: 60_000 },
}

function write(state: ExchangeState, shard: string, row: JournalRow): void {
  const marketId = shard === ACCOUNTS_SHARD ? 0 : MARKET
  apply(state, { shard, seq: (state.heads.get(marketId)?.seq ?? 0) + 1, row })
  state.core.undo.clear()
}

function withAccounts(): ExchangeState {
  const state = createState()
  write(state, marketShard(MARKET), { kind: 'market_listed', spec: toStoredSpec(perpetual) })
  for (let user = 1; user <= accounts; user++) {
    write(state, ACCOUNTS_SHARD, { kind: 'user_created', user_id: user, address: hexOf(user, 20), at: START })
    write(state, ACCOUNTS_SHARD, {
      kind: 'balance_changed',
      cause: 'deposit',
      rollback: false,
      user_id: user,
      free_delta: e18('1000000000').toString(),
      pending_withdrawal_delta: '0',
      block: 1,
      tx_hash: '0x',
      log_index: 0,
      at: START,
    })
  }
  return state
}

function placementOf(at: number): SignedOrder {
  const isLong = at % 2 === 0
  const maker = hexOf(1 + (at % accounts), 20) as Address
  return {
    marketId: MARKET,
    maker,
    side: isLong ? 'LONG' : 'SHORT',
    type: 'LIMIT',
    price: (100_000 + (isLong ? -1 : 1) * (1 + (at % 2_000))) as Ticks,
    quantity: 10 as Steps,
    trigger: 0 as Ticks,
    leverage: 5,
    reduceOnly: false,
    expiration: 0 as Seconds,
    salt: BigInt(at),
    hash: hashOf(at),
    signer: maker,
    signature: hexOf(at + 1, 66) as `0x${string}`,
  }
}

const commandOf = (at: number, item: Item): OrdersCommand => ({
  kind: 'orders',
  userId: (1 + (at % accounts)) as UserId,
  items: [item],
  isAtomic: false,
  request: null,
})

const place = (at: number): OrdersCommand =>
  commandOf(at, { kind: 'place', order: placementOf(at), clientOrderId: null, absentUpTo: null })

const cancel = (at: number): OrdersCommand =>
  commandOf(at, { kind: 'cancel', target: { hash: hashOf(at), ended: null }, note: null })

interface Measured {
  readonly decide: number
  readonly apply: number
}

/** Elapsed microseconds per command, of the group at the fastest tenth: other programs disturb it least, as in the measure of a recovery. */
function measure(state: ExchangeState, list: readonly OrdersCommand[]): Measured {
  const groups: Measured[] = []
  for (let from = 0; from < list.length; from += GROUP)
    groups.push(measureGroup(state, list.slice(from, from + GROUP)))
  return {
    decide: fastTenth(groups.map(({ decide }) => decide)),
    apply: fastTenth(groups.map((one) => one.apply)),
  }
}

function measureGroup(state: ExchangeState, group: readonly OrdersCommand[]): Measured {
  let decide = 0
  let applied = 0
  for (const command of group) {
    now++
    const started = performance.now()
    const { entries, answer } = decideOn<OrdersCommand, OrdersAnswer, never>(state, inputs, {
      decider: decideOrders,
      command,
    })
    const decided = performance.now()
    for (const entry of entries) apply(state, entry)
    applied += performance.now() - decided
    decide += decided - started
    if (answer.kind !== 'done' || answer.results[0]?.kind === 'refused')
      throw new Error(`a command of the benchmark was refused: ${answer.kind}`)
  }
  const started = performance.now()
  state.core.undo.clear()
  applied += performance.now() - started
  return { decide: (decide * 1_000) / group.length, apply: (applied * 1_000) / group.length }
}

const fastTenth = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 10)] ?? 0

const numbers = (from: number, count: number): number[] => Array.from({ length: count }, (_, at) => from + at)

const state = withAccounts()
measure(state, numbers(0, orders).map(place))
// Compiled by then, whatever the number of live orders.
const WARM = 40_000
const warm = numbers(orders, WARM)
measure(state, warm.map(place))
measure(state, warm.map(cancel))

const { bare } = measureSignatures()
const recovery = 1_000_000 / bare
const fresh = numbers(orders + WARM, commands)
const placed = measure(state, fresh.map(place))
const cancelled = measure(state, fresh.map(cancel))

const rounded = (micros: number): number => Number(micros.toFixed(2))
const inRecoveries = (micros: number): number => Number((micros / recovery).toFixed(3))
const figures = {
  orders,
  accounts,
  recovery_us: Number(recovery.toFixed(1)),
  place_decide_us: rounded(placed.decide),
  place_apply_us: rounded(placed.apply),
  cancel_decide_us: rounded(cancelled.decide),
  cancel_apply_us: rounded(cancelled.apply),
  place_recoveries: inRecoveries(placed.decide + placed.apply),
  cancel_recoveries: inRecoveries(cancelled.decide + cancelled.apply),
}
console.table(figures)
console.log(JSON.stringify({ bench: 'decide', ...figures }))
