/** Requests over connections, which the order lane may answer; requests that are injected into the framework pass it by. */
import { Agent, createServer, type IncomingHttpHeaders, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface Received {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Connections {
  post(path: string, headers: Readonly<Record<string, string>>, body: string | undefined): Promise<Received>
  close(): void
}

/** At most this many connections at a time, fewer than an address may have. */
const MOST = 50

/** Connections to a port of their own, so that a test may still start the server. */
export async function connectTo(server: Server): Promise<Connections> {
  const door = createServer((incoming, response) => server.emit('request', incoming, response))
  // A server that ends an idle connection while a client begins a request on it resets the request.
  door.keepAliveTimeout = 0
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  door.unref()
  const { port } = door.address() as AddressInfo
  const agent = new Agent({ keepAlive: true, maxSockets: MOST })
  return {
    post: (path, headers, body) =>
      new Promise((resolve, reject) => {
        const length = { 'content-length': String(Buffer.byteLength(body ?? '')) }
        const options = { agent, port, host: '127.0.0.1', method: 'POST', path }
        const sent = request({ ...options, headers: { ...length, ...headers } }, (answer) => {
          const status = answer.statusCode as number
          text(answer).then(
            (received) => resolve({ status, headers: answer.headers, body: received }),
            reject,
          )
        })
        sent.on('error', reject)
        sent.end(body)
      }),
    close() {
      agent.destroy()
      door.close()
    },
  }
}
