/** A client of the live feed in a process of its own, which counts messages without reading them: its processor time is not that of the api. */
import { fork } from 'node:child_process'
import { once } from 'node:events'

const PROGRAM = `
  const { WebSocket } = require('ws')
  const [url, key] = process.argv.slice(1)
  const socket = new WebSocket(url, { headers: { authorization: 'Key ' + key } })
  socket.on('open', () => process.send('open'))
  socket.on('message', (data) => {
    const type = /"type":"(\\w+)"/.exec(data.subarray(0, 200).toString())
    process.send({ type: type && type[1], bytes: data.length, text: data.length < 4096 ? data.toString() : '' })
  })
  process.on('message', (text) => socket.send(text))
  const end = (why) => (error) => { console.error('the client of the feed ends: ' + why, error); process.exit(1) }
  socket.on('close', end('its connection is closed'))
  socket.on('error', end('its connection failed'))
  process.on('error', end('a message cannot be passed on'))
  process.on('disconnect', () => process.exit())
`

export interface RawMessage {
  readonly type: string | null
  readonly bytes: number
  /** Empty if it is long. */
  readonly text: string
}

export interface RawFeed {
  readonly messages: RawMessage[]
  send(message: object): void
  close(): void
}

export async function openRawFeed(base: string, apiKey: string): Promise<RawFeed> {
  const url = `${base.replace(/^http/, 'ws')}/v0/ws`
  const child = fork('-e', [PROGRAM, url, apiKey], { stdio: 'inherit' })
  await once(child, 'message')
  const messages: RawMessage[] = []
  child.on('message', (message) => messages.push(message as RawMessage))
  return {
    messages,
    send: (message) => child.send(JSON.stringify(message)),
    close: () => {
      if (child.connected) child.disconnect()
    },
  }
}
