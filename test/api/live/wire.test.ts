/** The bytes of messages on a WebSocket, as a client reads them. */

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { WebSocket, WebSocketServer } from 'ws'
import type { Frame } from '../../../api/live/ports.ts'
import { wireOf } from '../../../api/live/wire.ts'

const frame = (text: string): Frame => ({
  ...{ topic: 'system', seq: 1, prevSeq: 0, isConflatable: false },
  text: Buffer.from(text),
})

describe('messages on a WebSocket', () => {
  it('when messages have any length, a client reads each of them', async () => {
    const texts = [0, 1, 125, 126, 65_535, 65_536, 200_000].map((length) =>
      'é'.repeat(length / 2).padEnd(length, 'x'),
    )
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    server.on('connection', (_, { socket }) => {
      for (const part of [texts.slice(0, 3), texts.slice(3)]) socket.write(wireOf(part.map(frame)))
    })
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const read: string[] = []
    await new Promise((resolve, reject) => {
      client.on('error', reject)
      client.on('message', (data, isBinary) => {
        expect(isBinary).to.equal(false)
        if (read.push(String(data)) === texts.length) resolve(null)
      })
    })
    client.terminate()
    server.close()
    expect(read.map((text) => text.length)).to.deep.equal(texts.map((text) => text.length))
    expect(read).to.deep.equal(texts)
  })

  it('when readers share a list of messages, the bytes are made once; other messages have their own', () => {
    const both = [frame('one'), frame('other')]
    const bytes = wireOf(both)
    expect(wireOf([both[0] as Frame])).to.deep.equal(bytes.subarray(0, 5))
    expect(wireOf(both.toReversed())).to.not.deep.equal(bytes)
    expect(wireOf(both)).to.equal(bytes)
  })
})
