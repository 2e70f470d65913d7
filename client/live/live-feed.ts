/** The live feed of a trader's program: topics, local copies of markets, and commands over the same connection. */
import { OutcomeMemory } from '../outcomes.ts'
import { LiveOrders } from './live-orders.ts'
import { LiveTopics, type LiveTopicsOptions } from './live-topics.ts'
import { LocalBook } from './local-book.ts'
import { LocalTrades } from './local-trades.ts'
import type { BookData, TopicMessage, TradesData } from './messages.ts'
import { type MessageStream, messageStream } from './stream.ts'

export interface LiveFeedOptions extends LiveTopicsOptions {
  /** Time limit for one command, including all attempts. */
  readonly budgetMs?: number | undefined
  readonly outcomes?: OutcomeMemory
}

export class LiveFeed extends LiveTopics {
  readonly orders: LiveOrders

  constructor(options: LiveFeedOptions) {
    super(options)
    this.orders = new LiveOrders({
      connection: () => this.connected(),
      note: (write) => this.note(write),
      budgetMs: options.budgetMs ?? 15_000,
      outcomes: options.outcomes ?? new OutcomeMemory(),
    })
  }

  /** Messages of a topic as an async iterator. Leaving the loop ends the subscription. */
  messages(topic: string): MessageStream {
    return messageStream((listener) => this.subscribe(topic, listener))
  }

  /** A copy of the market's order book that follows the feed. `onChange` is called after each message. */
  book(marketId: number, onChange: (book: LocalBook) => void = () => {}): LocalBook {
    return this.#follow<BookData, LocalBook>(`market.${marketId}.book`, new LocalBook(marketId), onChange)
  }

  /** A copy of the market's public fills that follows the feed. `onChange` is called after each message. */
  trades(marketId: number, onChange: (trades: LocalTrades) => void = () => {}): LocalTrades {
    return this.#follow<TradesData, LocalTrades>(
      `market.${marketId}.trades`,
      new LocalTrades(marketId),
      onChange,
    )
  }

  /**
   * Cancels every live order of the account `graceSeconds` after the connection ends; 0 disarms. The setting is valid
   * for this connection only.
   */
  async cancelOnDisconnect(graceSeconds: number): Promise<void> {
    await this.connected().call('cancel_on_disconnect', { grace_seconds: graceSeconds }, 10_000)
  }

  #follow<Data, Copy extends { apply(message: TopicMessage<Data>): void }>(
    topic: string,
    copy: Copy,
    onChange: (copy: Copy) => void,
  ): Copy {
    this.subscribe(topic, (message) => {
      copy.apply(message as TopicMessage<Data>)
      onChange(copy)
    })
    return copy
  }
}
