/** A proxy between two processes that can be cut, slow or lossy. Bytes arrive in order and complete, as over TCP. */
import { connect, createServer, type Socket } from 'node:net'

/** A path of a Unix socket, or a port of the loopback interface. */
export type Endpoint = string | number

export interface Weather {
  /** Nothing passes; connections stay open, as in a partition. */
  isCut: boolean
  delayMs: number
  /** Thousandths of the pieces that are lost: each is sent again after `RESEND_MS`. */
  loss: number
}

export const fair = (): Weather => ({ isCut: false, delayMs: 0, loss: 0 })

/** As a first retransmission of TCP. */
const RESEND_MS = 300
/** Pieces that wait before the sender is slowed down. */
const MOST_WAITING = 256
/** Share of the lost pieces with which the connection ends. */
const RESETS = 0.05

const listenAt = (endpoint: Endpoint) =>
  typeof endpoint === 'number' ? { port: endpoint, host: '127.0.0.1' } : { path: endpoint }

export class Link {
  readonly #weather: Weather = fair()
  readonly #sockets = new Set<Socket>()
  readonly #lanes = new Set<Lane>()
  readonly #server: ReturnType<typeof createServer>
  readonly #random: () => number

  private constructor(target: Endpoint, random: () => number) {
    this.#random = random
    this.#server = createServer((near) => {
      const far = connect(listenAt(target))
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        from.setNoDelay(true)
        this.#sockets.add(from)
        const lane = new Lane(from, to, this.#weather, this.#random)
        this.#lanes.add(lane)
        from.once('close', () => {
          this.#sockets.delete(from)
          this.#lanes.delete(lane)
        })
      }
    })
  }

  static async start(from: Endpoint, target: Endpoint, random: () => number): Promise<Link> {
    const link = new Link(target, random)
    await new Promise<void>((resolve, reject) => {
      link.#server.once('error', reject)
      link.#server.listen(listenAt(from), resolve)
    })
    return link
  }

  /** Pieces that wait are sent once nothing is cut. */
  set(weather: Partial<Weather>): void {
    Object.assign(this.#weather, weather)
    for (const lane of this.#lanes) lane.flush()
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

interface Piece {
  /** Null: the end of the connection. */
  readonly bytes: Buffer | null
  readonly due: number
}

/** One direction of a connection. */
class Lane {
  readonly #from: Socket
  readonly #to: Socket
  readonly #weather: Weather
  readonly #random: () => number
  readonly #waiting: Piece[] = []
  #timer: NodeJS.Timeout | null = null
  #latest = 0

  constructor(from: Socket, to: Socket, weather: Weather, random: () => number) {
    this.#from = from
    this.#to = to
    this.#weather = weather
    this.#random = random
    from.on('data', (bytes: Buffer) => this.#add(bytes))
    from.once('end', () => this.#add(null))
    // The peer learns of a failure as of an end: not while the link is cut.
    from.on('error', () => this.#add(null))
    to.on('drain', () => from.resume())
  }

  #add(bytes: Buffer | null): void {
    const { delayMs, loss } = this.#weather
    const isLost = loss > 0 && 1000 * this.#random() < loss
    const isReset = isLost && this.#random() < RESETS
    if (isReset) this.#from.destroy()
    this.#latest = Math.max(this.#latest, Date.now() + delayMs + (isLost ? RESEND_MS : 0))
    this.#waiting.push({ bytes: isReset ? null : bytes, due: this.#latest })
    if (this.#waiting.length > MOST_WAITING) this.#from.pause()
    this.flush()
  }

  flush(): void {
    if (this.#weather.isCut) return
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    for (const now = Date.now(); ; ) {
      const next = this.#waiting[0]
      if (next === undefined) break
      if (next.due > now) {
        this.#timer = setTimeout(() => this.flush(), next.due - now)
        return
      }
      this.#waiting.shift()
      this.#send(next)
    }
    if (!this.#to.writableNeedDrain) this.#from.resume()
  }

  #send({ bytes }: Piece): void {
    if (bytes === null) this.#to.end()
    else if (!this.#to.destroyed && !this.#to.write(bytes)) this.#from.pause()
  }
}
