/**
 * Subscriptions to the live feed. After a gap a topic resumes after the last message, or starts with a new snapshot. No
 * message is delivered twice or missing without a snapshot.
 */
import type { ClearbatchError } from '../errors.ts'
import type { PlacedOrder } from '../responses.ts'
import { type ConnectionOptions, errorOf, LiveConnection } from './connection.ts'
import { LocalAccount, type OwnWrite } from './local-account.ts'
import type { Subscribed, TopicMessage, UserData } from './messages.ts'
import { TopicSequence, type Verdict } from './sequence.ts'

export interface LiveTopicsOptions extends ConnectionOptions {
  /** Reads an order, at least as new as the client's own write: the feed may start after the order's end. */
  readonly readOrder?: (write: OwnWrite) => Promise<PlacedOrder>
  /** The exchange refuses the credential, or a topic. */
  readonly onError?: ((error: ClearbatchError) => void) | undefined
}

export type TopicListener = (message: TopicMessage) => void

interface Subscription {
  readonly sequence: TopicSequence
  readonly listeners: Set<TopicListener>
  /** Id of the operation that the next `subscribed` answers. */
  id: string | number | null
  retries: number
  timer: ReturnType<typeof setTimeout> | undefined
}

const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 10_000

/** Topics only: a program that sends its commands over REST loads no code for commands over the feed. */
export class LiveTopics {
  readonly #options: LiveTopicsOptions
  readonly #topics = new Map<string, Subscription>()
  #connection: LiveConnection | null = null
  #account: LocalAccount | null = null

  constructor(options: LiveTopicsOptions) {
    this.#options = options
  }

  /** Whether every topic has reached its latest state, as far as received by this client. */
  get isCurrent(): boolean {
    return [...this.#topics.values()].every(({ sequence }) => sequence.isCurrent)
  }

  /**
   * Calls the listener with the topic's snapshot and every later message; returns a function that removes it.
   * A further listener restarts the subscription, so that each gets a snapshot.
   */
  subscribe(topic: string, listener: TopicListener): () => void {
    const subscription = this.#topics.get(topic) ?? newSubscription()
    this.#topics.set(topic, subscription)
    subscription.listeners.add(listener)
    subscription.sequence.forget()
    this.#join(topic, subscription)
    return () => {
      if (subscription.listeners.delete(listener) && subscription.listeners.size === 0)
        this.#leave(topic, subscription)
    }
  }

  /** A copy of the account that follows the feed and shows the client's own writes at once. */
  account(): LocalAccount {
    if (this.#account !== null) return this.#account
    const account = new LocalAccount()
    this.#account = account
    this.subscribe('user', (message) => {
      account.apply(message as TopicMessage<UserData>)
      if (message.type === 'snapshot') void this.#resolveWrites(account)
    })
    return account
  }

  /** Shows a write of this client, from a REST answer, in the account. */
  note(write: OwnWrite): void {
    this.#account?.note(write)
  }

  /** Ends the current connection like a network failure. Returns false if there is no connection. */
  interrupt(): boolean {
    return this.#connection?.interrupt() ?? false
  }

  close(): void {
    for (const { timer } of this.#topics.values()) clearTimeout(timer)
    this.#topics.clear()
    this.#connection?.close()
  }

  // ------------------------------------------------------------------ subscriptions

  protected connected(): LiveConnection {
    this.#connection ??= new LiveConnection(this.#options, {
      connected: () => {
        for (const [topic, subscription] of this.#topics) this.#join(topic, subscription)
      },
      disconnected: () => {
        for (const subscription of this.#topics.values()) stop(subscription)
      },
      message: (message) => this.#receive(message),
      refused: (error) => this.#options.onError?.(error),
    })
    return this.#connection
  }

  #join(topic: string, subscription: Subscription): void {
    const connection = this.connected()
    stop(subscription)
    if (!connection.isConnected) return
    const { position } = subscription.sequence
    const since = position === null ? {} : { since: { [topic]: position } }
    subscription.id = connection.send('subscribe', { topics: [topic], ...since })
  }

  #leave(topic: string, subscription: Subscription): void {
    stop(subscription)
    this.#topics.delete(topic)
    if (this.#connection?.isConnected) this.#connection.send('unsubscribe', { topics: [topic] })
  }

  /** The delay grows with each attempt since the last message that continued the topic. */
  #joinLater(topic: string, subscription: Subscription): void {
    stop(subscription)
    const longest = Math.min(FIRST_RETRY_MS * 2 ** subscription.retries++, LONGEST_RETRY_MS)
    subscription.timer = setTimeout(
      () => this.#join(topic, subscription),
      longest * (0.5 + Math.random() / 2),
    )
  }

  // ------------------------------------------------------------------ messages

  #receive(message: Record<string, unknown>): void {
    const { type, topic } = message
    if (type === 'heartbeat') {
      const { topics } = message.data as { topics: Record<string, number> }
      for (const [name, head] of Object.entries(topics)) this.#compare(name, head)
      return
    }
    const subscription = this.#topics.get(topic as string)
    if (subscription === undefined) return
    const name = topic as string
    if (type === 'error') this.#fail(name, subscription, message)
    else if (type === 'subscribed' && message.id === subscription.id)
      this.#judge(name, subscription, subscription.sequence.subscribed(message as unknown as Subscribed))
    else if (type === 'snapshot' || type === 'update')
      this.#deliver(name, subscription, message as unknown as TopicMessage)
  }

  #deliver(topic: string, subscription: Subscription, message: TopicMessage): void {
    const verdict = subscription.sequence.take(message)
    this.#judge(topic, subscription, verdict)
    if (verdict !== 'apply') return
    subscription.retries = 0
    for (const listener of subscription.listeners) listener(message)
  }

  #judge(topic: string, subscription: Subscription, verdict: Verdict): void {
    if (verdict === 'gap') this.#joinLater(topic, subscription)
  }

  #compare(topic: string, head: number): void {
    const subscription = this.#topics.get(topic)
    if (subscription?.sequence.lags(head)) this.#joinLater(topic, subscription)
  }

  #fail(topic: string, subscription: Subscription, message: Record<string, unknown>): void {
    if (message.id !== subscription.id) return
    const error = errorOf(message)
    // A subscription has no side effect, so it is repeated after any failure of the exchange.
    if (error.retryable || error.status >= 500) this.#joinLater(topic, subscription)
    else {
      stop(subscription)
      this.#options.onError?.(error)
    }
  }

  /** A snapshot omits ended orders and does not state which of the client's writes it contains. */
  async #resolveWrites(account: LocalAccount): Promise<void> {
    const { readOrder } = this.#options
    if (readOrder === undefined) return
    for (const write of account.writes) {
      const order = await readOrder(write).catch(() => null)
      if (order !== null && account.writes.includes(write)) account.resolve(write, order)
    }
  }
}

const newSubscription = (): Subscription => ({
  sequence: new TopicSequence(),
  listeners: new Set(),
  id: null,
  retries: 0,
  timer: undefined,
})

/** Ignores the topic's messages until it starts again. */
function stop(subscription: Subscription): void {
  clearTimeout(subscription.timer)
  subscription.id = null
  subscription.sequence.restart()
}
