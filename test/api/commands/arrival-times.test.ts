/** When requests arrive, as an api states it to the engine. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { ArrivalTimes } from '../../../api/arrival-times.ts'
import { orderKey, placementKey } from '../../../domain/exchange/decide/orders/command-keys.ts'
import type { ExchangeCommand } from '../../../keeper/engine/commands.ts'
import {
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

describe('the arrival of requests', () => {
  it('when the process was paused, what it reads soon afterwards counts as received before the pause', () => {
    let now = 0
    const arrivals = new ArrivalTimes(() => now)
    arrivals.stop()
    const run = (until: number): void => {
      for (; now < until; now += 20) arrivals.tick()
    }
    run(1_000)
    expect(arrivals.now()).to.equal(1_000)
    now = 31_000
    expect(arrivals.now()).to.equal(1_000)
    run(31_300)
    expect(arrivals.now()).to.equal(1_000)
    // Paused again before everything was read.
    now = 32_000
    expect(arrivals.now()).to.equal(1_000)
    run(32_600)
    expect(arrivals.now()).to.equal(now)
  })

  it('when work runs for a request, its arrival stays that of the request', async () => {
    const arrivals = new ArrivalTimes(() => 10)
    const later = arrivals.run({ arrivedAt: 3, traceId: 'own' }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      return arrivals.current
    })
    expect([await later, arrivals.current]).to.deep.equal([3, 10])
    arrivals.stop()
  })

  describe('at an api', () => {
    let exchange: ExchangeFixture
    let alice: User
    const sent: {
      readonly command: ExchangeCommand
      readonly arrivedAt: number | undefined
      readonly traceId: string | undefined
    }[] = []

    before(async () => {
      exchange = await startExchange()
      const { engine } = exchange
      const submit = engine.submit.bind(engine)
      engine.submit = (async (command: never, budgetMs: number, arrivedAt?: number, traceId?: string) => {
        sent.push({ command, arrivedAt, traceId })
        return submit(command, budgetMs)
      }) as typeof engine.submit
      alice = await createUser(exchange.db, 'alice')
    })
    after(() => exchange.stop())

    it('when orders are placed and cancelled, the engine learns when the requests arrived', async () => {
      for (let count = 0; count < 3; count++) {
        const { body, hash } = signedBody(alice)
        await exchange.send(alice, 'POST', '/v0/orders', body)
        await exchange.cancel(alice, hash)
        const commands = sent.splice(0).filter(({ command }) => command.kind === 'orders')
        expect(commands).to.have.length(2)
        const [place, cancel] = commands.map(({ arrivedAt }) => arrivedAt as number) as [number, number]
        expect(place).to.be.above(0)
        expect(cancel).to.be.within(place, performance.now())
      }
    })

    it('when requests have ids of their clients, the engine gets them, and otherwise the ids of the answers', async () => {
      // The first answers prepare the lane of orders, which answers the later ones without the framework.
      for (let count = 0; count < 3; count++) {
        const { body } = signedBody(alice)
        const answer = await exchange.send(alice, 'POST', '/v0/orders', body)
        await exchange.send(alice, 'POST', '/v0/orders', signedBody(alice).body, {
          'x-request-id': `own-${count}`,
        })
        const traces = sent
          .splice(0)
          .flatMap(({ command, traceId }) => (command.kind === 'orders' ? [traceId] : []))
        expect(traces).to.deep.equal([answer.headers['x-request-id'], `own-${count}`])
      }
    })

    it('when an order is not found, the engine is to execute no placement of it that another api received before', async () => {
      const { hash } = signedBody(alice)
      expect((await exchange.cancel(alice, hash)).status).to.equal(404)
      const fences = sent
        .splice(0)
        .flatMap(({ command }) => (command.kind === 'barrier' ? command.fences : []))
      expect(fences).to.include(orderKey(alice.userId, hash))
    })

    it('when a placement is refused before it is sent, the engine is to execute no attempt at it that another api received before', async () => {
      const { body } = signedBody(alice)
      const answer = await exchange.send(alice, 'POST', '/v0/orders', { ...body, leverage: 1_000_000 })
      expect(answer.body.details.outcome).to.equal('not_placed')
      const fences = sent
        .splice(0)
        .flatMap(({ command }) => (command.kind === 'barrier' ? command.fences : []))
      expect(fences).to.include(placementKey(Number(body.market_id), alice.address, String(body.salt)))
    })
  })
})
