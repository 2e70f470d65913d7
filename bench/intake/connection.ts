/** Connections of the load generators. Plain sockets and requests prepared in advance keep the CPU use of a generator low. */
import net from 'node:net'

export function requestOf(path: string, apiKey: string, body: string): Buffer {
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: bench',
    `authorization: Key ${apiKey}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

export interface Answer {
  readonly status: number
  readonly body: string
}

export const isAccepted = ({ status }: Answer): boolean => status === 200

export interface Connection {
  send(request: Buffer, done: (answer: Answer) => void): void
  close(): void
}

/**
 * A connection with one request in flight; parses only status and length. If the API has closed it, the next request
 * opens another, without sending an order twice.
 */
export async function connect(port: number): Promise<Connection> {
  let pending: { readonly request: Buffer; readonly done: (answer: Answer) => void } | undefined
  let isClosing = false
  let text = ''
  const onData = (chunk: Buffer): void => {
    text += chunk.toString('latin1')
    const end = text.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
    if (text.length < end + 4 + length) return
    const answer = { status: Number(text.slice(9, 12)), body: text.slice(end + 4) }
    if (!isAccepted(answer) && process.env.BENCH_VERBOSE) console.error(answer.body)
    text = ''
    const answered = pending
    pending = undefined
    answered?.done(answer)
  }
  const onClose = (): void => {
    text = ''
    if (isClosing) return
    socket = open()
    if (pending !== undefined) socket.write(pending.request)
  }
  const open = (): net.Socket =>
    net
      .connect({ port, host: '127.0.0.1', noDelay: true })
      .on('data', onData)
      .on('close', onClose)
      .on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') throw error
      })
  let socket = open()
  await new Promise((resolve) => socket.once('connect', resolve))
  return {
    send(request, done) {
      pending = { request, done }
      if (socket.writable) socket.write(request)
    },
    close() {
      isClosing = true
      socket.destroy()
    },
  }
}
