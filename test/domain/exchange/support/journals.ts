/** Journals of random trading in two markets: rows as writers would state them, with amounts that are easy to follow instead of those of the rules. */

import type { Entry } from '../../../../domain/exchange/apply.ts'
import type {
  BatchCleared,
  FillSettled,
  MatchedFill,
  PartSettled,
} from '../../../../domain/journal/batch-rows.ts'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../../../domain/journal/journal-row.ts'
import { toStoredSpec } from '../../../../domain/market/stored-spec.ts'
import { binary, perpetual } from '../../../support/markets.ts'
import { type Step, USERS } from './any-steps.ts'

const PER_STEP = 10n

interface Live {
  readonly id: string
  readonly market: number
  readonly by: number
  readonly isLong: boolean
  readonly steps: number
  filled: number
  settling: number
  isEnded: boolean
  isCancelled: boolean
}

interface Batch {
  readonly market: number
  readonly row: BatchCleared
  readonly actionId: number
  status: 'open' | 'mined' | 'final' | 'void'
}

const addressOf = (user: number): string => `0x${user.toString(16).padStart(40, '0')}`

/** Writes the rows of steps; a step that does not apply writes none. */
class Writer {
  /** The rows of each step that has written any: those of one command. */
  readonly commands: Entry[][] = []
  readonly #heads = new Map<string, number>()
  readonly #orders: Live[] = []
  readonly #batches: Batch[] = []
  readonly #sizes = new Map<string, number>()
  #command: Entry[] = []
  #time = 1_000

  constructor() {
    for (const spec of [perpetual, binary])
      this.#write(marketShard(spec.marketId), { kind: 'market_listed', spec: toStoredSpec(spec) })
    for (let user = 1; user <= USERS; user++) {
      this.#write(ACCOUNTS_SHARD, { kind: 'user_created', user_id: user, address: addressOf(user), at: 0 })
      this.#deposit(user, 1_000_000)
    }
    this.#end()
  }

  take(step: Step): void {
    this.#time++
    if (step.kind === 'place') this.#place(step)
    else if (step.kind === 'cancel') this.#cancel(step.pick)
    else if (step.kind === 'match') this.#match(marketOf(step.market), step.steps)
    else if (step.kind === 'deposit') this.#deposit(step.by + 1, step.amount)
    else if (step.kind === 'arm') {
      const armed = { timeout_seconds: 5, armed_at: this.#time, fire_at: this.#time + 5_000 }
      this.#write(ACCOUNTS_SHARD, { kind: 'switch_armed', user_id: step.by + 1, ...armed })
    } else if (step.kind === 'release') {
      this.#release(marketOf(step.market))
    } else this.#change(step.kind, step.pick)
    this.#end()
  }

  #end(): void {
    if (this.#command.length > 0) this.commands.push(this.#command)
    this.#command = []
  }

  #write(shard: string, row: JournalRow): number {
    const seq = (this.#heads.get(shard) ?? 0) + 1
    this.#heads.set(shard, seq)
    // As stored: a fold must not depend on objects that the writer still has.
    this.#command.push({ shard, seq, row: JSON.parse(JSON.stringify(row)) as JournalRow })
    return seq
  }

  #deposit(user: number, amount: number): void {
    this.#write(ACCOUNTS_SHARD, {
      kind: 'balance_changed',
      cause: 'deposit',
      rollback: false,
      user_id: user,
      free_delta: String(amount),
      pending_withdrawal_delta: '0',
      block: 1,
      tx_hash: '0x',
      log_index: 0,
      at: this.#time,
    })
  }

  #place({ market, by, isLong, steps }: Extract<Step, { kind: 'place' }>): void {
    const marketId = marketOf(market)
    const shard = marketShard(marketId)
    const seq = (this.#heads.get(shard) ?? 0) + 1
    const id = `${marketId}-${seq}`
    this.#write(shard, {
      kind: 'order_placed',
      order_id: id,
      user_id: by + 1,
      maker: addressOf(by + 1),
      signer: addressOf(by + 1),
      hash: `0x${marketId.toString(16).padStart(8, '0')}${seq.toString(16).padStart(56, '0')}`,
      salt: seq,
      side: isLong ? 'LONG' : 'SHORT',
      type: 'LIMIT',
      price: 100,
      quantity: steps,
      trigger: 0,
      leverage: 5,
      reduce_only: false,
      expiration: 0,
      alive_until: 0,
      status: 'OPEN',
      accepted_at: this.#time,
      openable: steps,
      reserved: (PER_STEP * BigInt(steps)).toString(),
      reserved_price: 100,
      signature: `0x${'01'.repeat(66)}`,
    })
    const counts = { steps, filled: 0, settling: 0, isEnded: false, isCancelled: false }
    this.#orders.push({ id, market: marketId, by: by + 1, isLong, ...counts })
  }

  /** Releases nothing that may still leave the chain. */
  #release(marketId: number): void {
    if (this.#batches.some(({ market, status }) => market === marketId && status === 'mined')) return
    const shard = marketShard(marketId)
    this.#write(shard, { kind: 'ended_released', up_to: Math.max(0, (this.#heads.get(shard) ?? 0) - 5) })
  }

  #cancel(pick: number): void {
    const open = this.#orders.filter(({ isEnded, settling }) => !isEnded && settling === 0)
    const order = open[pick % Math.max(1, open.length)]
    if (order === undefined) return
    order.isEnded = true
    order.isCancelled = true
    this.#write(marketShard(order.market), {
      kind: 'order_ended',
      order_id: order.id,
      user_id: order.by,
      status: 'CANCELLED',
      reason: 'USER_CANCELLED',
      note: 'no longer needed',
      reserved_delta: (-PER_STEP * BigInt(order.steps - order.filled)).toString(),
      at: this.#time,
    })
  }

  #match(marketId: number, most: number): void {
    const rest = ({ steps, filled, settling }: Live): number => steps - filled - settling
    const open = this.#orders.filter((one) => one.market === marketId && !one.isEnded && rest(one) > 0)
    const buy = open.find(({ isLong }) => isLong)
    const sell = open.find(({ isLong }) => !isLong)
    if (buy === undefined || sell === undefined) return
    const steps = Math.min(most, rest(buy), rest(sell))
    const batchId = this.#batches.filter(({ market }) => market === marketId).length + 1
    const fills = [buy, sell].map((order): MatchedFill => {
      order.settling += steps
      const id = `${marketId}-${batchId}-1-${order.id.split('-')[1]}`
      return {
        fill_id: id,
        order_id: order.id,
        user_id: order.by,
        part: 1,
        side: order.isLong ? 'LONG' : 'SHORT',
        steps,
        taker_steps: 0,
        held: (PER_STEP * BigInt(steps)).toString(),
        opening: steps,
        partial_slot: 3,
      }
    })
    for (const { user_id, side } of fills) this.#move(marketId, user_id, side === 'LONG' ? steps : -steps)
    const row: BatchCleared = {
      kind: 'batch_cleared',
      batch_id: batchId,
      as_of: this.#time,
      oracle_price: '100',
      oracle_at: this.#time,
      lo: 1,
      hi: 999,
      price: 100,
      volume: steps,
      demand: steps,
      supply: steps,
      rule: 'single',
      parts: 1,
      fills,
      closing: [],
      head: this.#heads.get(marketShard(marketId)) ?? 0,
      maker_fee: '0',
      taker_fee: '0',
      oracle_signatures: '0x',
      matched: [...new Set(fills.map(({ user_id }) => user_id))].map((user_id) => ({
        user_id,
        size: this.#sizes.get(`${marketId}-${user_id}`) ?? 0,
        entry_notional: '0',
        folded_margin: '0',
        leverage: 5,
      })),
    }
    this.#write(marketShard(marketId), row)
    this.#batches.push({ market: marketId, row, actionId: batchId, status: 'open' })
    const number = {
      queue_no: batchId,
      action_id: batchId,
      relayer: addressOf(99),
      nonce: this.#batches.length,
    }
    this.#write(marketShard(marketId), { kind: 'action_numbered', ...number })
    const sent = { queue_no: batchId, tx_hash: '0x', at: this.#time }
    this.#write(marketShard(marketId), { kind: 'action_signed', ...sent })
  }

  #move(marketId: number, user: number, by: number): void {
    const key = `${marketId}-${user}`
    this.#sizes.set(key, (this.#sizes.get(key) ?? 0) + by)
  }

  #change(kind: 'settle' | 'void' | 'rollback' | 'confirm', pick: number): void {
    const from = kind === 'settle' || kind === 'void' ? 'open' : 'mined'
    const fitting = this.#batches.filter(({ status }) => status === from)
    const market = fitting[pick % Math.max(1, fitting.length)]?.market
    // In the order of the chain: the oldest is mined or confirmed, the newest leaves the chain, and a void covers all.
    const own = fitting.filter((batch) => batch.market === market)
    const batch = kind === 'rollback' ? own.at(-1) : own[0]
    if (batch === undefined) return
    if (kind === 'void') for (const one of own) this.#void(one)
    else if (kind === 'confirm') this.#confirm(batch)
    else if (kind === 'settle') this.#settle(batch, false)
    else if (!batch.row.fills.some(({ order_id }) => this.#of(order_id).isCancelled))
      this.#settle(batch, true)
  }

  #confirm(batch: Batch): void {
    batch.status = 'final'
    const { batch_id } = batch.row
    const block = { batch_id, part: 1, block: batch_id, at: this.#time }
    this.#write(marketShard(batch.market), { kind: 'part_confirmed', ...block })
  }

  #void(batch: Batch): void {
    batch.status = 'void'
    const { batch_id, fills } = batch.row
    for (const { order_id, user_id, side, steps } of fills) {
      this.#of(order_id).settling -= steps
      this.#move(batch.market, user_id, side === 'LONG' ? -steps : steps)
    }
    const reopened = fills.map(({ order_id }) => order_id)
    const why = { why: 'test', at: this.#time, fills, reopened, is_reverted: true } as const
    this.#write(marketShard(batch.market), { kind: 'batch_voided', batch_id, from_part: 1, ...why })
    for (const { order_id, user_id } of fills) {
      const { steps, filled, settling } = this.#of(order_id)
      const openable = steps - filled - settling
      const reserved = { openable, reserved_price: 100, reserved_delta: '0' }
      this.#write(marketShard(batch.market), { kind: 'reservation_changed', order_id, user_id, ...reserved })
    }
  }

  #of(id: string): Live {
    return this.#orders.find((order) => order.id === id) as Live
  }

  #settle(batch: Batch, rollback: boolean): void {
    batch.status = rollback ? 'open' : 'mined'
    const sign = rollback ? -1 : 1
    const { batch_id, fills, as_of } = batch.row
    for (const { order_id, steps } of fills) {
      const order = this.#of(order_id)
      order.filled += sign * steps
      order.settling -= sign * steps
      order.isEnded = order.filled === order.steps
    }
    this.#write(marketShard(batch.market), {
      kind: 'part_settled',
      rollback,
      batch_id,
      part: 1,
      parts: 1,
      action_id: batch.actionId,
      as_of,
      funding_index: '0',
      price: 100,
      block: batch_id,
      tx_hash: '0x',
      log_index: 0,
      at: this.#time,
      fills: fills.map(settledFill),
      positions: positionsOf(fills),
      orders: fills.map(({ order_id, user_id }) => {
        const { isEnded } = this.#of(order_id)
        const status = isEnded ? ('FILLED' as const) : ('OPEN' as const)
        return { order_id, user_id, status, reason: isEnded ? 'FILLED' : null, reserved_delta: '0' }
      }),
      position_closed: [],
    } satisfies PartSettled)
  }
}

const marketOf = (market: number): number => (market === 0 ? perpetual : binary).marketId

const settledFill = ({ fill_id, order_id, user_id, side, steps, held }: MatchedFill): FillSettled => ({
  fill_id,
  matched: true,
  order_id,
  user_id,
  side,
  steps,
  taker_steps: 0,
  fee: '0',
  free_delta: '-3',
  from_pending: '0',
  realized_pnl: '0',
  held,
})

function positionsOf(fills: readonly MatchedFill[]): PartSettled['positions'] {
  const deltas = new Map<number, number>()
  for (const { user_id, side, steps } of fills)
    deltas.set(user_id, (deltas.get(user_id) ?? 0) + (side === 'LONG' ? steps : -steps))
  return [...deltas].map(([user_id, size_delta]) => ({
    user_id,
    size_delta,
    entry_notional_delta: '0',
    folded_margin_delta: '0',
    leverage_before: 5,
    leverage_after: 5,
  }))
}

/** The rows of each command, in the order in which they were written. */
export function commandsOf(steps: readonly Step[]): readonly (readonly Entry[])[] {
  const writer = new Writer()
  for (const step of steps) writer.take(step)
  return writer.commands
}
