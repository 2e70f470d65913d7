/** A reader of topics that keeps a copy of each by its snapshot and updates, and checks that no message is missing. */
import { expect } from 'chai'
import type { Caller } from '../../../../api/auth/caller.ts'
import type { Frame, Hub, Reader } from '../../../../api/live/ports.ts'
import { parseTopic } from '../../../../api/live/topics.ts'

type Item = Record<string, unknown>
interface Message {
  readonly type: 'subscribed' | 'snapshot' | 'update'
  readonly topic: string
  readonly seq: number
  readonly prev_seq: number
  readonly epoch?: number
  readonly batch_id?: number
  readonly data: Record<string, never>
}

/** The lists of a topic, by the fields that identify an item; `isGone`: the item leaves the list. */
const LISTS: Record<string, { key: (item: Item) => string; isGone?: (item: Item) => boolean }> = {
  long_levels: { key: (item) => `${item.price_e18_raw}`, isGone: ({ quantity }) => quantity === 0 },
  short_levels: { key: (item) => `${item.price_e18_raw}`, isGone: ({ quantity }) => quantity === 0 },
  fills: { key: (item) => `${item.fill_id}` },
  auctions: { key: (item) => `${item.batch_id}` },
  orders: {
    key: (item) => `${item.order_id}`,
    isGone: ({ status }) => ['FILLED', 'CANCELLED', 'EXPIRED'].includes(status as string),
  },
  positions: {
    key: (item) => `${item.market_id}`,
    isGone: (item) => item.size === 0 && item.pending_size === 0,
  },
  transactions: { key: (item) => `${item.id}` },
  adjustments: { key: (item) => `${item.adjustment_id}` },
  candles: { key: (item) => `${item.start}` },
  markets: { key: (item) => `${item.market_id}` },
}

/** A copy of one topic. */
export class TopicCopy {
  seq = -1
  epoch = -1
  updates = 0
  #lists: Record<string, Map<string, Item>> = {}
  #balance: unknown = null

  take(message: Message): void {
    if (message.type === 'subscribed') {
      this.epoch = (message.data as unknown as { epoch: number }).epoch
      return
    }
    if (message.type === 'snapshot') {
      this.#lists = {}
      this.#balance = null
      this.epoch = message.epoch as number
    } else {
      expect(message.prev_seq, `${message.topic}: the message before ${message.seq}`).to.equal(this.seq)
      expect(message.seq).to.be.greaterThan(this.seq)
      this.updates++
    }
    this.seq = message.seq
    this.#apply(message.data)
  }

  #apply(data: Record<string, unknown>): void {
    const removed = [...((data.removed ?? data.removed_parts ?? []) as Item[])]
    for (const { batch_id, part, market_id } of removed)
      for (const [key, fill] of this.#lists.fills ?? [])
        if (
          fill.batch_id === batch_id &&
          fill.part === part &&
          fill.market_id === (market_id ?? fill.market_id)
        )
          this.#lists.fills?.delete(key)
    this.#applyParts((data.parts ?? []) as (Item & { fills?: Item[] })[], data.market_id)
    for (const id of (data.removed_transactions ?? []) as string[]) this.#lists.transactions?.delete(id)
    for (const [name, { key, isGone }] of Object.entries(LISTS)) {
      const items = data[name] as Item[] | undefined
      if (items === undefined) continue
      this.#lists[name] ??= new Map()
      for (const item of items) {
        if (isGone?.(item)) this.#lists[name].delete(key(item))
        else this.#lists[name].set(key(item), item)
      }
    }
    if (data.balance !== undefined) this.#balance = data.balance
  }

  /** Public fills by part. A part without fills changes those that the copy has. */
  #applyParts(parts: readonly (Item & { fills?: Item[] })[], market_id: unknown): void {
    if (parts.length === 0) return
    this.#lists.fills ??= new Map()
    const list = this.#lists.fills
    for (const { fills, ...common } of parts) {
      const known = [...list.values()].filter(
        ({ batch_id, part }) => batch_id === common.batch_id && part === common.part,
      )
      for (const fill of fills ?? known) list.set(`${fill.fill_id}`, { ...fill, ...common, market_id })
    }
  }

  /** Independent of the order in which items came. */
  get state(): object {
    const lists = Object.entries(this.#lists).map(([name, items]) => [name, [...items].sort(byKey)])
    return { lists: Object.fromEntries(lists), balance: this.#balance }
  }
}

const byKey = ([a]: [string, unknown], [b]: [string, unknown]): number => (a < b ? -1 : 1)

export class FeedClient implements Reader {
  readonly copies = new Map<string, TopicCopy>()
  /** The batches of the messages of each call. */
  readonly calls: (readonly Message[])[] = []
  readonly #caller: Caller
  #hub: Hub | null = null

  constructor(caller: Caller) {
    this.#caller = caller
  }

  send(frames: readonly Frame[]): void {
    const messages = frames.map(({ text }) => JSON.parse(text.toString()) as Message)
    this.calls.push(messages)
    for (const message of messages) this.copies.get(message.topic)?.take(message)
  }

  /** Subscribes to the topics; those that it has a copy of resume after it. */
  async join(hub: Hub, topics: Iterable<string>): Promise<void> {
    this.leave()
    this.#hub = hub
    for (const name of topics) {
      const copy = this.copies.get(name) ?? new TopicCopy()
      this.copies.set(name, copy)
      const since = copy.seq < 0 ? null : `${copy.epoch}:${copy.seq}`
      await hub.subscribe(this, parseTopic(name), { id: 1, caller: this.#caller, since })
    }
  }

  leave(): void {
    for (const name of this.copies.keys()) this.#hub?.unsubscribe(this, name)
  }
}
