/** Frames of the engine's connections. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { FrameError, FrameReader } from '../../../keeper/engine/link/frames.ts'
import { frameOf } from './support/frame-of.ts'

describe('the frames of a connection', () => {
  it('when bytes arrive in any pieces, the reader returns the same messages', () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
        (messages, sizes) => {
          const bytes = Buffer.concat(messages.map(frameOf))
          const reader = new FrameReader(1_000_000)
          const found: unknown[] = []
          for (let at = 0, turn = 0; at < bytes.length; turn++) {
            const size = sizes[turn % sizes.length] as number
            found.push(...reader.push(bytes.subarray(at, at + size)))
            at += size
          }
          expect(found).to.deep.equal(messages.map((message) => JSON.parse(JSON.stringify(message))))
        },
      ),
    )
  })

  it('when a length exceeds the limit, the reader throws before it has the text', () => {
    expect(() => new FrameReader(8).push(Buffer.from([0, 0, 0, 9]))).to.throw(FrameError, 'at most 8 bytes')
  })
})
