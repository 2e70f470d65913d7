/** Sends a connection's messages, within bounds of unread bytes. */
import type { Socket } from 'node:net'
import type { WebSocket } from '@fastify/websocket'
import type { LiveMetrics } from './metrics.ts'
import type { Frame } from './ports.ts'
import type { Session } from './session.ts'
import { wireOf } from './wire.ts'

export class Outbox {
  readonly #webSocket: WebSocket
  readonly #socket: Socket
  readonly #session: Session
  readonly #metrics: LiveMetrics
  /** Topics with a subscription that is starting: the client has requested their frames. */
  readonly #beginning = new Set<string>()
  /** Topics with omitted frames: their next frame replaces them. */
  readonly #catchingUp = new Set<string>()

  constructor(webSocket: WebSocket, socket: Socket, session: Session, metrics: LiveMetrics) {
    this.#webSocket = webSocket
    this.#socket = socket
    this.#session = session
    this.#metrics = metrics
  }

  get #unread(): number {
    return this.#webSocket.bufferedAmount
  }

  /** Whether the client has read enough to receive more requested frames. */
  hasRead(): boolean {
    return this.#session.hasRead(this.#unread)
  }

  /** Sends all frames of one moment in one write. False: too many bytes are unread, and nothing is sent. */
  sendFrames(frames: readonly Frame[]): boolean {
    for (const { topic, text } of frames)
      if (this.#beginning.has(topic) || this.#catchingUp.delete(topic)) this.#session.request(text.length)
    const { send, conflated, closes } = this.#session.select(frames, this.#unread)
    if (conflated.length > 0) this.#metrics.conflated(conflated.length)
    if (closes) return false
    if (send.length === 0 || this.#webSocket.readyState !== this.#webSocket.OPEN) return true
    const bytes = wireOf(send)
    this.#socket.write(bytes)
    this.#metrics.sent(bytes.length)
    return true
  }

  /** Sends a message that belongs to no topic. False: too many bytes are unread, and nothing is sent. */
  sendText(text: string): boolean {
    const message = { topic: '', prevSeq: 0, text, isConflatable: false }
    if (this.#session.select([message], this.#unread).closes) return false
    this.#webSocket.send(text)
    this.#metrics.sent(text.length)
    return true
  }

  /** While `work` runs, frames of the topic count as requested by the client. */
  async begin<Value>(topic: string, work: () => Promise<Value>): Promise<Value> {
    this.#beginning.add(topic)
    try {
      return await work()
    } finally {
      this.#beginning.delete(topic)
    }
  }

  /** Topics with omitted frames, once the client has read enough. `all`: also topics that were returned before. */
  takeGaps(all: boolean): readonly string[] {
    const topics = this.#session.gaps(this.#unread, all)
    for (const topic of topics) this.#catchingUp.add(topic)
    return topics
  }

  forget(topic: string): void {
    this.#session.forget(topic)
    this.#catchingUp.delete(topic)
  }
}
