/** Frames of the engine's connections: the length of the text in four bytes, then JSON in UTF-8. */
import type { Duplex } from 'node:stream'

const HEADER_BYTES = 4

/** The peer has sent bytes that are no frame; the connection is closed. */
export class FrameError extends Error {}

/** Splits the bytes of a connection into messages. */
export class FrameReader {
  readonly #maxBytes: number
  #chunks: Buffer[] = []
  #size = 0
  /** Bytes that the next step needs: a header, or a header and its text. */
  #needed = HEADER_BYTES

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Messages that the chunk completes. Throws FrameError; the reader must not be used after that. */
  push(chunk: Buffer): unknown[] {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    const messages: unknown[] = []
    // Chunks are joined once per complete frame, so that a frame in small pieces costs no more than its length.
    while (this.#size >= this.#needed) {
      const bytes = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks)
      const length = bytes.readUInt32BE(0)
      if (length > this.#maxBytes)
        throw new FrameError(`a frame has at most ${this.#maxBytes} bytes, received ${length}`)
      const end = HEADER_BYTES + length
      if (bytes.length < end) {
        this.#hold(bytes, end)
        break
      }
      messages.push(parse(bytes.subarray(HEADER_BYTES, end)))
      this.#hold(bytes.subarray(end), HEADER_BYTES)
    }
    return messages
  }

  #hold(bytes: Buffer, needed: number): void {
    this.#chunks = bytes.length === 0 ? [] : [bytes]
    this.#size = bytes.length
    this.#needed = needed
  }
}

function parse(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8'))
  } catch {
    throw new FrameError('a frame contains JSON')
  }
}

/** Header and text in one buffer: a stream hands each buffer to the system on its own. */
function frameOf(message: object): Buffer {
  const text = JSON.stringify(message)
  const length = Buffer.byteLength(text)
  const frame = Buffer.allocUnsafe(HEADER_BYTES + length)
  frame.writeUInt32BE(length)
  frame.write(text, HEADER_BYTES)
  return frame
}

/** Writes messages; those of one turn of the event loop leave in one system call. */
export class FrameWriter {
  readonly #stream: Duplex
  #isCorked = false

  constructor(stream: Duplex) {
    this.#stream = stream
  }

  write(message: object): void {
    if (this.#stream.destroyed || this.#stream.writableEnded) return
    if (!this.#isCorked) {
      this.#isCorked = true
      this.#stream.cork()
      setImmediate(() => {
        this.#isCorked = false
        this.#stream.uncork()
      })
    }
    this.#stream.write(frameOf(message))
  }

  /** Ends the stream behind what was written. */
  end(): void {
    setImmediate(() => this.#stream.end())
  }

  /** Bytes that the peer has not read. */
  get waitingBytes(): number {
    return this.#stream.writableLength
  }
}
