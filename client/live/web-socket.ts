/** Opens a WebSocket with the runtime's implementation. Node.js 20 has none: there it is that of the package `ws`. */

/** The name is a parameter, so that bundlers for browsers do not include the package: they know the value of a constant. */
const load = (name: string): Promise<unknown> => import(/* @vite-ignore */ name)

/** Synchronous where the runtime has an implementation. */
export function openSocket(url: string, use: (socket: WebSocket) => void): void {
  if (globalThis.WebSocket === undefined) void openFallback(url, use)
  else use(new WebSocket(url))
}

async function openFallback(url: string, use: (socket: WebSocket) => void): Promise<void> {
  const loaded = (await load('ws').catch((cause: unknown) => {
    throw new Error('the live feed needs Node.js 22 or the package ws: run `npm install ws`', { cause })
  })) as { WebSocket: typeof WebSocket }
  use(new loaded.WebSocket(url))
}
