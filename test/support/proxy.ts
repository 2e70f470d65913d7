/** A TCP proxy that can be cut and restored, to simulate an outage of a server. */
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../../stack/ports.ts'

export interface CutProxy {
  /** The target's URL with the proxy's address. */
  readonly url: string
  cut(): Promise<void>
  restore(): Promise<void>
}

export async function startProxy(target: string): Promise<CutProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    near.pipe(far).pipe(near)
  })
  const own = await freePort()
  const restore = () => new Promise<void>((resolve) => server.listen(own, '127.0.0.1', resolve))
  await restore()
  const url = new URL(target)
  url.host = `127.0.0.1:${own}`
  return {
    url: url.toString(),
    restore,
    cut: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
