/**
 * A WebSocket of which only the heads of messages are read: a thousand clients must cost little beside what is measured.
 * Answers pings. The stream ends with its process.
 */
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

/** Bytes of a message that are read. */
const HEAD_BYTES = 300
const TEXT = 0x81
const PING = 0x89
const PONG = 0x8a
/** A client masks what it sends. This mask changes nothing. */
const MASK = Buffer.alloc(4)

const masked = (kind: number, payload: Buffer): Buffer => {
  if (payload.length > 125) throw new Error(`a message of ${payload.length} bytes: at most 125 can be sent`)
  return Buffer.concat([Buffer.from([kind, 0x80 | payload.length]), MASK, payload])
}

interface Header {
  readonly kind: number
  readonly bytes: number
  readonly length: number
}

/** Null if the data ends within it. */
function headerOf(data: Buffer): Header | null {
  if (data.length < 2) return null
  const short = data.readUInt8(1)
  const bytes = short === 127 ? 10 : short === 126 ? 4 : 2
  if (data.length < bytes) return null
  const length = bytes === 2 ? short : bytes === 4 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2))
  return { kind: data.readUInt8(0), bytes, length }
}

/** Reads of all sockets: each is done with its bytes when its callback returns. */
const BUFFER = Buffer.alloc(64 * 1024)
const HEADERS_END = '\r\n\r\n'

/** Heads of messages that came together. */
type Heads = readonly string[]

/** The whole messages that a socket has read last: the next one probably gets the same. */
let newest: { readonly bytes: Buffer; readonly heads: Heads } | null = null

export class LeanSocket {
  readonly #socket: Socket
  readonly #onHeads: (heads: Heads) => void
  #rest: Buffer = Buffer.alloc(0)
  /** Bytes of the current message that are still to come. */
  #skipped = 0
  #isOpen = false

  private constructor(url: URL, onHeads: (heads: Heads) => void, onOpen: () => void) {
    this.#onHeads = onHeads
    const callback = (bytes: number): boolean => {
      const data = BUFFER.subarray(0, bytes)
      if (this.#isOpen) this.#read(data)
      else if (this.#readAnswer(data)) onOpen()
      return true
    }
    this.#socket = connect({
      host: url.hostname,
      port: Number(url.port),
      onread: { buffer: BUFFER, callback },
    })
    const key = randomBytes(16).toString('base64')
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
    const first = [`GET ${url.pathname} HTTP/1.1`, `Host: ${url.host}`, ...lines, `Sec-WebSocket-Key: ${key}`]
    this.#socket.write(first.join('\r\n') + HEADERS_END)
  }

  /** Sockets that read the same messages are called with the same list of their heads. */
  static open(url: string, onHeads: (heads: Heads) => void): Promise<LeanSocket> {
    return new Promise((resolve, reject) => {
      const socket: LeanSocket = new LeanSocket(new URL(url), onHeads, () => resolve(socket))
      socket.#socket.on('error', reject)
    })
  }

  send(message: object): void {
    this.#socket.write(masked(TEXT, Buffer.from(JSON.stringify(message))))
  }

  /** Whether the answer to the upgrade is complete. */
  #readAnswer(data: Buffer): boolean {
    const all = Buffer.concat([this.#rest, data])
    const end = all.indexOf(HEADERS_END)
    this.#rest = all
    if (end === -1) return false
    if (!all.toString('latin1', 0, end).startsWith('HTTP/1.1 101'))
      throw new Error(all.toString('latin1', 0, end))
    this.#rest = Buffer.alloc(0)
    this.#isOpen = true
    this.#read(all.subarray(end + HEADERS_END.length))
    return true
  }

  get #isBetween(): boolean {
    return this.#rest.length === 0 && this.#skipped === 0
  }

  #read(chunk: Buffer): void {
    const isWhole = this.#isBetween
    if (isWhole && newest?.bytes.equals(chunk)) {
      this.#onHeads(newest.heads)
      return
    }
    const { heads, pings } = this.#parse(chunk)
    if (isWhole && this.#isBetween && pings === 0) newest = { bytes: Buffer.from(chunk), heads }
    this.#onHeads(heads)
  }

  #parse(chunk: Buffer): { readonly heads: Heads; readonly pings: number } {
    const heads: string[] = []
    let pings = 0
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    for (;;) {
      const skipped = Math.min(this.#skipped, data.length)
      this.#skipped -= skipped
      data = data.subarray(skipped)
      const header = headerOf(data)
      if (header === null || data.length < header.bytes + Math.min(header.length, HEAD_BYTES)) break
      const payload = data.subarray(header.bytes, header.bytes + Math.min(header.length, HEAD_BYTES))
      if (header.kind === TEXT) heads.push(payload.toString('latin1'))
      if (header.kind === PING) {
        pings++
        this.#socket.write(masked(PONG, payload))
      }
      this.#skipped = header.bytes + header.length
    }
    this.#rest = Buffer.from(data)
    return { heads, pings }
  }
}
