/**
 * A WebSocket of which only the heads of messages are read: a thousand clients must cost little beside what is measured.
 * Answers pings. The stream ends with its process.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'

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

export class LeanSocket {
  readonly #socket: Socket
  readonly #onHead: (head: string) => void
  #rest: Buffer = Buffer.alloc(0)
  /** Bytes of the current message that are still to come. */
  #skipped = 0

  private constructor(socket: Socket, onHead: (head: string) => void) {
    this.#socket = socket
    this.#onHead = onHead
    socket.on('data', (data) => this.#read(data))
  }

  static async open(url: string, onHead: (head: string) => void): Promise<LeanSocket> {
    const opening = request(url.replace(/^ws/, 'http'), {
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': randomBytes(16).toString('base64'),
      },
    })
    opening.end()
    const [, socket, first] = (await once(opening, 'upgrade')) as [IncomingMessage, Socket, Buffer]
    const opened = new LeanSocket(socket, onHead)
    opened.#read(first)
    return opened
  }

  send(message: object): void {
    this.#socket.write(masked(TEXT, Buffer.from(JSON.stringify(message))))
  }

  #read(chunk: Buffer): void {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    for (;;) {
      const skipped = Math.min(this.#skipped, data.length)
      this.#skipped -= skipped
      data = data.subarray(skipped)
      const header = headerOf(data)
      if (header === null || data.length < header.bytes + Math.min(header.length, HEAD_BYTES)) break
      const payload = data.subarray(header.bytes, header.bytes + Math.min(header.length, HEAD_BYTES))
      if (header.kind === TEXT) this.#onHead(payload.toString('latin1'))
      if (header.kind === PING) this.#socket.write(masked(PONG, payload))
      this.#skipped = header.bytes + header.length
    }
    this.#rest = data
  }
}
