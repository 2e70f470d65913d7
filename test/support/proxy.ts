/** A TCP proxy that can be cut and restored, to simulate an outage of a server. */
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../../stack/ports.ts'

export interface CutProxy {
  /** The target's URL with the proxy's address. */
  readonly url: string
  cut(): Promise<void>
  /** Cuts the next connection that sends the text: before the target receives it, or once the target has answered it. */
  cutAt(text: string, when: 'before' | 'after'): void
  restore(): Promise<void>
}

export async function startProxy(target: string): Promise<CutProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let armed: { readonly text: string; readonly when: 'before' | 'after' } | null = null
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    // These listeners run before those of the pipes, whose writes to a destroyed socket have no effect.
    near.on('data', (chunk: Buffer) => {
      if (armed === null || !chunk.includes(armed.text)) return
      const { when } = armed
      armed = null
      const end = () => [near, far].forEach((socket) => void socket.destroy())
      if (when === 'before') end()
      else far.prependOnceListener('data', end)
    })
    near.pipe(far).pipe(near)
  })
  const own = await freePort()
  const restore = () => new Promise<void>((resolve) => server.listen(own, '127.0.0.1', resolve))
  await restore()
  const url = new URL(target)
  url.host = `127.0.0.1:${own}`
  // The target's Unix socket (stack/postgres.ts) would bypass the proxy.
  url.searchParams.delete('host')
  return {
    url: url.toString(),
    restore,
    cutAt: (text, when) => {
      armed = { text, when }
    },
    cut: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** A TCP proxy in front of several servers. */
export interface Switch {
  readonly url: string
  close(): Promise<void>
}

/** Each new connection goes to the target that is chosen then. */
export async function startSwitch(targets: readonly string[], choose: () => number): Promise<Switch> {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const { hostname, port } = new URL(targets[choose()] as string)
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(socket)
          near.destroy()
          far.destroy()
        })
    }
    near.pipe(far).pipe(near)
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
