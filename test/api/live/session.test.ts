import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { type Outgoing, Session, type SessionLimits } from '../../../api/live/session.ts'

const LIMITS: SessionLimits = {
  ...{ messages: 10, windowMs: 1_000, conflateBytes: 100, bufferBytes: 1_000 },
  ...{ idleMs: 5_000, silenceMs: 2_000 },
}

const frame = (
  topic: string,
  prevSeq: number,
  length = 10,
  isConflatable = true,
): Outgoing & { seq: number } => ({
  ...{ topic, prevSeq, seq: prevSeq + 1, text: { length }, isConflatable },
})

describe('the session of a connection', () => {
  it('when the client reads, all frames are sent', () => {
    const session = new Session(LIMITS, 0)
    const frames = [frame('book', 1), frame('user', 1, 10, false)]
    expect(session.select(frames, 100)).to.deep.equal({ send: frames, conflated: [], closes: false })
  })

  it('when the client does not read, a topic is left out until a frame closes the gap', () => {
    const session = new Session(LIMITS, 0)
    const [user, ...book] = [
      frame('user', 1, 10, false),
      frame('book', 1),
      frame('book', 2),
      frame('book', 3),
    ]
    expect(session.select([book[0] as Outgoing, user as Outgoing], 101).send).to.deep.equal([user])
    expect(session.select([book[1] as Outgoing], 0).send, 'a frame after the gap').to.deep.equal([])
    expect(session.gaps(101, false), 'not while it does not read').to.deep.equal([])
    expect(session.gaps(0, false)).to.deep.equal(['book'])
    expect(session.gaps(0, false), 'once').to.deep.equal([])
    expect(session.gaps(0, true)).to.deep.equal(['book'])
    const merged = { ...frame('book', 1), seq: 4 }
    expect(session.select([merged], 0).send).to.deep.equal([merged])
    expect(session.select([frame('book', 4)], 0).conflated).to.deep.equal([])
  })

  it('when a snapshot arrives, it closes the gap', () => {
    const session = new Session(LIMITS, 0)
    session.select([frame('book', 5)], 200)
    const snapshot = frame('book', 0)
    expect(session.select([snapshot], 0).send).to.deep.equal([snapshot])
  })

  it('when the client reads again too late, the connection closes and sends nothing', () => {
    const session = new Session(LIMITS, 0)
    const { send, closes } = session.select([frame('user', 1, 10, false)], 1_000)
    expect({ send, closes }).to.deep.equal({ send: [], closes: true })
  })

  it('when the client has asked for more than the limit, the connection stays until it could have read it', () => {
    const session = new Session(LIMITS, 0)
    session.request(5_000)
    expect(session.select([frame('user', 1, 5_000, false)], 0).closes).to.equal(false)
    expect(session.select([frame('user', 2, 500, false)], 5_000).closes).to.equal(false)
    expect(session.select([frame('user', 3, 501, false)], 5_500).closes).to.equal(true)
    session.hasRead(0)
    expect(session.select([frame('user', 4, 10, false)], 1_000).closes).to.equal(true)
  })

  it('when a client reads at any pace, what it receives of a topic has no gap', () => {
    const step = fc.record({
      topic: fc.constantFrom('book', 'user'),
      unread: fc.nat(200),
      answers: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const session = new Session(LIMITS, 0)
        const heads = { book: 0, user: 0 }
        const received = { book: 0, user: 0 }
        const deliver = (frames: readonly (Outgoing & { seq: number })[], unread: number): void => {
          for (const { topic, prevSeq, seq } of session.select(frames, unread).send) {
            const name = topic as 'book' | 'user'
            expect(prevSeq === 0 || prevSeq === received[name], 'no gap').to.equal(true)
            received[name] = seq
          }
        }
        for (const { topic, unread, answers } of steps) {
          const name = topic as 'book' | 'user'
          deliver([frame(name, heads[name]++, 1, name === 'book')], unread)
          // The hub answers a gap by a snapshot, at once or later.
          if (answers && session.gaps(unread, false).length > 0)
            deliver([{ ...frame('book', 0), seq: heads.book }], 0)
        }
        for (const gap of session.gaps(0, true)) deliver([{ ...frame(gap, 0), seq: heads.book }], 0)
        expect(received).to.deep.equal(heads)
      }),
    )
  })

  it('when messages arrive, those beyond the limit are rejected until the window ends', () => {
    const session = new Session(LIMITS, 0)
    const admissions = Array.from({ length: 21 }, () => session.admit(5))
    expect(admissions.slice(0, 10)).to.deep.equal(Array(10).fill('accept'))
    expect(admissions.slice(10, 20)).to.deep.equal(Array(10).fill('reject'))
    expect(admissions[20]).to.equal('close')
    expect(session.resetMs(305)).to.equal(700)
    expect(session.admit(1_005)).to.equal('accept')
  })

  it('when time passes, it ends by expiry, silence or idleness', () => {
    const used = { isUsed: true, expiresAt: null }
    const unused = { isUsed: false, expiresAt: null }
    const session = new Session(LIMITS, 0)
    expect(session.endsBy(2_000, used)).to.equal(null)
    expect(session.endsBy(2_001, used)).to.equal('silent')
    session.sign(5_000)
    expect(session.endsBy(5_001, used)).to.equal(null)
    expect(session.endsBy(5_001, unused)).to.equal('idle')
    session.admit(5_001)
    expect(session.endsBy(5_002, unused)).to.equal(null)
    expect(session.endsBy(5_002, { isUsed: true, expiresAt: 5_002 })).to.equal('expired')
  })
})
