/** Once a command was answered as not executed, no earlier attempt at it is executed. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { placementKey } from '../../../domain/exchange/decide/orders/command-keys.ts'
import type { Millis } from '../../../domain/units.ts'
import { Attempts, MAX_ATTEMPT_AGE_MS } from '../../../keeper/engine/attempts.ts'
import type { ExchangeAnswer, ExchangeCommand } from '../../../keeper/engine/commands.ts'
import { ConnectionDeadlines } from '../../../keeper/engine/connection-deadlines.ts'
import { createEnginePort, type EnginePort } from '../../../keeper/engine/engine-port.ts'
import { Facts } from '../../../keeper/engine/facts.ts'
import type { Reply } from '../../../keeper/engine/owner.ts'

const MAKER = '0x00000000000000000000000000000000000000aa'
const hashOf = (salt: bigint): string => `0x${salt.toString(16).padStart(64, '0')}`

const placing = (salt: bigint): ExchangeCommand =>
  ({
    kind: 'orders',
    userId: 1,
    isAtomic: false,
    request: null,
    items: [{ kind: 'place', order: { marketId: 1, maker: MAKER, salt, hash: hashOf(salt) } }],
  }) as never

const cancelling = (salt: bigint): ExchangeCommand =>
  ({
    kind: 'orders',
    userId: 1,
    isAtomic: false,
    request: null,
    items: [{ kind: 'cancel', target: { hash: hashOf(salt), ended: null }, note: null }],
  }) as never

const PLACED = { kind: 'done', results: [{ kind: 'placed' }] } as unknown as ExchangeAnswer
const REFUSED = { kind: 'done', results: [{ kind: 'refused', refusal: {} }] } as unknown as ExchangeAnswer
const NOT_FOUND = {
  kind: 'done',
  results: [{ kind: 'refused', refusal: { code: 'ORDER_NOT_FOUND' } }],
} as unknown as ExchangeAnswer
const FENCE = placementKey(1, MAKER, 7n)

/** An engine whose decisions the test makes. */
class EngineFixture {
  now: number
  readonly attempts = new Attempts(() => this.now)
  readonly decisions: ((reply: Reply<ExchangeAnswer>) => void)[] = []
  readonly port: EnginePort = createEnginePort({
    submit: () => new Promise((resolve) => this.decisions.push(resolve)),
    facts: new Facts({ oracleMaxAgeMs: 0, chainMaxAgeMs: 0 }),
    deadlines: new ConnectionDeadlines(),
    now: () => 0 as Millis,
    monotonic: () => this.now,
    attempts: this.attempts,
  })

  constructor(now = 1_000) {
    this.now = now
  }

  /** The member that becomes the owner when this one has ended in order. */
  successor(): EngineFixture {
    const next = new EngineFixture(this.now)
    next.attempts.inherit(this.attempts.left())
    next.port.owns()
    return next
  }

  send(command: ExchangeCommand, arrivedAt = this.now): Promise<Reply<unknown>> {
    const terms = { class: 'placement', account: 1, deadline: Number.POSITIVE_INFINITY } as const
    return this.port.submit({ command, arrivedAt, ...terms }) as Promise<Reply<unknown>>
  }

  /** Decides the oldest command. */
  decide(reply: Reply<ExchangeAnswer>): void {
    this.decisions.shift()?.(reply)
  }

  async barrier(...fences: string[]): Promise<Reply<unknown>> {
    const passed = this.send({ kind: 'barrier', fences })
    await new Promise(setImmediate)
    this.decide({ answer: null as never })
    return passed
  }
}

describe('attempts at one command over several apis', () => {
  it('when a barrier has a fence, an attempt that a frozen api received before is not executed, and a later one is', async () => {
    const engine = new EngineFixture()
    const frozenAt = engine.now
    engine.now += 500
    expect(await engine.barrier(FENCE)).to.deep.equal({ answer: null })
    engine.now += 500
    expect(await engine.send(placing(7n), frozenAt)).to.deep.equal({ none: 'not_executed' })
    expect(engine.decisions).to.have.length(0)
    const other = engine.send(placing(8n), frozenAt)
    engine.decide({ answer: PLACED })
    expect(await other).to.have.property('answer')
    const again = engine.send(placing(7n))
    engine.decide({ answer: PLACED })
    expect(await again).to.have.property('answer')
  })

  it('when the engine has refused a command, an earlier attempt at it is not executed afterwards', async () => {
    const engine = new EngineFixture()
    const early = engine.now
    engine.now += 10
    const refused = engine.send(placing(7n))
    engine.decide({ answer: REFUSED })
    expect(await refused).to.have.property('answer')
    expect(await engine.send(placing(7n), early)).to.deep.equal({ none: 'not_executed' })
  })

  it('when an earlier attempt is not decided yet, a refusal of the command has an unknown outcome', async () => {
    const engine = new EngineFixture()
    const early = engine.now
    engine.now += 10
    const refused = engine.send(placing(7n))
    const earlier = engine.send(placing(7n), early)
    engine.decide({ answer: REFUSED })
    expect(await refused).to.deep.equal({ none: 'unknown' })
    engine.decide({ answer: PLACED })
    expect(await earlier).to.have.property('answer')
  })

  it('when a cancel finds no order, a placement that another api had received before is not executed', async () => {
    const engine = new EngineFixture()
    const early = engine.now
    engine.now += 10
    const cancel = engine.send(cancelling(7n))
    engine.decide({ answer: NOT_FOUND })
    expect(await cancel).to.have.property('answer')
    expect(await engine.send(placing(7n), early)).to.deep.equal({ none: 'not_executed' })
  })

  it('when a member becomes the owner, placements that apis received before are not executed, and cancels are', async () => {
    const engine = new EngineFixture()
    const early = engine.now
    engine.now += 10
    engine.port.owns()
    expect(await engine.send(placing(7n), early)).to.deep.equal({ none: 'not_executed' })
    const cancel = engine.send(cancelling(7n), early)
    engine.decide({ answer: PLACED })
    expect(await cancel).to.have.property('answer')
  })

  it('when the owner before has left its fences, earlier placements are executed but those with a fence', async () => {
    const before = new EngineFixture()
    const early = before.now
    before.now += 10
    await before.barrier(FENCE)
    before.now += 10
    const engine = before.successor()
    expect(await engine.send(placing(7n), early)).to.deep.equal({ none: 'not_executed' })
    const other = engine.send(placing(8n), early)
    engine.decide({ answer: PLACED })
    expect(await other).to.have.property('answer')
  })

  it('when the owner before did not know earlier fences itself, the next owner does not execute placements from before', async () => {
    const first = new EngineFixture()
    const early = first.now
    first.now += 10
    first.port.owns()
    first.now += 10
    const engine = first.successor().successor()
    expect(await engine.send(placing(7n), early)).to.deep.equal({ none: 'not_executed' })
    const later = engine.send(placing(7n), engine.now - 5)
    engine.decide({ answer: PLACED })
    expect(await later).to.have.property('answer')
  })

  it('when attempts arrive in any order and with any delays, none is executed after an answer that it was not', async () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ kind: fc.constant('send' as const), age: fc.nat(MAX_ATTEMPT_AGE_MS) }),
        fc.record({ kind: fc.constant('barrier' as const) }),
        fc.record({ kind: fc.constant('handover' as const) }),
        fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(MAX_ATTEMPT_AGE_MS) }),
        fc.record({ kind: fc.constant('decide' as const), isPlaced: fc.boolean() }),
      ),
      { maxLength: 40 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        let engine = new EngineFixture()
        /** Before this time no attempt may have arrived that is executed from now on. */
        let answeredAt = Number.NEGATIVE_INFINITY
        const waiting: number[] = []
        const sends: Promise<unknown>[] = []
        const decide = async (isPlaced: boolean): Promise<void> => {
          const arrivedAt = waiting.shift()
          if (arrivedAt === undefined) return
          if (isPlaced) expect(arrivedAt, 'executed').to.be.at.least(answeredAt)
          engine.decide({ answer: isPlaced ? PLACED : REFUSED })
          await new Promise(setImmediate)
        }
        for (const step of all) {
          if (step.kind === 'pass') engine.now += step.ms
          else if (step.kind === 'decide') await decide(step.isPlaced)
          else if (step.kind === 'handover') {
            while (waiting.length > 0) await decide(true)
            engine = engine.successor()
          } else if (step.kind === 'barrier') {
            while (waiting.length > 0) await decide(true)
            await engine.barrier(FENCE)
            answeredAt = engine.now
          } else {
            const arrivedAt = engine.now - step.age
            const before = engine.decisions.length
            const sent = engine.send(placing(7n), arrivedAt)
            if (engine.decisions.length > before) waiting.push(arrivedAt)
            const isRefused = (reply: Reply<unknown>): boolean =>
              'answer' in reply &&
              (reply.answer as { results: { kind: string }[] }).results[0]?.kind === 'refused'
            sends.push(
              sent.then((reply) => {
                if (isRefused(reply)) answeredAt = Math.max(answeredAt, arrivedAt)
              }),
            )
          }
        }
        while (waiting.length > 0) await decide(true)
        await Promise.all(sends)
      }),
    )
  })
})
