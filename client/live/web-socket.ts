/** Opens a WebSocket with the runtime's implementation. Node.js 20 has none: there it is that of the package `ws`. */

/** In a variable, so that bundlers for browsers do not include the package. */
const PACKAGE = 'ws'

/** Synchronous where the runtime has an implementation. */
export function openSocket(url: string, use: (socket: WebSocket) => void): void {
  if (globalThis.WebSocket === undefined) void openFallback(url, use)
  else use(new WebSocket(url))
}

async function openFallback(url: string, use: (socket: WebSocket) => void): Promise<void> {
  const loaded = (await import(PACKAGE).catch((cause: unknown) => {
    throw new Error('the live feed needs Node.js 22 or the package ws: run `npm install ws`', { cause })
  })) as { WebSocket: typeof WebSocket }
  use(new loaded.WebSocket(url))
}
