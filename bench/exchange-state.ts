/**
 * Measures the exchange's state in memory: bytes per open order and account, time per row of journal and checkpoint,
 * and the longest pause while rows are applied.
 */
// npm run bench:exchange-state -- [--orders 1000000] [--accounts 1000000]
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { apply } from '../domain/exchange/apply.ts'
import { load, serialize } from '../domain/exchange/checkpoint.ts'
import { createState, digestOf, type ExchangeState } from '../domain/exchange/state.ts'
import { toHex } from '../domain/hex.ts'
import type { JournalRow } from '../domain/journal/journal-row.ts'
import { toStoredSpec } from '../domain/market/stored-spec.ts'
import { argumentsOf, wholeNumber, withDefault } from '../service/command-line.ts'
import { perpetual } from '../test/support/markets.ts'

const { orders, accounts } = argumentsOf({
  command: 'npm run bench:exchange-state --',
  flags: {
    orders: withDefault(wholeNumber('open orders', { least: 1000 }), 1_000_000),
    accounts: withDefault(wholeNumber('accounts', { least: 1000 }), 1_000_000),
  },
})

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const MARKET = `m${perpetual.marketId}`
const hexOf = (number: number, bytes: number): string => `0x${number.toString(16).padStart(bytes * 2, '0')}`

function memory(): number {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

interface Measured {
  readonly micros: number
  readonly longest: number
}

/** Applies rows and measures processor time per row, and the longest row or clearance of the log. */
function applied(
  state: ExchangeState,
  shard: string,
  count: number,
  rowOf: (at: number) => JournalRow,
): Measured {
  const first = (state.heads.get(shard === 'accounts' ? 0 : perpetual.marketId)?.seq ?? 0) + 1
  let longest = 0
  let micros = 0
  for (let at = 0; at < count; at++) {
    const row = rowOf(at)
    const started = performance.now()
    apply(state, { shard, seq: first + at, row })
    if (at % 50 === 0) state.core.undo.clear()
    const took = performance.now() - started
    micros += took * 1000
    if (took > longest) longest = took
  }
  state.core.undo.clear()
  return { micros: micros / count, longest }
}

const placed = (at: number, seq: number): JournalRow => ({
  kind: 'order_placed',
  order_id: `${perpetual.marketId}-${seq}`,
  user_id: 1 + (at % accounts),
  maker: hexOf(1 + (at % accounts), 20),
  signer: hexOf(1 + (at % accounts), 20),
  hash: hexOf(at, 32),
  signature: hexOf(at, 66),
  salt: at,
  side: at % 2 === 0 ? 'LONG' : 'SHORT',
  type: 'LIMIT',
  price: 100_000 + (at % 2 === 0 ? -1 : 1) * (1 + (at % 5000)),
  quantity: 10,
  trigger: 0,
  leverage: 5,
  reduce_only: false,
  expiration: 0,
  alive_until: 0,
  status: 'OPEN',
  accepted_at: 1_800_000_000_000 + at,
  openable: 10,
  reserved: '1000000000000000000',
  reserved_price: 100_000,
})

const cancelled = (seq: number): JournalRow => ({
  kind: 'order_ended',
  order_id: `${perpetual.marketId}-${seq}`,
  user_id: 1 + ((seq - 2) % accounts),
  status: 'CANCELLED',
  reason: 'USER_CANCELLED',
  note: null,
  reserved_delta: '-1000000000000000000',
  at: 1_900_000_000_000,
})

const state = createState()
apply(state, { shard: MARKET, seq: 1, row: { kind: 'market_listed', spec: toStoredSpec(perpetual) } })
const empty = memory()
const users = applied(state, 'accounts', accounts, (at) => ({
  kind: 'user_created',
  user_id: at + 1,
  address: hexOf(at + 1, 20),
  at: 1,
}))
const withUsers = memory()
const placements = applied(state, MARKET, orders, (at) => placed(at, at + 2))
const withOrders = memory()
const cancels = applied(state, MARKET, 100_000, (at) => cancelled(at + 2))

const saving = performance.now()
const chunks = [...serialize(state)]
const saved = performance.now() - saving
const bytes = chunks.reduce((sum, chunk) => sum + chunk.bytes.length, 0)
const loading = performance.now()
const loaded = load(chunks)
const took = performance.now() - loading
if (toHex(digestOf(loaded)) !== toHex(digestOf(state))) throw new Error('the loaded state differs')

const figures = {
  orders,
  accounts,
  bytes_per_account: Math.round((withUsers - empty) / accounts),
  bytes_per_order: Math.round((withOrders - withUsers) / orders),
  memory_mb: Math.round(withOrders / 1e6),
  apply_user_us: Number(users.micros.toFixed(2)),
  apply_placement_us: Number(placements.micros.toFixed(2)),
  apply_cancel_us: Number(cancels.micros.toFixed(2)),
  longest_row_ms: Number(Math.max(users.longest, placements.longest, cancels.longest).toFixed(1)),
  checkpoint_mb: Math.round(bytes / 1e6),
  checkpoint_ms: Math.round(saved),
  load_ms: Math.round(took),
}
console.table(figures)
console.log(JSON.stringify(figures))
