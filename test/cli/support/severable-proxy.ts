/** A TCP proxy whose connections a test can end, as a failure of the network would. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export async function startSeverableProxy(port: number) {
  const sockets = new Set<Socket>()
  let isDown = false
  const server = createServer((client) => {
    if (isDown) {
      client.destroy()
      return
    }
    const upstream = connect(port, '127.0.0.1')
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.pipe(other)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sever = () => {
    isDown = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sever,
    restore() {
      isDown = false
    },
    stop() {
      sever()
      server.close()
    },
  }
}
