/**
 * Waiting commands by class, each with a share of the thread: the class with the least used time per share is next.
 * Accounts take turns; commands of an account keep their order.
 */

export const COMMAND_CLASSES = ['chain', 'auction', 'cancel', 'placement'] as const
export type CommandClass = (typeof COMMAND_CLASSES)[number]

/** Parts of the thread while all classes wait; a class that does not use its part leaves it to other classes. */
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

/** An account, or the class for commands of no account. */
type Line = number | CommandClass

class ClassQueue {
  /** Used milliseconds divided by the share. */
  used = 0
  /** Waiting commands of the class. */
  size = 0
  /** Smoothed milliseconds per item. */
  cost = 0
  /** Lines whose first command has the class; insertion order is the order of turns. */
  readonly ready = new Set<Line>()
}

export function createFairQueue<Item extends Queued>(): FairQueue<Item> {
  const queues = new Map<CommandClass, ClassQueue>(COMMAND_CLASSES.map((name) => [name, new ClassQueue()]))
  const queueOf = (name: CommandClass): ClassQueue => queues.get(name) as ClassQueue
  /**
   * Commands by line, in order of arrival. Only the first of a line waits in its class: a cancel decided before a
   * placement of its account would miss the order, and vice versa.
   */
  const lines = new Map<Line, Item[]>()
  const lineOf = ({ account, class: own }: Item): Line => account ?? own

  /** A class that begins to wait has no claim to time at which it had nothing to do. */
  function forgetIdleTime(queue: ClassQueue): void {
    if (queue.ready.size > 0) return
    const waiting = [...queues.values()].filter(({ ready }) => ready.size > 0)
    if (waiting.length > 0) queue.used = Math.max(queue.used, Math.min(...waiting.map(({ used }) => used)))
  }

  function makeReady(line: Line, first: Item): void {
    const queue = queueOf(first.class)
    forgetIdleTime(queue)
    queue.ready.add(line)
  }

  function add(item: Item, isFirst: boolean): void {
    const line = lineOf(item)
    const items = lines.get(line)
    if (items === undefined) {
      lines.set(line, [item])
      makeReady(line, item)
    } else if (isFirst) {
      const [former] = items as [Item]
      items.unshift(item)
      if (former.class !== item.class) {
        queueOf(former.class).ready.delete(line)
        makeReady(line, item)
      }
    } else items.push(item)
    queueOf(item.class).size += 1
  }

  /** Milliseconds until the item is decided: behind its own class, and behind the class for which its line waits. */
  function waitOf(item: Item): number {
    const [first = item] = lines.get(lineOf(item)) ?? []
    const waits = [item, first].map(({ class: own }) => queueOf(own).size * queueOf(own).cost)
    return Math.max(...waits) / SHARES[item.class]
  }

  function nextQueue(): ClassQueue | null {
    let next: ClassQueue | null = null
    for (const queue of queues.values()) {
      if (queue.ready.size > 0 && (next === null || queue.used < next.used)) next = queue
    }
    return next
  }

  return {
    push(item, now) {
      if (!UNBOUNDED.has(item.class) && now + waitOf(item) > item.deadline) return false
      add(item, false)
      return true
    },
    pushFront: (item) => add(item, true),
    take() {
      const queue = nextQueue()
      if (queue === null) return null
      const line = queue.ready.values().next().value as Line
      const items = lines.get(line) as Item[]
      const item = items.shift() as Item
      queue.ready.delete(line)
      queue.size -= 1
      const [following] = items
      if (following === undefined) lines.delete(line)
      // The class has waited all the time.
      else if (following.class === item.class) queue.ready.add(line)
      else makeReady(line, following)
      return item
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
