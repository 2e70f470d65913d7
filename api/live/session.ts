/** The state of one connection without its socket: which messages pass in and out, and when the connection ends. */

export interface SessionLimits {
  /** Messages in each window of `windowMs`. */
  readonly messages: number
  readonly windowMs: number
  /** Unread bytes beyond which topics that allow it are conflated. */
  readonly conflateBytes: number
  /** Unread bytes beyond which the connection is closed. */
  readonly bufferBytes: number
  /** Without a subscription, longest time between two messages of the client. */
  readonly idleMs: number
  /** Longest time without a sign of life: a message, or the answer to a ping. */
  readonly silenceMs: number
}

/** Why the exchange closes a connection. `code` and `reason` are part of the contract with traders. */
export const CLOSES = {
  shutdown: { code: 1012, reason: 'the server restarts' },
  malformed: { code: 4400, reason: 'too many malformed messages' },
  replaced: { code: 4401, reason: 'the API key was replaced' },
  revoked: { code: 4401, reason: 'the API key was revoked' },
  expired: { code: 4401, reason: 'the identity token has expired' },
  slow: { code: 4408, reason: 'slow consumer: too many bytes are unread' },
  idle: { code: 4410, reason: 'no subscription and no message for too long' },
  silent: { code: 4411, reason: 'pings are not answered' },
  flood: { code: 4429, reason: 'too many messages' },
} as const
export type CloseReason = keyof typeof CLOSES

/** The part of a frame that decides whether it is sent. */
export interface Outgoing {
  readonly topic: string
  /** The `seq` of the topic's message before it; that of a snapshot is 0. */
  readonly prevSeq: number
  readonly text: { readonly length: number }
  readonly isConflatable: boolean
}

/** Frames to send now. `closes`: too many bytes are unread, so nothing is sent. */
export interface Selection<Frame extends Outgoing> {
  readonly send: readonly Frame[]
  /** Frames that are left out: their topics are behind. */
  readonly conflated: readonly Frame[]
  readonly closes: boolean
}

/** Malformed messages in one window, at most. */
const MOST_MALFORMED = 10
/** Operations of a connection that are not answered yet, at most. */
export const MOST_PENDING = 100

/** Frames of a topic were left out after the frame with this `seq`. */
interface Gap {
  readonly after: number
  /** Whether what was left out is requested already. */
  isRequested: boolean
}

export class Session {
  readonly #limits: SessionLimits
  #windowEnds = 0
  #messages = 0
  #malformed = 0
  #lastMessage: number
  #lastSign: number
  /** Bytes of snapshots and resumed messages: the client has asked for them, so they do not count as unread. */
  #requested = 0
  /** Topics with left-out frames. */
  readonly #behind = new Map<string, Gap>()

  constructor(limits: SessionLimits, now: number) {
    this.#limits = limits
    this.#lastMessage = now
    this.#lastSign = now
  }

  /** A message has arrived. `reject`: beyond the limit; `close`: twice beyond it. */
  admit(now: number): 'accept' | 'reject' | 'close' {
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + this.#limits.windowMs
      this.#messages = 0
      this.#malformed = 0
    }
    this.#lastMessage = now
    this.#lastSign = now
    this.#messages++
    if (this.#messages <= this.#limits.messages) return 'accept'
    return this.#messages <= 2 * this.#limits.messages ? 'reject' : 'close'
  }

  /** Milliseconds until messages are accepted again. */
  resetMs(now: number): number {
    return Math.max(0, this.#windowEnds - now)
  }

  /** Whether a message that cannot be read is one too many. */
  countMalformed(): boolean {
    return ++this.#malformed > MOST_MALFORMED
  }

  /** The answer to a ping. */
  sign(now: number): void {
    this.#lastSign = now
  }

  /** Bytes that the client has asked for are about to be sent. */
  request(bytes: number): void {
    this.#requested += bytes
  }

  /** Whether the client has read enough to be sent more of what it asks for. */
  hasRead(buffered: number): boolean {
    if (buffered > this.#limits.conflateBytes) return false
    this.#requested = 0
    return true
  }

  /** `buffered`: unread bytes. */
  select<Frame extends Outgoing>(frames: readonly Frame[], buffered: number): Selection<Frame> {
    const isRead = buffered <= this.#limits.conflateBytes
    const send: Frame[] = []
    const conflated: Frame[] = []
    let bytes = 0
    for (const frame of frames) {
      if (frame.isConflatable && !this.#passes(frame, isRead)) conflated.push(frame)
      else {
        send.push(frame)
        bytes += frame.text.length
      }
    }
    const closes = buffered > 0 && buffered + bytes - this.#requested > this.#limits.bufferBytes
    // The list itself if nothing is left out: its bytes are made once for all connections that share it.
    const rest = conflated.length === 0 ? frames : send
    return { send: closes ? [] : rest, conflated, closes }
  }

  /** After a gap only a frame passes that closes it: a snapshot, or an update that starts before the gap. */
  #passes({ topic, prevSeq }: Outgoing, isRead: boolean): boolean {
    const gap = this.#behind.get(topic)
    const closesGap = gap === undefined || prevSeq === 0 || prevSeq === gap.after
    if (closesGap && isRead) this.#behind.delete(topic)
    else if (closesGap) this.#behind.set(topic, { after: gap?.after ?? prevSeq, isRequested: false })
    return closesGap && isRead
  }

  /** The topics with a gap, if the client has read enough to be sent what it missed. `all`: also those that were returned before. */
  gaps(buffered: number, all: boolean): readonly string[] {
    if (!this.hasRead(buffered) || this.#behind.size === 0) return []
    const due = [...this.#behind].filter(([, { isRequested }]) => all || !isRequested)
    for (const [, gap] of due) gap.isRequested = true
    return due.map(([topic]) => topic)
  }

  forget(topic: string): void {
    this.#behind.delete(topic)
  }

  /** Why the connection ends now; null if it goes on. */
  endsBy(
    now: number,
    { isUsed, expiresAt }: { readonly isUsed: boolean; readonly expiresAt: number | null },
  ): CloseReason | null {
    if (expiresAt !== null && now >= expiresAt) return 'expired'
    if (now - this.#lastSign > this.#limits.silenceMs) return 'silent'
    return !isUsed && now - this.#lastMessage > this.#limits.idleMs ? 'idle' : null
  }
}
