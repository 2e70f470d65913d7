/**
 * Waiting commands by class. Each class has a share of the thread: the class whose used time, divided by its share, is
 * least is next. Within a class accounts take turns, and commands of one account keep their order.
 */

export const COMMAND_CLASSES = ['chain', 'auction', 'cancel', 'placement'] as const
export type CommandClass = (typeof COMMAND_CLASSES)[number]

/** Parts of the thread while all classes wait; a class that does not use its part leaves it to the others. */
export const SHARES: Readonly<Record<CommandClass, number>> = {
  chain: 0.35,
  auction: 0.25,
  cancel: 0.2,
  placement: 0.2,
}

/** Classes that are never refused: the exchange cannot do without them. */
const UNBOUNDED: ReadonlySet<CommandClass> = new Set(['chain', 'auction'])

export interface Queued {
  readonly class: CommandClass
  /** The account that the command acts for; null for the exchange itself. */
  readonly account: number | null
  /** Monotonic time after which the command must not be decided. */
  readonly deadline: number
}

export interface FairQueue<Item extends Queued> {
  /** False if the item could not be decided before its deadline; it is not queued. */
  push(item: Item, now: number): boolean
  /** Puts an item before all others of its account: a continuation, or a command that is decided again. */
  pushFront(item: Item): void
  take(): Item | null
  /** Accounts for the milliseconds that an item of the class took. */
  charge(of: CommandClass, ms: number): void
  waiting(of: CommandClass): number
  readonly size: number
}

/** Weight of the newest measurement in the smoothed cost of a class. */
const SMOOTHING = 0.05

class ClassQueue<Item extends Queued> {
  /** Used milliseconds divided by the share. */
  used = 0
  size = 0
  /** Smoothed milliseconds per item. */
  cost = 0
  /** Insertion order is the order of turns. */
  readonly #accounts = new Map<number | null, Item[]>()

  add(item: Item, isFirst: boolean): void {
    const own = this.#accounts.get(item.account)
    if (own === undefined) this.#accounts.set(item.account, [item])
    else if (isFirst) own.unshift(item)
    else own.push(item)
    this.size += 1
  }

  has(account: number | null): boolean {
    return this.#accounts.has(account)
  }

  take(): Item | null {
    for (const [account, items] of this.#accounts) {
      this.#accounts.delete(account)
      const item = items.shift() as Item
      if (items.length > 0) this.#accounts.set(account, items)
      this.size -= 1
      return item
    }
    return null
  }
}

export function createFairQueue<Item extends Queued>(): FairQueue<Item> {
  const queues = new Map<CommandClass, ClassQueue<Item>>(
    COMMAND_CLASSES.map((name) => [name, new ClassQueue()]),
  )
  const queueOf = (name: CommandClass): ClassQueue<Item> => queues.get(name) as ClassQueue<Item>

  /** A cancel behind a placement of its account waits with it: decided first, it would miss that placement's order. */
  const queueFor = ({ class: own, account }: Item): ClassQueue<Item> => {
    const isBehind = own === 'cancel' && account !== null && queueOf('placement').has(account)
    return queueOf(isBehind ? 'placement' : own)
  }

  /** A class that begins to wait has no claim to time at which it had nothing to do. */
  function forgetIdleTime(queue: ClassQueue<Item>): void {
    if (queue.size > 0) return
    const waiting = [...queues.values()].filter(({ size }) => size > 0)
    if (waiting.length > 0) queue.used = Math.max(queue.used, Math.min(...waiting.map(({ used }) => used)))
  }

  function add(item: Item, isFirst: boolean): void {
    const queue = queueFor(item)
    forgetIdleTime(queue)
    queue.add(item, isFirst)
  }

  return {
    push(item, now) {
      const queue = queueFor(item)
      const wait = (queue.size * queue.cost) / SHARES[item.class]
      if (!UNBOUNDED.has(item.class) && now + wait > item.deadline) return false
      add(item, false)
      return true
    },
    pushFront: (item) => add(item, true),
    take() {
      let next: ClassQueue<Item> | null = null
      for (const queue of queues.values()) {
        if (queue.size > 0 && (next === null || queue.used < next.used)) next = queue
      }
      return next === null ? null : next.take()
    },
    charge(name, ms) {
      const queue = queueOf(name)
      queue.used += ms / SHARES[name]
      queue.cost += (ms - queue.cost) * SMOOTHING
    },
    waiting: (name) => queueOf(name).size,
    get size() {
      return COMMAND_CLASSES.reduce((sum, name) => sum + queueOf(name).size, 0)
    },
  }
}
