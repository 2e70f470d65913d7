/** Spans of the engine: decisions on sampled commands, their appends, cleared batches and mined parts. */
import type { Entry } from '../../domain/exchange/apply.ts'
import type { BatchCleared, PartSettled } from '../../domain/journal/batch-rows.ts'
import { batchSpan, readSpan, type SpanAttributes, type SpanRef, type Spans } from '../../service/spans.ts'
import { Bounded } from './order-traces.ts'

const MOST_ORDERS = 100_000
/** Decisions that wait for their append: more than a group and the group behind it have. */
const MOST_UNSTORED = 10_000
/** Links of a batch to sampled placements. Spans in the traces of the further ones still link to the batch. */
const MOST_LINKS = 128

interface Unstored {
  readonly span: SpanRef
  readonly last: Entry
}

export class EngineSpans {
  readonly #spans: Spans
  /** Decision on each sampled placement, by order id. */
  readonly #placements = new Bounded<SpanRef>(MOST_ORDERS)
  #unstored: Unstored[] = []

  constructor(spans: Spans) {
    this.#spans = spans
  }

  /** A command was decided in `ms`, just now. `traceId`: of the command (`withSpan`). */
  decided(kind: string, ms: number, entries: readonly Entry[], traceId: string | undefined): void {
    const parent = traceId === undefined ? null : readSpan(traceId).span
    const at = { startedAt: this.#spans.now() - ms, endedAt: this.#spans.now() }
    if (parent !== null) this.#command(kind, parent, entries, at)
    for (const { shard, row } of entries) {
      if (row.kind === 'batch_cleared') this.#cleared(shard.slice(1), row, at, entries.at(-1) as Entry)
      else if (row.kind === 'part_settled') this.#settled(shard.slice(1), row, at)
    }
  }

  /** The group with these rows was stored, just now. Rows that were taken back and decided again are in a later group. */
  stored(commands: number, rows: readonly Entry[], ms: number): void {
    if (this.#unstored.length === 0) return
    const endedAt = this.#spans.now()
    const attributes = { 'clearbatch.group_commands': commands, 'clearbatch.group_rows': rows.length }
    const stored = new Set(rows)
    const found = this.#unstored.findLastIndex(({ last }) => stored.has(last))
    for (const { span, last } of this.#unstored.slice(0, found + 1)) {
      if (!stored.has(last)) continue
      this.#spans.add({ name: 'append group', parent: span, startedAt: endedAt - ms, endedAt, attributes })
    }
    this.#unstored = this.#unstored.slice(found + 1)
  }

  #command(kind: string, parent: SpanRef, entries: readonly Entry[], at: Times): void {
    const orders = entries.flatMap(({ row }) => (row.kind === 'order_placed' ? [row.order_id] : []))
    const attributes = { 'clearbatch.order_ids': orders }
    const span = this.#spans.add({ ...at, name: `decide ${kind}`, kind: 'server', parent, attributes })
    for (const order of orders) this.#placements.set(order, span)
    this.#awaitAppend(span, entries.at(-1))
  }

  /** The batch's span links to the placements of its orders; in the trace of each placement a span links back. */
  #cleared(market: string, row: BatchCleared, at: Times, last: Entry): void {
    const own = batchSpan(market, row.batch_id, row.as_of)
    const orders = new Set(row.fills.map(({ order_id }) => order_id))
    const placements = [...orders].flatMap((order) => this.#placements.get(order) ?? [])
    const attributes = batchAttributes(market, row.batch_id)
    this.#spans.add({
      ...at,
      name: 'clear batch',
      parent: null,
      own,
      links: placements.slice(0, MOST_LINKS),
      attributes: { ...attributes, 'clearbatch.orders': orders.size, 'clearbatch.parts': row.parts },
    })
    for (const parent of placements)
      this.#spans.add({ ...at, name: 'fill order', parent, links: [own], attributes })
    this.#awaitAppend(own, last)
  }

  #settled(
    market: string,
    { batch_id, as_of, part, tx_hash, block, rollback }: PartSettled,
    at: Times,
  ): void {
    if (as_of === undefined) return
    this.#spans.add({
      ...at,
      name: rollback ? 'roll back part' : 'apply part',
      parent: batchSpan(market, batch_id, as_of),
      attributes: {
        ...batchAttributes(market, batch_id),
        'clearbatch.part': part,
        'clearbatch.tx_hash': tx_hash,
        'clearbatch.block': block,
      },
    })
  }

  #awaitAppend(span: SpanRef, last: Entry | undefined): void {
    if (last !== undefined && this.#unstored.length < MOST_UNSTORED) this.#unstored.push({ span, last })
  }
}

interface Times {
  readonly startedAt: number
  readonly endedAt: number
}

const batchAttributes = (market: string, batchId: number): SpanAttributes => ({
  'clearbatch.batch': `${market}/${batchId}`,
})
