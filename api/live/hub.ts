/** Connects readers of topics with the feed. Each topic is encoded once per change and process. */
import type { Clock } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import { ApiError } from '../errors.ts'
import type { Channel } from './channel.ts'
import { Delivery } from './delivery.ts'
import type { FeedRow } from './feed-row.ts'
import type { Follower } from './follow.ts'
import { subscribedFrame, summaryFrame, updateFrames } from './frames.ts'
import {
  dueIn,
  isUrgent,
  type LiveTopic,
  LONGEST_PACE_MS,
  openTopic,
  type SharedSnapshot,
} from './live-topic.ts'
import { ParsedRows } from './parsed-rows.ts'
import { type Frame, type Hub, NOTHING, type Reader, type StartCost, type Subscription } from './ports.ts'
import { Replays } from './replays.ts'
import type { Occasion, Snapshots, TopicStart } from './snapshots.ts'
import { SYSTEM, type SystemTopic } from './system.ts'
import { type Position, parsePosition, type Topic, topicName } from './topics.ts'

/** Paced topics that are due within this time are sent with one that is due. */
const ALIGN_MS = 60
/** Least time between two reads of a summary. */
export const SUMMARY_MS = 1_000
/** Age up to which a snapshot is sent to further readers; what followed it is sent after it. */
const SNAPSHOT_AGE_MS = 1_000
/** Least pause before a subscription begins again whose snapshot could not be read; at most twice as long, so that they spread. */
const RETRY_MS = 1_000
/** Above these, a snapshot is cheaper than missed messages, which are encoded for one reader alone. */
const MISSED_ROWS = 1_000
const MISSED_BYTES = 1024 * 1024
/** Times that a subscription begins again because rows have left the ring meanwhile. */
const ATTEMPTS = 5

interface Member {
  readonly topic: LiveTopic
  isActive: boolean
}

export interface HubPorts {
  readonly clock: Clock
  readonly logger: Logger
  readonly snapshots: Snapshots
  readonly system: SystemTopic
  /** From 0 to 1. */
  readonly random: () => number
  /** Fails with MARKET_NOT_FOUND or CREDENTIAL_MISSING. `key`: topics of different accounts differ. */
  readonly channelOf: (
    topic: Topic,
    caller: Subscription['caller'],
  ) => Promise<{ readonly key: string; readonly channel: Channel }>
}

export class LiveHub implements Hub {
  readonly #ports: HubPorts
  readonly #follower: Pick<Follower, 'ring' | 'epoch' | 'reach'>
  readonly #topics = new Map<string, LiveTopic>()
  readonly #byHead = new Map<string, Set<LiveTopic>>()
  readonly #members = new Map<Reader, Map<string, Member>>()
  /** Topics with rows that wait to be sent together with later rows. */
  readonly #waiting = new Set<LiveTopic>()
  readonly #systemReaders = new WeakMap<Reader, object>()
  readonly #parsed = new ParsedRows()
  readonly #replays = new Replays()

  constructor(ports: HubPorts, follower: Pick<Follower, 'ring' | 'epoch' | 'reach'>) {
    this.#ports = ports
    this.#follower = follower
  }

  get topics(): number {
    return this.#topics.size
  }

  // ------------------------------------------------------------------ subscriptions

  /**
   * Starts with a snapshot, or with the rows after the reader's position, and joins the topic at the row that the
   * process read last.
   */
  async subscribe(reader: Reader, topic: Topic, { id, caller, since }: Subscription): Promise<StartCost> {
    const position = since === null ? null : parsePosition(since)
    const name = topicName(topic)
    this.unsubscribe(reader, name)
    if (topic.kind === 'system') return this.#subscribeToSystem(reader, id)
    const { key, channel } = await this.#ports.channelOf(topic, caller)
    const member = this.#enter(reader, key, name, channel)
    try {
      return await this.#begin(reader, member, position, id)
    } catch (error) {
      if (member.isActive) this.unsubscribe(reader, name)
      throw error
    }
  }

  /** A subscription that has not begun is replaced, or ended, by a later call. */
  async #subscribeToSystem(reader: Reader, id: string | number): Promise<StartCost> {
    const subscription = {}
    this.#systemReaders.set(reader, subscription)
    await this.#ports.system.subscribe(reader, id, () => this.#systemReaders.get(reader) === subscription)
    return NOTHING
  }

  unsubscribe(reader: Reader, name: string): void {
    if (name === SYSTEM) {
      this.#systemReaders.delete(reader)
      this.#ports.system.leave(reader)
    }
    const own = this.#members.get(reader)
    const member = own?.get(name)
    if (own === undefined || member === undefined) return
    own.delete(name)
    if (own.size === 0) this.#members.delete(reader)
    this.#release(reader, member)
  }

  refresh(reader: Reader, name: string): void {
    const member = this.#members.get(reader)?.get(name)
    if (member === undefined || !member.topic.readers.delete(reader)) return
    void this.#beginAgain(reader, member)
  }

  heads(reader: Reader, names: Iterable<string>): Record<string, number> {
    const own = this.#members.get(reader)
    const { system } = this.#ports
    const heads: Record<string, number> = {}
    for (const name of names) {
      const topic = own?.get(name)?.topic
      if (topic?.readers.has(reader)) heads[name] = topic.seq
      if (name === SYSTEM && system.has(reader)) heads[name] = system.seq
    }
    return heads
  }

  #enter(reader: Reader, key: string, name: string, channel: Channel): Member {
    const topic = this.#topics.get(key) ?? this.#open(key, name, channel)
    topic.members++
    const member = { topic, isActive: true }
    const own = this.#members.get(reader) ?? new Map<string, Member>()
    const before = own.get(name)
    this.#members.set(reader, own.set(name, member))
    if (before !== undefined) this.#release(reader, before)
    return member
  }

  #open(key: string, name: string, channel: Channel): LiveTopic {
    const topic = openTopic(key, name, channel)
    this.#topics.set(key, topic)
    this.#byHead.set(channel.head, (this.#byHead.get(channel.head) ?? new Set()).add(topic))
    return topic
  }

  #release(reader: Reader, member: Member): void {
    const { topic } = member
    member.isActive = false
    topic.readers.delete(reader)
    if (--topic.members > 0) return
    this.#waiting.delete(topic)
    if (topic.timer !== null) clearTimeout(topic.timer)
    this.#topics.delete(topic.key)
    const sameHead = this.#byHead.get(topic.channel.head)
    sameHead?.delete(topic)
    if (sameHead?.size === 0) this.#byHead.delete(topic.channel.head)
  }

  /** Sends the start of a subscription, with `subscribed` if the client waits for it, and joins the topic. */
  async #begin(
    reader: Reader,
    member: Member,
    since: Position | null,
    id: string | number | null,
  ): Promise<StartCost> {
    const { topic } = member
    let position = since
    for (let attempt = 0; member.isActive; attempt++) {
      const resumed = position === null ? null : await this.#resume(topic, position)
      const occasion = id === null ? 'again' : 'new'
      const start = resumed ?? (await this.#snapshot(topic, attempt > 0, occasion))
      await this.#follower.reach({ epoch: start.epoch, seq: start.head })
      if (!member.isActive) return NOTHING
      // From here on nothing is awaited, so that no row comes between the start and the topic's next message.
      if (this.#joins(topic, start)) {
        const { frames, rows } = this.#join(reader, topic, start, { id, isResumed: resumed !== null })
        reader.send(frames)
        return { rows, bytes: frames.reduce((sum, { text }) => sum + text.length, 0) }
      }
      position = null
      if (attempt >= ATTEMPTS) throw new ApiError('OVERLOADED', {}, '1')
    }
    return NOTHING
  }

  /** Whether the rows after the start are here. */
  #joins({ channel, seq }: LiveTopic, start: TopicStart): boolean {
    const { ring, epoch } = this.#follower
    if (start.epoch !== epoch || !ring.covers(start.head)) return false
    if (channel.update !== null) return true
    // The state of a summary is not older than that of its other readers, and is read again unless nothing has changed.
    return start.seq >= seq && (start.state !== null || ring.after(start.head, channel.head).length === 0)
  }

  #join(
    reader: Reader,
    topic: LiveTopic,
    start: TopicStart,
    { id, isResumed }: { readonly id: string | number | null; readonly isResumed: boolean },
  ): { readonly frames: Frame[]; readonly rows: number } {
    const { ring, epoch } = this.#follower
    if (topic.channel.update !== null) this.#sendPending([topic])
    else this.#sendSummary(topic, start)
    const rows = ring.after(start.head, topic.channel.head)
    const frames = [...start.frames, ...this.#replays.framesOf(topic, rows)]
    this.#parsed.add(rows)
    const seq = frames.at(-1)?.seq ?? start.seq
    topic.seq = Math.max(topic.seq, seq)
    topic.readers.add(reader)
    if (topic.channel.update === null && rows.length > 0) this.#readLater(topic)
    if (id === null) return { frames, rows: rows.length }
    const at = this.#ports.clock.now()
    const subscribed = subscribedFrame(topic, { id, epoch, seq, isResumed, at })
    return { frames: [subscribed, ...frames], rows: rows.length }
  }

  /** Null if the rows after the position are not here any more, or too many. */
  async #resume(topic: LiveTopic, since: Position): Promise<TopicStart | null> {
    const follower = this.#follower
    if (since.epoch !== follower.epoch) return null
    if (since.seq > follower.ring.head) await follower.reach(since)
    if (since.epoch !== follower.epoch) return null
    if (follower.ring.covers(since.seq)) {
      const missed = follower.ring.after(since.seq, topic.channel.head)
      const bytes = missed.reduce((sum, { size }) => sum + size, 0)
      if (missed.length > MISSED_ROWS || bytes > MISSED_BYTES) return null
      return { ...since, head: since.seq, frames: [], state: null }
    }
    if (since.seq > follower.ring.head) return null
    // Nothing may have concerned the topic since.
    const state = await this.#ports.snapshots.state(topic)
    return state.epoch === since.epoch && state.seq <= since.seq ? state : null
  }

  #snapshot(topic: LiveTopic, isFresh: boolean, occasion: Occasion): Promise<TopicStart> {
    const now = this.#ports.clock.now()
    const { snapshot } = topic
    // A new subscription does not wait behind all that begin again.
    const isAwaited = snapshot?.isPending && (occasion === 'again' || snapshot.occasion === 'new')
    const isYoung = snapshot !== null && now - snapshot.requestedAt <= SNAPSHOT_AGE_MS
    if (!isFresh && snapshot !== null && (isAwaited || (isYoung && !snapshot.isPending)))
      return snapshot.start
    const start = this.#ports.snapshots.read(topic, occasion)
    const own: SharedSnapshot = { requestedAt: now, occasion, isPending: true, start }
    topic.snapshot = own
    start.then(
      () => {
        own.isPending = false
      },
      () => {
        if (topic.snapshot === own) topic.snapshot = null
      },
    )
    return start
  }

  async #beginAgain(reader: Reader, member: Member): Promise<void> {
    try {
      await this.#begin(reader, member, null, null)
    } catch (error) {
      // While the read model is being filled, every reader of the topic waits.
      if (!(error instanceof ApiError)) {
        const { name } = member.topic
        this.#ports.logger.warn({ err: error, topic: name }, 'snapshot of a live topic failed; will retry')
      }
      const timer = setTimeout(
        () => {
          if (member.isActive) void this.#beginAgain(reader, member)
        },
        RETRY_MS * (1 + this.#ports.random()),
      )
      timer.unref()
    }
  }

  // ------------------------------------------------------------------ changes

  /** Sends what the rows change. Each reader gets the messages of all of its topics in one call. */
  accept(rows: readonly FeedRow[]): void {
    const delivery = new Delivery()
    const touched = new Map<LiveTopic, FeedRow[]>()
    for (const row of rows)
      for (const head of row.heads)
        for (const topic of this.#byHead.get(head) ?? []) {
          if (topic.readers.size === 0) continue
          const own = touched.get(topic)
          if (own === undefined) touched.set(topic, [row])
          else own.push(row)
        }
    const now = this.#ports.clock.now()
    for (const [topic, own] of touched) {
      if (topic.channel.update === null) {
        this.#readLater(topic)
        continue
      }
      topic.pending.push(...own)
      if (isUrgent(topic, own) || dueIn(topic, now) <= 0) this.#flush(topic, delivery)
      else this.#sendLater(topic, now)
    }
    delivery.send()
  }

  #sendLater(topic: LiveTopic, now: number): void {
    this.#waiting.add(topic)
    topic.timer ??= setTimeout(() => this.#sendWaiting(topic), Math.min(dueIn(topic, now), LONGEST_PACE_MS))
  }

  /** Sends what waits in the topic, and in those that are due soon: a socket is written to once for all of its topics. */
  #sendWaiting(topic: LiveTopic): void {
    const now = this.#ports.clock.now()
    const soon = [...this.#waiting].filter((other) => other === topic || dueIn(other, now) <= ALIGN_MS)
    this.#sendPending(soon)
  }

  #sendPending(topics: readonly LiveTopic[]): void {
    const delivery = new Delivery()
    const rows = topics.flatMap(({ pending }) => pending)
    for (const topic of topics) this.#flush(topic, delivery)
    this.#parsed.add(rows)
    delivery.send()
  }

  /** Adds the messages of the pending rows. */
  #flush(topic: LiveTopic, delivery: Delivery): void {
    this.#waiting.delete(topic)
    if (topic.timer !== null) clearTimeout(topic.timer)
    topic.timer = null
    const rows = topic.pending
    if (rows.length === 0) return
    topic.pending = []
    topic.sentAt = this.#ports.clock.now()
    topic.hasSentBatch = isUrgent(topic, rows)
    try {
      const frames = updateFrames(topic, rows)
      topic.seq = (rows.at(-1) as FeedRow).seq
      delivery.add(topic.readers, frames)
    } catch (error) {
      this.#ports.logger.error({ err: error, topic: topic.name }, 'encoding a live topic failed')
      for (const reader of [...topic.readers]) this.refresh(reader, topic.name)
    }
  }

  #readLater(topic: LiveTopic): void {
    if (topic.timer !== null) return
    const dueIn = topic.sentAt + SUMMARY_MS - this.#ports.clock.now()
    topic.timer = setTimeout(() => void this.#readSummary(topic), Math.max(0, Math.min(dueIn, SUMMARY_MS)))
  }

  async #readSummary(topic: LiveTopic): Promise<void> {
    topic.sentAt = this.#ports.clock.now()
    try {
      const start = await this.#snapshot(topic, true, 'again')
      topic.timer = null
      await this.#follower.reach({ epoch: start.epoch, seq: start.head })
      if (!this.#joins(topic, start)) return
      this.#sendSummary(topic, start)
      if (this.#follower.ring.after(start.head, topic.channel.head).length > 0) this.#readLater(topic)
    } catch (error) {
      this.#ports.logger.warn({ err: error, topic: topic.name }, 'reading a live topic failed; will retry')
      topic.timer = null
      if (topic.readers.size > 0) this.#readLater(topic)
    }
  }

  /** Sends the state to the readers of the summary, unless they have it. */
  #sendSummary(topic: LiveTopic, { epoch, seq, state }: TopicStart): void {
    if (state === null || seq <= topic.seq || topic.readers.size === 0) return
    const { ring } = this.#follower
    const unsent = ring.covers(topic.seq) ? ring.after(topic.seq, topic.channel.head) : []
    const rows = unsent.filter((row) => row.seq <= seq)
    const frame = summaryFrame(topic, { prevSeq: topic.seq, rows }, { epoch, seq, ...state })
    topic.seq = seq
    const frames = [frame]
    for (const reader of topic.readers) reader.send(frames)
  }

  /** The rows do not continue: every subscription begins with a snapshot again. */
  restart(): void {
    this.#replays.forget()
    this.#waiting.clear()
    for (const topic of this.#topics.values()) {
      if (topic.timer !== null) clearTimeout(topic.timer)
      Object.assign(topic, { timer: null, pending: [], snapshot: null, seq: 0 })
    }
    for (const [reader, own] of this.#members)
      for (const member of own.values())
        if (member.topic.readers.delete(reader)) void this.#beginAgain(reader, member)
  }
}
