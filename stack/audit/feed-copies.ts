/**
 * Copies of books, public fills and accounts that follow the live feed, and their differences from REST. Each copy has
 * a connection that can end at any moment and resumes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../../client/client.ts'
import type { LocalAccount } from '../../client/live/local-account.ts'
import type { LocalBook } from '../../client/live/local-book.ts'
import type { LocalTrades } from '../../client/live/local-trades.ts'
import { SNAPSHOT_FILLS, type TopicMessage } from '../../client/live/messages.ts'
import { pages } from '../../client/queries.ts'
import type { Fill, Level, PublicFill } from '../../client/responses.ts'
import type { StackAccount } from '../stack-file.ts'

interface CopiesOptions {
  readonly baseUrl: string
  readonly marketIds: readonly number[]
  /** One connection each. */
  readonly accounts: readonly StackAccount[]
  /** By which the connections pass, if not directly: `baseUrl` itself by default. */
  readonly feedUrl?: string
}

/** Rows of a page of REST. */
const NEWEST = 1_000
const SETTLE_MS = 30_000
const PAUSE_MS = 100

/** A snapshot may end within a batch: the fills of its oldest time are not all in it. A short one has all. */
const followedFrom = (fills: readonly { readonly created_at: string }[]): string =>
  fills.length < SNAPSHOT_FILLS ? '' : (fills.map(({ created_at }) => created_at).sort()[0] ?? '')

/** Every message of a topic must continue the previous message, unless it is a snapshot. */
class Continuity {
  readonly problems: string[] = []
  messages = 0
  snapshots = 0
  readonly #heads = new Map<string, number>()

  take({ type, topic, seq, prev_seq }: TopicMessage): void {
    this.messages++
    if (type === 'snapshot') this.snapshots++
    else if (prev_seq !== this.#heads.get(topic) || seq <= prev_seq)
      this.problems.push(`${topic}: message ${prev_seq} to ${seq} came after ${this.#heads.get(topic)}`)
    this.#heads.set(topic, seq)
  }
}

class FeedCopy {
  readonly #rest: Client
  readonly #feed: Client
  readonly #continuity = new Continuity()
  readonly #books: readonly LocalBook[]
  readonly #trades: readonly LocalTrades[]
  readonly #account: LocalAccount
  readonly #userId: number
  readonly #refused: string[] = []

  constructor({ baseUrl, feedUrl = baseUrl, marketIds }: CopiesOptions, account: StackAccount) {
    const own = { apiKey: account.api_key, privateKey: account.private_key, http: { budgetMs: SETTLE_MS } }
    this.#rest = new Client({ ...own, baseUrl })
    this.#feed = new Client({
      ...{ ...own, baseUrl: feedUrl },
      onLiveError: (error) => this.#refused.push(`the feed refused: ${error.message}`),
    })
    this.#userId = account.user_id
    const { live } = this.#feed
    this.#books = marketIds.map((marketId) => live.book(marketId))
    this.#account = live.account()
    this.#trades = marketIds.map((marketId) => live.trades(marketId))
    for (const topic of ['user', ...marketIds.flatMap((id) => [`market.${id}.book`, `market.${id}.trades`])])
      live.subscribe(topic, (message) => this.#continuity.take(message))
  }

  get isCurrent(): boolean {
    return this.#feed.live.isCurrent && this.#account.balance !== null
  }

  get messages(): number {
    return this.#continuity.messages
  }

  get snapshots(): number {
    return this.#continuity.snapshots
  }

  interrupt(): boolean {
    return this.#feed.live.interrupt()
  }

  close(): void {
    this.#feed.close()
    this.#rest.close()
  }

  /** Sequence gaps and rejected requests. */
  get problems(): readonly string[] {
    return [...this.#continuity.problems, ...this.#refused].map((problem) => `${this.#name}: ${problem}`)
  }

  async differences(): Promise<string[]> {
    if (!this.isCurrent) return [`${this.#name}: it has no present state`]
    const found = [
      ...(await Promise.all(this.#books.map((book) => this.#bookDifferences(book)))),
      ...(await Promise.all(this.#trades.map((trades) => this.#tradesDifferences(trades)))),
      await this.#orderDifferences(),
      await this.#fillDifferences(),
      await this.#positionDifferences(),
      await this.#balanceDifferences(),
    ]
    return found.flat().map((difference) => `${this.#name}: ${difference}`)
  }

  get #name(): string {
    return `copy of account ${this.#userId}`
  }

  async #bookDifferences(book: LocalBook): Promise<string[]> {
    const rest = await this.#rest.marketData.orderbook(book.marketId, { depth: NEWEST })
    const named = (levels: readonly Level[]) =>
      levels.map((level): [string, unknown] => [`${level.side} ${level.price_e18_raw}`, level])
    const [copy, expected] = (['LONG', 'SHORT'] as const).reduce<[[string, unknown][], [string, unknown][]]>(
      ([ours, theirs], side) => [
        [...ours, ...named(book.levels(side, NEWEST))],
        [...theirs, ...named(side === 'LONG' ? rest.long_levels : rest.short_levels)],
      ],
      [[], []],
    )
    return compare(`book of market ${book.marketId}`, new Map(copy), new Map(expected))
  }

  async #tradesDifferences({ marketId, fills, from }: LocalTrades): Promise<string[]> {
    const rest = new Map<string, PublicFill>()
    for await (const { fills: page } of pages((cursor) =>
      this.#rest.marketData.fillPage(marketId, { limit: NEWEST, ...(cursor && { cursor }) }),
    )) {
      for (const fill of page) rest.set(fill.fill_id, fill)
      if (page.some(({ created_at }) => created_at < from)) break
    }
    const after = (list: Iterable<PublicFill>) =>
      new Map([...list].filter(({ created_at }) => created_at > from).map((fill) => [fill.fill_id, fill]))
    return compare(`public fills of market ${marketId}`, after(fills), after(rest.values()))
  }

  /** The effective price follows from the oracle price, which is no part of the account. */
  async #orderDifferences(): Promise<string[]> {
    const live: [string, unknown][] = []
    for (const status of ['OPEN', 'PENDING_TRIGGER', 'CANCEL_PENDING_FINALIZE'] as const)
      for await (const { orders } of pages((cursor) =>
        this.#rest.orders.page({ status, limit: NEWEST, ...(cursor && { cursor }) }),
      ))
        live.push(...orders.map((order): [string, unknown] => [order.order_id, withoutPrice(order)]))
    const copy = this.#account.orders.map((order): [string, unknown] => [order.order_id, withoutPrice(order)])
    return compare('live orders', new Map(copy), new Map(live))
  }

  async #fillDifferences(): Promise<string[]> {
    const { fills: copy } = this.#account
    const rest = new Map<string, Fill>()
    for await (const { fills } of pages((cursor) =>
      this.#rest.account.fillPage({ limit: NEWEST, ...(cursor && { cursor }) }),
    )) {
      for (const fill of fills) rest.set(fill.fill_id, fill)
    }
    const from = followedFrom(copy)
    const after = (list: Iterable<Fill>) =>
      new Map([...list].filter(({ created_at }) => created_at > from).map((fill) => [fill.fill_id, fill]))
    return compare('own fills', after(copy), after(rest.values()))
  }

  async #positionDifferences(): Promise<string[]> {
    const positions = (await this.#rest.account.positions()).filter(
      ({ size_e18_raw, pending_size_e18_raw }) => size_e18_raw !== '0' || pending_size_e18_raw !== '0',
    )
    const expected = new Map(positions.map((position) => [`market ${position.market_id}`, position]))
    const copy = this.#account.positions.map((position): [string, unknown] => {
      const name = `market ${position.market_id}`
      return [name, { ...expected.get(name), ...position }]
    })
    return compare('positions', new Map(copy), expected)
  }

  async #balanceDifferences(): Promise<string[]> {
    const balance = await this.#rest.account.balance()
    const copy = { ...balance, ...this.#account.balance }
    return compare('balance', new Map([['all', copy]]), new Map([['all', balance]]))
  }
}

const withoutPrice = ({
  effective_price: _,
  effective_price_e18_raw: __,
  ...order
}: Record<string, unknown>) => order

function compare(
  what: string,
  copy: ReadonlyMap<string, unknown>,
  rest: ReadonlyMap<string, unknown>,
): string[] {
  const text = (value: unknown): string => (value === undefined ? 'nothing' : sorted(value))
  return [...new Set([...copy.keys(), ...rest.keys()])].flatMap((key) => {
    const [ours, theirs] = [text(copy.get(key)), text(rest.get(key))]
    return ours === theirs ? [] : [`${what}, ${key}: the feed has ${ours}, REST has ${theirs}`]
  })
}

/** Fields in one order. */
const sorted = (value: unknown): string =>
  JSON.stringify(value, (_, part) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

export class FeedCopies {
  readonly #copies: readonly FeedCopy[]
  #resumes = 0

  constructor(options: CopiesOptions) {
    this.#copies = options.accounts.map((account) => new FeedCopy(options, account))
  }

  /** Throws after 30 s. */
  async untilCurrent(): Promise<void> {
    for (const deadline = Date.now() + SETTLE_MS; !this.#copies.every(({ isCurrent }) => isCurrent); ) {
      if (Date.now() > deadline) throw new Error('the live feed does not answer')
      await sleep(PAUSE_MS)
    }
  }

  get size(): number {
    return this.#copies.length
  }

  /** Connections ended so far. */
  get resumes(): number {
    return this.#resumes
  }

  get messages(): number {
    return this.#copies.reduce((sum, { messages }) => sum + messages, 0)
  }

  get snapshots(): number {
    return this.#copies.reduce((sum, { snapshots }) => sum + snapshots, 0)
  }

  /** Ends a connection, as a failure of the network would. */
  interrupt(index: number): void {
    if (this.#copies[index]?.interrupt()) this.#resumes++
  }

  /** Once nothing trades: what the copies still differ in after 30 s. */
  async differences(): Promise<readonly string[]> {
    for (const deadline = Date.now() + SETTLE_MS; ; await sleep(PAUSE_MS)) {
      const found = (await Promise.all(this.#copies.map((copy) => copy.differences()))).flat()
      if (found.length === 0 || Date.now() > deadline)
        return [...this.#copies.flatMap(({ problems }) => problems), ...found]
    }
  }

  close(): void {
    for (const copy of this.#copies) copy.close()
  }
}
