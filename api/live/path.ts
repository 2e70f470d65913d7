/** The path of the WebSocket. */
export const LIVE_PATH = '/v0/ws'
