/** The live data of the market on the trade screen: book, fills, batches and statistics. */
import { batch, signal } from '@preact/signals'
import { LocalBook } from '../../client/live/local-book.ts'
import type { BookData, TopicMessage, TradesData } from '../../client/live/messages.ts'
import type { MarketStats } from '../../client/market-history.ts'
import type { Auction, Level, PublicFill } from '../../client/responses.ts'
import { feed } from './exchange.ts'
import { perFrame } from './frames.ts'
import { Tape } from './tape.ts'

export interface BookView {
  readonly bids: readonly Level[]
  readonly asks: readonly Level[]
}

const EMPTY: BookView = { bids: [], asks: [] }
const MOST_AUCTIONS = 200
const DEPTH = 500

export const book = signal<BookView>(EMPTY)
export const tape = signal<readonly PublicFill[]>([])
/** Newest first. */
export const auctions = signal<readonly Auction[]>([])
export const stats = signal<MarketStats | null>(null)

interface AuctionData {
  readonly auctions: readonly Auction[]
}

class Auctions {
  #byId = new Map<number, Auction>()

  apply({ type, data }: TopicMessage<AuctionData>): void {
    if (type === 'snapshot') this.#byId = new Map()
    for (const each of data.auctions) this.#byId.set(each.batch_id, each)
    if (this.#byId.size <= MOST_AUCTIONS) return
    const ids = [...this.#byId.keys()].sort((a, b) => a - b)
    for (const id of ids.slice(0, ids.length - MOST_AUCTIONS)) this.#byId.delete(id)
  }

  get newestFirst(): readonly Auction[] {
    return [...this.#byId.values()].sort((a, b) => b.batch_id - a.batch_id)
  }
}

/** Follows the market until the returned function is called. */
export function followMarket(marketId: number): () => void {
  const [localBook, localTape, localAuctions] = [new LocalBook(marketId), new Tape(), new Auctions()]
  let newestStats: MarketStats | null = null
  const changed = { book: false, tape: false, auctions: false, stats: false }
  let isOpen = true
  const publish = perFrame(() => {
    if (!isOpen) return
    batch(() => {
      if (changed.book)
        book.value = { bids: localBook.levels('LONG', DEPTH), asks: localBook.levels('SHORT', DEPTH) }
      if (changed.tape) tape.value = localTape.fills
      if (changed.auctions) auctions.value = localAuctions.newestFirst
      if (changed.stats) stats.value = newestStats
    })
    Object.assign(changed, { book: false, tape: false, auctions: false, stats: false })
  })
  const note = (what: keyof typeof changed): void => {
    changed[what] = true
    publish()
  }
  const topic = (name: string): string => `market.${marketId}.${name}`
  const leave = [
    feed.subscribe(topic('book'), (message) => {
      localBook.apply(message as TopicMessage<BookData>)
      note('book')
    }),
    feed.subscribe(topic('trades'), (message) => {
      localTape.apply(message as TopicMessage<TradesData>)
      note('tape')
    }),
    feed.subscribe(topic('auction'), (message) => {
      localAuctions.apply(message as TopicMessage<AuctionData>)
      note('auctions')
    }),
    feed.subscribe(topic('stats'), (message) => {
      newestStats = (message as TopicMessage<MarketStats>).data
      note('stats')
    }),
  ]
  return () => {
    isOpen = false
    for (const each of leave) each()
    batch(() => {
      book.value = EMPTY
      tape.value = []
      auctions.value = []
      stats.value = null
    })
  }
}
