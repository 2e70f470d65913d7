/** Names the traces, orders, batches and transactions that decided rows concern, so that one search of the logs follows an order. */
import type { Entry } from '../../domain/exchange/apply.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'

/** Facts of one debug line; an empty list is left out. */
export interface TracedFacts {
  readonly trace_ids?: readonly string[]
  readonly order_ids?: readonly string[]
  /** Parts of batches: `<market>/<batch>/<part>`. */
  readonly batches?: readonly string[]
  readonly tx_hashes?: readonly string[]
}

interface Concerned {
  readonly orders: readonly string[]
  /** The part of a batch; null without one. */
  readonly part: { readonly batch: number; readonly part: number } | null
  readonly transaction: string | null
}

const NOTHING: Concerned = { orders: [], part: null, transaction: null }

/** Keeps the newest entries, so that memory does not grow with the age of the process. */
export class Bounded<Value> {
  readonly #most: number
  readonly #values = new Map<string, Value>()

  constructor(most: number) {
    this.#most = most
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  set(key: string, value: Value): void {
    this.#values.delete(key)
    if (this.#values.size >= this.#most) this.#values.delete(this.#values.keys().next().value as string)
    this.#values.set(key, value)
  }
}

const MOST_ORDERS = 100_000
const MOST_PARTS = 10_000

export class OrderTraces {
  readonly #traceOf: Bounded<string>
  readonly #ordersOf: Bounded<readonly string[]>

  constructor(mostOrders = MOST_ORDERS, mostParts = MOST_PARTS) {
    this.#traceOf = new Bounded(mostOrders)
    this.#ordersOf = new Bounded(mostParts)
  }

  /** `traceId`: that of the command, if it has one. Its orders keep it for their later rows. */
  factsOf(entries: readonly Entry[], traceId: string | undefined): TracedFacts {
    const traces = new Set(traceId === undefined ? [] : [traceId])
    const orders = new Set<string>()
    const batches = new Set<string>()
    const transactions = new Set<string>()
    for (const { shard, row } of entries) {
      const market = shard.slice(1)
      if (row.kind === 'batch_cleared') for (const part of this.#noteParts(market, row)) batches.add(part)
      const concerned = concernedBy(row)
      const part = concerned.part && `${market}/${concerned.part.batch}/${concerned.part.part}`
      if (part !== null) batches.add(part)
      if (concerned.transaction !== null) transactions.add(concerned.transaction)
      const known = part === null ? undefined : this.#ordersOf.get(part)
      for (const order of concerned.orders.length > 0 ? concerned.orders : (known ?? [])) {
        orders.add(order)
        if (row.kind === 'order_placed' && traceId !== undefined) this.#traceOf.set(order, traceId)
      }
    }
    for (const order of orders) {
      const trace = this.#traceOf.get(order)
      if (trace !== undefined) traces.add(trace)
    }
    return {
      ...(traces.size > 0 && { trace_ids: [...traces] }),
      ...(orders.size > 0 && { order_ids: [...orders] }),
      ...(batches.size > 0 && { batches: [...batches] }),
      ...(transactions.size > 0 && { tx_hashes: [...transactions] }),
    }
  }

  #noteParts(market: string, { batch_id, fills }: Extract<JournalRow, { kind: 'batch_cleared' }>): string[] {
    const byPart = Map.groupBy(fills, ({ part }) => `${market}/${batch_id}/${part}`)
    for (const [part, own] of byPart)
      this.#ordersOf.set(
        part,
        own.map(({ order_id }) => order_id),
      )
    return [...byPart.keys()]
  }
}

function concernedBy(row: JournalRow): Concerned {
  switch (row.kind) {
    case 'order_placed':
    case 'order_triggered':
    case 'order_ending':
    case 'order_ended':
      return { ...NOTHING, orders: [row.order_id] }
    case 'batch_cleared':
      return { ...NOTHING, orders: row.fills.map(({ order_id }) => order_id) }
    case 'part_submitted':
      return { orders: [], part: { batch: row.batch_id, part: row.part }, transaction: row.tx_hash }
    case 'part_settled':
      return {
        orders: row.fills.map(({ order_id }) => order_id),
        part: { batch: row.batch_id, part: row.part },
        transaction: row.tx_hash,
      }
    case 'part_confirmed':
      return { ...NOTHING, part: { batch: row.batch_id, part: row.part } }
    case 'batch_voided':
      return {
        ...NOTHING,
        orders: row.fills.map(({ order_id }) => order_id),
        part: { batch: row.batch_id, part: row.from_part },
      }
    default:
      return NOTHING
  }
}
