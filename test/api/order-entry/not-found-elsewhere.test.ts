/** After an api has answered ORDER_NOT_FOUND, no order of that name goes live, although another api had received it before. */
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { PAUSE_MS, TICK_MS } from '../../../api/arrival-times.ts'
import { labelKey, orderKey } from '../../../domain/exchange/decide/orders/command-keys.ts'
import {
  type Answer,
  codeOf,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { FencedEngine, fencedPort } from '../support/fenced-engine.ts'
import { newRequestId } from '../support/place-batch.ts'

const PAIRS = 100

/** A busy machine may answer that the outcome is unknown, or that the command was not executed. Neither names a missing order. */
const POSSIBLE = [200, 408, 503]

describe('an order that another api does not find', function () {
  this.timeout(300_000)
  let exchange: ExchangeFixture
  let slow: ExchangeFixture
  let slowEngine: FencedEngine
  let fastEngine: FencedEngine
  let fast: ExchangeFixture
  let alice: User
  let users = 0

  before(async () => {
    exchange = await startExchange()
    const port = fencedPort(exchange.engine)
    slowEngine = new FencedEngine(port)
    slow = await startSecondApi(exchange, {}, {}, slowEngine)
    fastEngine = new FencedEngine(port)
    fast = await startSecondApi(exchange, {}, {}, fastEngine)
  })
  after(async () => {
    await slow.stop()
    await fast.stop()
    await exchange.stop()
  })
  afterEach(() => slowEngine.release())
  beforeEach(async () => {
    alice = await createUser(exchange.db, `alice ${users++}`, '100000000')
  })

  const post = (path: string, body: object): Promise<Answer> => fast.send(alice, 'POST', path, body)
  const place = (body: object): Promise<Answer> => slow.send(alice, 'POST', '/v0/orders', body)
  /** A new placement. After a pause of the machine, an api counts what it reads as received before the pause. */
  async function placeAgain(body: object): Promise<void> {
    for (;;) {
      const { status } = await place(body)
      if (status === 200) return
      expect(status).to.equal(503)
    }
  }

  const labelled = () => {
    const label = newRequestId()
    const { body, hash } = signedBody(alice)
    return { label, hash, body: { ...body, client_order_id: label } }
  }
  const live = async (): Promise<string[]> =>
    (
      await exchange.db
        .selectFrom('orders')
        .select('hash')
        .where('user_id', '=', alice.userId)
        .where('ended_at', 'is', null)
        .execute()
    ).map(({ hash }) => hash)

  type Named = ReturnType<typeof labelled>
  type Command = (named: Named) => Promise<Answer>
  const COMMANDS: Readonly<Record<string, Command>> = {
    'cancel by hash': ({ hash }) => post(`/v0/orders/cancel/by-hash/${hash}`, {}),
    'cancel by label': ({ label }) => post(`/v0/orders/cancel/by-client-id/${label}`, {}),
    'replacement by hash': ({ hash }) =>
      post('/v0/orders/replace', { cancel: { order_hash: hash }, order: signedBody(alice).body }),
    'replacement by label': ({ label }) =>
      post('/v0/orders/replace', { cancel: { client_order_id: label }, order: signedBody(alice).body }),
  }

  for (const [name, command] of Object.entries(COMMANDS))
    it(`when a ${name} is answered ORDER_NOT_FOUND, the placement that the other api holds is not executed`, async () => {
      const named = labelled()
      slowEngine.hold()
      const placing = place(named.body)
      await slowEngine.held
      expect(codeOf(await command(named))).to.deep.equal([404, 'ORDER_NOT_FOUND'])
      slowEngine.release()
      const placed = await placing
      expect(codeOf(placed), JSON.stringify(placed.body)).to.deep.equal([503, 'OVERLOADED'])
      expect(placed.body.details.outcome).to.equal('not_placed')
      expect(await live()).to.deep.equal([])
      await placeAgain(named.body)
    })

  it('when a cancel finds no order, its fence is later than an unnoticed pause of the other api', async () => {
    const unnoticed = TICK_MS + PAUSE_MS
    for (const name of ['cancel by hash', 'cancel by label'] as const) {
      const named = labelled()
      const sentAt = performance.now()
      expect(codeOf(await (COMMANDS[name] as Command)(named))).to.deep.equal([404, 'ORDER_NOT_FOUND'])
      const { userId } = alice
      const key = name === 'cancel by hash' ? orderKey(userId, named.hash) : labelKey(userId, named.label)
      expect((fastEngine.fencedAt.get(key) as number) - sentAt, name).to.be.above(unnoticed)
    }
  })

  it('when an atomic batch of replacements misses a target, the placement that the other api holds is not executed', async () => {
    const named = labelled()
    slowEngine.hold()
    const placing = place(named.body)
    await slowEngine.held
    const orders = [{ cancel: { order_hash: named.hash }, order: signedBody(alice).body }]
    const missed = await post('/v0/orders/replace/batch', {
      client_request_id: newRequestId(),
      mode: 'atomic',
      orders,
    })
    expect(codeOf(missed)).to.deep.equal([404, 'ORDER_NOT_FOUND'])
    slowEngine.release()
    expect(codeOf(await placing)).to.deep.equal([503, 'OVERLOADED'])
    expect(await live()).to.deep.equal([])
  })

  it('when a label had an order that has ended, a cancel by it leaves no older placement of the other api to go live', async () => {
    const first = labelled()
    expect((await place(first.body)).status).to.equal(200)
    expect((await post(`/v0/orders/cancel/by-client-id/${first.label}`, {})).body.cancelled).to.equal(true)
    slowEngine.hold()
    const placing = place({ ...signedBody(alice).body, client_order_id: first.label })
    await slowEngine.held
    const again = await post(`/v0/orders/cancel/by-client-id/${first.label}`, {})
    expect(again.body).to.deep.include({ is_duplicate: true })
    slowEngine.release()
    expect(codeOf(await placing)).to.deep.equal([503, 'OVERLOADED'])
    expect(await live()).to.deep.equal([])
  })

  it('when an order is refused for its label, an older placement with the label is executed', async () => {
    const first = labelled()
    expect((await place(first.body)).status).to.equal(200)
    slowEngine.hold()
    const placing = place({ ...signedBody(alice).body, client_order_id: first.label })
    await slowEngine.held
    const refused = await post('/v0/orders', { ...signedBody(alice).body, client_order_id: first.label })
    expect(codeOf(refused)).to.deep.equal([409, 'CLIENT_ORDER_ID_USED'])
    expect((await post(`/v0/orders/cancel/by-client-id/${first.label}`, {})).body.cancelled).to.equal(true)
    slowEngine.release()
    expect((await placing).status).to.equal(200)
  })

  for (const name of ['cancel by hash', 'cancel by label'])
    it(`when ${PAIRS} placements race with a ${name} at the other api, no order lives after ORDER_NOT_FOUND`, async () => {
      const command = COMMANDS[name] as Command
      const missed: string[] = []
      const lane = async (at: number): Promise<void> => {
        for (let pair = at; pair < PAIRS; pair += 10) {
          const named = labelled()
          const [placed, cancelled] = await Promise.all([place(named.body), command(named)])
          expect(placed.status, JSON.stringify(placed.body)).to.be.oneOf(POSSIBLE)
          if (codeOf(cancelled)[1] === 'ORDER_NOT_FOUND') missed.push(named.hash)
          else expect(cancelled.status, JSON.stringify(cancelled.body)).to.be.oneOf(POSSIBLE)
        }
      }
      await Promise.all(Array.from({ length: 10 }, (_, at) => lane(at)))
      // A placement that the api read after the answer is new. Both were sent at once, and the api was not paused.
      expect((await live()).filter((hash) => missed.includes(hash))).to.deep.equal([])
    })
})
