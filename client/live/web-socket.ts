/**
 * Opens a WebSocket with the runtime's implementation, or with the package `ws` on Node.js 20, which has none.
 */

/**
 * The package name is a parameter, because browser bundlers would resolve a constant name and include the package.
 */
const load = (name: string): Promise<unknown> => import(/* @vite-ignore */ name)

/** Synchronous if the runtime has an implementation. */
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
