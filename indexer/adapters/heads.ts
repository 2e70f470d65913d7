/** Subscribes to new heads over a WebSocket, as a wake-up and never as a source of data. Reconnects until it is stopped. */
import { WebSocketProvider } from 'ethers'

const RECONNECT_MS = 2_000

export interface Heads {
  stop(): Promise<void>
}

export function watchHeads(url: string, onHead: () => void): Heads {
  let provider: WebSocketProvider | undefined
  let reconnect: NodeJS.Timeout | undefined
  let isRunning = true

  const connect = (): void => {
    const current = new WebSocketProvider(url)
    provider = current
    const lost = (): void => {
      if (!isRunning || provider !== current) return
      provider = undefined
      void current.destroy().catch(() => {})
      reconnect = setTimeout(connect, RECONNECT_MS)
    }
    const socket = current.websocket as { onclose?: unknown; onerror?: unknown }
    socket.onclose = lost
    socket.onerror = lost
    void current.on('block', onHead).catch(lost)
  }

  connect()
  return {
    async stop() {
      isRunning = false
      clearTimeout(reconnect)
      await provider?.destroy().catch(() => {})
    },
  }
}
