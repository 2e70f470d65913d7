import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { ApiError } from '../../../api/errors.ts'
import { parseMessage } from '../../../api/live/parse-message.ts'
import { BATCH_MESSAGE_LIMIT, OPS } from '../../../api/live/schema.ts'

const HASH = `0x${'ab'.repeat(32)}`
const PLACEMENT = { market_id: 1, side: 'LONG', order_type: 'MARKET', salt: '1', signature: '0x' }
const VALID: readonly object[] = [
  { op: 'ping', id: 1 },
  { op: 'auth', id: 'a', authorization: 'Key cb_x' },
  { op: 'subscribe', id: 'a', topics: ['market.1.book', 'user'], since: { user: '1:2' } },
  { op: 'unsubscribe', id: 'a', topics: ['user'] },
  { op: 'cancel_on_disconnect', id: 'a', grace_seconds: 10 },
  { op: 'cancel', id: 'a', body: { order_hash: HASH, reason: 'x' } },
  { op: 'cancel_all', id: 'a', body: {} },
  { op: 'cancel_batch', id: 'a', body: { client_request_id: 'x', orderHashes: [HASH] } },
  { op: 'place', id: 'a', body: PLACEMENT },
  { op: 'cancel_by_client_id', id: 'a', body: { client_order_id: 'bid-1' } },
  { op: 'replace', id: 'a', body: { cancel: { order_hash: HASH }, order: PLACEMENT } },
  { op: 'replace_batch', id: 'a', body: { client_request_id: 'x', mode: 'atomic', orders: [{}] } },
  { op: 'place_batch', id: 'a', body: { client_request_id: 'x', mode: 'atomic', orders: [{}] } },
]

const codeOf = (text: string): string => {
  const parsed = parseMessage(text)
  return 'error' in parsed ? parsed.error.code : 'accepted'
}

describe('messages of clients', () => {
  it('when a message is valid, it is accepted with its id', () => {
    expect(VALID.map((message) => (message as { op: string }).op)).to.have.members([...OPS])
    for (const message of VALID) {
      const parsed = parseMessage(JSON.stringify(message))
      expect('error' in parsed ? parsed.error.context : null, JSON.stringify(message)).to.equal(null)
      expect(parsed).to.deep.include(message.constructor === Object ? { message } : {})
    }
  })

  it('when a field of a valid message is changed to anything, it is accepted or rejected by the catalogue', () => {
    fc.assert(
      fc.property(fc.constantFrom(...VALID), fc.string(), fc.jsonValue(), (message, name, value) => {
        const names = Object.keys(message)
        for (const field of [name, ...names]) {
          const parsed = parseMessage(JSON.stringify({ ...message, [field]: value }))
          if (!('error' in parsed)) continue
          expect(parsed.error).to.be.instanceOf(ApiError)
          expect(parsed.error.status).to.equal(400)
        }
      }),
    )
  })

  it('when a message is any text, it is rejected by the catalogue', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(codeOf(text)).to.be.oneOf([
          ...['INVALID_JSON', 'MISSING_FIELD', 'INVALID_FIELD', 'DUPLICATE_FIELD', 'PRECISION_LOST'],
        ])
      }),
    )
  })

  it('when a message is as large as it may be, it is rejected in milliseconds of processor time', () => {
    const fill = (part: string): string => part.repeat(Math.floor((BATCH_MESSAGE_LIMIT - 100) / part.length))
    const texts = [
      `{"op":"place","id":1,"body":${fill('[')}`,
      `{"op":"place","id":1,"body":${'['.repeat(40_000)}${']'.repeat(40_000)}}`,
      `{"op":"ping","id":${fill('1')}}`,
      `{"op":"subscribe","id":1,"topics":[${fill('"a",')}"a"]}`,
      `{${Array.from({ length: 9_000 }, (_, at) => `"f${at}":1`).join(',')}}`,
      `{"op":"place_batch","id":1,"body":{"client_request_id":"x","mode":"atomic","orders":[${fill('{},')}{}]}}`,
    ]
    for (const text of texts) {
      const started = process.cpuUsage()
      expect(codeOf(text), text.slice(0, 40)).to.not.equal('accepted')
      const { user, system } = process.cpuUsage(started)
      expect((user + system) / 1_000, text.slice(0, 40)).to.be.lessThan(300)
    }
  })
})
