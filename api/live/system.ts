/**
 * Topic `system`: order acceptance, maintenance windows and newest announcements. Each process reads it itself, because
 * it depends on clocks; subscriptions always start with a snapshot.
 */
import type { Logger } from '../../service/logger.ts'
import type { readSystem } from '../exchange/status.ts'
import type { Frame, Reader } from './ports.ts'

type Status = Awaited<ReturnType<typeof readSystem>>

export interface SystemPorts {
  readonly now: () => number
  readonly logger: Logger
  readonly read: () => Promise<Status>
}

export const SYSTEM = 'system'
/** Interval at which the state is read while the topic has readers. */
const POLL_MS = 1_000

/** Fields that change with events, not with time alone. */
const shown = ({ status, chain, maintenance, announcements, markets }: Status) => ({
  status,
  chain_fresh: chain.fresh,
  maintenance,
  announcements,
  markets: markets.map(({ market_id, symbol, mode, oracle_fresh, placements }) => ({
    ...{ market_id, symbol, mode, oracle_fresh, placements },
  })),
})

export class SystemTopic {
  readonly #ports: SystemPorts
  readonly #readers = new Set<Reader>()
  #data: object = {}
  #text = ''
  /** Milliseconds of the last change, or more: it grows with every change. */
  seq = 0
  #readAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | null = null

  constructor(ports: SystemPorts) {
    this.#ports = ports
  }

  has(reader: Reader): boolean {
    return this.#readers.has(reader)
  }

  /** `isWanted`: false if the subscription has ended meanwhile. */
  async subscribe(reader: Reader, id: string | number, isWanted: () => boolean): Promise<void> {
    if (this.#ports.now() - this.#readAt > POLL_MS) await this.#read()
    if (!isWanted()) return
    const data = { epoch: 0, resumed: false }
    reader.send([
      this.#frame({ type: 'subscribed', id, seq: this.seq, data }, 0),
      this.#frame({ type: 'snapshot', seq: this.seq, prev_seq: 0, epoch: 0, data: this.#data }, 0),
    ])
    this.#readers.add(reader)
    this.#timer ??= setInterval(() => void this.#poll(), POLL_MS).unref()
  }

  leave(reader: Reader): void {
    if (!this.#readers.delete(reader) || this.#readers.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }

  async #poll(): Promise<void> {
    try {
      await this.#read()
    } catch (error) {
      this.#ports.logger.warn({ err: error }, 'reading the state of the exchange failed; will retry')
    }
  }

  async #read(): Promise<void> {
    const data = shown(await this.#ports.read())
    this.#readAt = this.#ports.now()
    const text = JSON.stringify(data)
    if (text === this.#text) return
    const before = this.seq
    this.seq = Math.max(before + 1, this.#ports.now())
    this.#text = text
    this.#data = data
    const frame = this.#frame({ type: 'update', seq: this.seq, prev_seq: before, data }, before)
    for (const reader of this.#readers) reader.send([frame])
  }

  #frame(message: object, prevSeq: number): Frame {
    const ts = new Date(this.#ports.now()).toISOString()
    const text = Buffer.from(JSON.stringify({ topic: SYSTEM, ts, ...message }))
    return { topic: SYSTEM, seq: this.seq, prevSeq, text, isConflatable: false }
  }
}
