/** New heads over a WebSocket: a wake-up, never a source of data. Connects again for as long as it is wanted. */
import { WebSocketProvider } from 'ethers'

const AGAIN_MS = 2_000

export interface Heads {
  stop(): Promise<void>
}

export function watchHeads(url: string, onHead: () => void): Heads {
  let provider: WebSocketProvider | undefined
  let again: NodeJS.Timeout | undefined
  let isWanted = true

  const connect = (): void => {
    const current = new WebSocketProvider(url)
    provider = current
    const lost = (): void => {
      if (!isWanted || provider !== current) return
      provider = undefined
      void current.destroy().catch(() => {})
      again = setTimeout(connect, AGAIN_MS)
    }
    const socket = current.websocket as { onclose?: unknown; onerror?: unknown }
    socket.onclose = lost
    socket.onerror = lost
    void current.on('block', onHead).catch(lost)
  }

  connect()
  return {
    async stop() {
      isWanted = false
      clearTimeout(again)
      await provider?.destroy().catch(() => {})
    },
  }
}
