/** Tests of the rules of the contract that are not fields of requests or answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { Wallet } from 'ethers'
import { sql } from 'kysely'
import { describe } from 'mocha'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { RULES } from './contract.ts'
import { test, testElsewhere } from './coverage.ts'
import { type Answer, bookmarkOf, decimal, near } from './exchange.ts'
import { orderOf } from './fixture.ts'
import { draftOf, type Proof, requestId, type Suite } from './requests.ts'
import { COMMANDING, PLACING } from './rules-commands.ts'
import { signed } from './signing.ts'

type Body = Answer['body']

const isDone = ({ status }: Body): boolean => ['FILLED', 'CANCELLED', 'EXPIRED'].includes(status)
const kindsOf = ({ events }: Body): string[] => events.map(({ kind }: Body) => kind)

const STATES: Readonly<Record<string, Proof>> = {
  async 'when a plain order is accepted, it is OPEN with its margin reserved'({
    exchange,
    fixture: { owner, open },
  }) {
    const { body } = await exchange.get(owner, `/v0/orders/${open.order_id}`)
    expect(body.status).to.equal('OPEN')
    expect(body.reserved_margin).to.be.greaterThan(0)
  },
  async 'when a conditional order is accepted, it is PENDING_TRIGGER with its margin reserved'({
    exchange,
    fixture,
  }) {
    const { body } = await exchange.get(fixture.owner, `/v0/orders/${fixture.waiting.order_id}`)
    expect(body).to.include({ status: 'PENDING_TRIGGER', trigger: null })
    expect(body.reserved_margin).to.be.greaterThan(0)
  },
  async 'when an OPEN order is cancelled, it is CANCELLED'({ exchange, fixture: { owner, cancelled } }) {
    const { body } = await exchange.get(owner, `/v0/orders/${cancelled.order_id}`)
    expect(body).to.include({
      status: 'CANCELLED',
      status_reason: 'USER_CANCELLED',
      cancel_reason: 'conformance',
    })
    expect(body.reserved_margin).to.equal(0)
  },
  async 'when an order is cancelled while its batch settles, it is CANCEL_PENDING_FINALIZE, then CANCELLED'({
    exchange,
  }) {
    const [buyer, seller] = [exchange.account(5), exchange.account(6)]
    const price = near(await exchange.market(2), 1000)
    exchange.stack.chain.signal('SIGSTOP')
    try {
      const draft = { price, quantity: '0.1' }
      const buy = orderOf(await exchange.place(buyer, { ...draft, quantity: '0.3' }, { marketId: 2 }))
      orderOf(await exchange.place(seller, { ...draft, side: 'SHORT' }, { marketId: 2 }))
      const path = `/v0/orders/${buy.order_id}`
      await exchange.until(buyer, path, ({ settling_quantity }) => settling_quantity > 0)
      const { body } = await exchange.cancel(buyer, buy.order_hash)
      expect(body).to.include({ cancelled: true, is_duplicate: false })
      expect(body.order.status).to.equal('CANCEL_PENDING_FINALIZE')
      exchange.stack.chain.signal('SIGCONT')
      const { body: ended } = await exchange.until(buyer, path, isDone)
      expect(ended).to.include({ status: 'CANCELLED', status_reason: 'USER_CANCELLED' })
      expect(ended.filled_quantity).to.be.within(0.01, 0.1)
    } finally {
      exchange.stack.chain.signal('SIGCONT')
    }
  },
  async 'when an OPEN order fills completely, it is FILLED with fills'({
    exchange,
    fixture: { owner, filled },
  }) {
    const { body } = await exchange.get(owner, `/v0/orders/${filled.order_id}`)
    expect(body).to.include({ status: 'FILLED', filled_quantity: 0.01, remaining_quantity: 0 })
    const { body: list } = await exchange.get(owner, `/v0/orders/${filled.order_id}/fills`)
    expect(list.fills).to.have.length(1)
    expect(list.fills[0].tx_hash).to.match(/^0x[0-9a-f]{64}$/)
  },
  async 'when an order passes its expiration, it is EXPIRED'({ exchange, fixture: { owner, expired } }) {
    const { body } = await exchange.get(owner, `/v0/orders/${expired.order_id}`)
    expect(body).to.include({ status: 'EXPIRED', status_reason: 'EXPIRED' })
  },
  async 'when an order is triggered, it is OPEN with the evidence of the trigger'({
    exchange,
    fixture: { spare },
  }) {
    const market = await exchange.market(1)
    const draft = { order_type: 'STOP_LIMIT', trigger_price: near(market, 990), price: near(market, 970) }
    const stop = orderOf(await exchange.place(spare, draft))
    const { body } = await exchange.until(
      spare,
      `/v0/orders/${stop.order_id}`,
      ({ status }) => status === 'OPEN',
    )
    expect(body.trigger.mark_price).to.be.at.least(Number(draft.trigger_price))
    expect(body.trigger.batch_id).to.be.greaterThan(0)
    await exchange.cancel(spare, stop.order_hash)
  },
  async 'when a market order fills in part, its remainder is cancelled'({ exchange, fixture: { spare } }) {
    const placed = orderOf(
      await exchange.place(spare, { order_type: 'MARKET', quantity: '0.1' }, { marketId: 2 }),
    )
    const { body } = await exchange.until(spare, `/v0/orders/${placed.order_id}`, isDone)
    expect(body).to.include({ status: 'CANCELLED', status_reason: 'MARKET_REMAINDER' })
  },
  async 'when orders change, their events are CREATED, PARTIALLY_FILLED, FILLED, CANCELLED, EXPIRED'({
    exchange,
    fixture,
  }) {
    const { owner, partly, filled, expired } = fixture
    const kinds = async (id: string) => kindsOf((await exchange.get(owner, `/v0/orders/${id}/events`)).body)
    expect(await kinds(partly.order_id)).to.deep.equal(['CANCELLED', 'PARTIALLY_FILLED', 'CREATED'])
    expect(await kinds(filled.order_id)).to.deep.equal(['FILLED', 'CREATED'])
    expect(await kinds(expired.order_id)).to.deep.equal(['EXPIRED', 'CREATED'])
  },
}

const READING: Readonly<Record<string, Proof>> = {
  async 'when lists by user are filtered and limited, they contain the matching rows only'({
    exchange,
    fixture: { owner },
  }) {
    const list = async (query: string): Promise<Body[]> =>
      (await exchange.get(owner, `/v0/orders/by-user/${owner.userId}?${query}`)).body.orders
    for (const { status } of await list('status=CANCELLED')) expect(status).to.equal('CANCELLED')
    for (const { side } of await list('side=LONG')) expect(side).to.equal('LONG')
    expect((await list('market_id=1')).length).to.be.greaterThan(3)
    expect(await list('market_id=3')).to.deep.equal([])
    expect(await list('limit=2')).to.have.length(2)
  },
  async 'when a list is read in pages, the pages contain every row once'({ exchange, fixture: { owner } }) {
    for (const path of [`/v0/orders/by-user/${owner.userId}`, `/v0/users/${owner.userId}/order-events`]) {
      const items = ({ orders, events }: Body): Body[] => orders ?? events
      const all = (await exchange.get(owner, `${path}?limit=1000`)).body
      const paged: Body[] = []
      let cursor = ''
      do {
        const { body } = await exchange.get(owner, `${path}?limit=2${cursor}`)
        paged.push(...items(body))
        cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
      } while (cursor !== '')
      expect(paged).to.deep.equal(items(all))
    }
  },
  async 'when public fills are read, they contain no identities'({ exchange, fixture: { owner, partly } }) {
    const { body } = await exchange.get(null, '/v0/fills/by-market/1')
    expect(body.fills.length).to.be.greaterThan(1)
    const text = JSON.stringify(body)
    for (const secret of ['user_id', 'order_id', 'order_hash', 'maker', 'signer', owner.address]) {
      expect(text).to.not.include(secret)
    }
    expect(text).to.not.include(JSON.stringify(partly.order_id))
  },
  async 'when a list by user is read, it contains rows of that user only'({ exchange, fixture: { owner } }) {
    for (const [path, items] of [
      [`/v0/orders/by-user/${owner.userId}`, 'orders'],
      [`/v0/fills/by-user/${owner.userId}`, 'fills'],
      [`/v0/users/${owner.userId}/order-events`, 'events'],
    ] as const) {
      const list: Body[] = (await exchange.get(owner, path)).body[items]
      expect(list.length, path).to.be.greaterThan(0)
      for (const { user_id } of list) expect(user_id, path).to.equal(owner.userId)
    }
  },
  async 'when fill processing is read, it has stage, transaction, batch and times'({
    exchange,
    fixture: { owner, filled },
  }) {
    const path = `/v0/orders/${filled.order_id}/fill-processing-status`
    const { body } = await exchange.until(owner, path, ({ settlement_pending }) => !settlement_pending)
    expect(body.fills).to.have.length(1)
    const [fill] = body.fills
    expect(fill.stage).to.be.oneOf(['MINED', 'CONFIRMED'])
    expect(fill.tx_hash).to.match(/^0x[0-9a-f]{64}$/)
    expect(fill.batch_id).to.be.greaterThan(0)
    const times = [fill.matched_at, fill.submitted_at, fill.mined_at].map(Date.parse)
    times.push(Date.parse(fill.updated_at))
    expect(times).to.deep.equal([...times].sort((a, b) => a - b))
    const { body: list } = await exchange.get(owner, `/v0/orders/${filled.order_id}/fills`)
    const { created_at, updated_at } = list.fills[0]
    expect(Date.parse(updated_at)).to.be.at.least(Date.parse(created_at))
  },
  async 'when the maximum is placed, it is accepted, and one step more is rejected'({
    exchange,
    fixture: { market },
  }) {
    const account = exchange.account(9)
    for (const [side, permille] of [
      ['LONG', 975],
      ['SHORT', 1025],
    ] as const) {
      const price = near(market, permille)
      const asked = { market_id: 1, side, order_type: 'LIMIT', price, leverage: 1, sizing_intent: 'max' }
      const { body } = await exchange.post(account, '/v0/orders/estimate', asked)
      const most = BigInt(body.maximum.quantity_e18_raw)
      const step = BigInt(market.step_size_e18_raw)
      const tooMuch = await exchange.place(account, { side, price, quantity: decimal(most + step) })
      expect(tooMuch.body.details.code, JSON.stringify(body.maximum)).to.equal(body.maximum.binding.code)
      const placed = orderOf(await exchange.place(account, { side, price, quantity: decimal(most) }))
      await exchange.cancel(account, placed.order_hash)
    }
  },
}

const BOOKMARKS: Readonly<Record<string, Proof>> = {
  async 'when a read has no bookmark, it never waits'({ exchange, fixture: { spare, market } }) {
    await holdingBack(exchange.stack.db, 'm1', async () => {
      const { body } = await exchange.place(spare, draftOf(market))
      // A read that waited would be answered 503.
      const { status } = await exchange.get(spare, `/v0/orders/${body.order.order_id}`)
      expect(status).to.equal(404)
    })
  },
  async 'when a read has a bookmark, it shows the write'({ exchange, fixture: { spare, market } }) {
    const { body } = await exchange.place(spare, draftOf(market))
    const path = `/v0/orders/${body.order.order_id}?${bookmarkOf(body.read_after)}`
    expect((await exchange.get(spare, path)).body.order_hash).to.equal(body.order.order_hash)
  },
  async 'when a write is not projected within 5 seconds, the read is 503 PENDING with Retry-After'({
    exchange,
    fixture: { spare, market },
  }) {
    await holdingBack(exchange.stack.db, 'm1', async () => {
      const { body } = await exchange.place(spare, draftOf(market))
      const since = performance.now()
      const answer = await exchange.get(
        spare,
        `/v0/orders/${body.order.order_id}?${bookmarkOf(body.read_after)}`,
      )
      const waited = performance.now() - since
      expect([answer.status, answer.body.details.code]).to.deep.equal([503, 'HTV1_READ_AFTER_PENDING'])
      expect(answer.headers.get('retry-after')).to.match(/^\d+(\.\d+)?$/)
      expect(waited).to.be.within(4_900, 8_000)
    })
  },
  async 'when a bookmark has an unknown shard, the read is 409 STALE_BOOKMARK'({ exchange }) {
    const { status, body } = await exchange.get(
      null,
      '/v0/markets?read_after_shard_id=m77.1&read_after_shard_seq=1',
    )
    expect([status, body.details.code]).to.deep.equal([409, 'HTV1_READ_AFTER_STALE_BOOKMARK'])
  },
  async 'when a bookmark has another epoch, the read is 409 STALE_BOOKMARK'({ exchange }) {
    const { status, body } = await exchange.get(
      null,
      '/v0/markets?read_after_shard_id=m1.99&read_after_shard_seq=1',
    )
    expect([status, body.details.code]).to.deep.equal([409, 'HTV1_READ_AFTER_STALE_BOOKMARK'])
  },
  async 'when a command covers several markets, a read with its bookmark shows all of them'({ exchange }) {
    const account = exchange.account(4)
    const markets = [await exchange.market(1), await exchange.market(2)]
    const { body } = await exchange.post(account, '/v0/orders/place/batch', {
      ...{ client_request_id: requestId(), mode: 'atomic' },
      orders: markets.map(
        (market) => signed(account, market, { price: near(market, 970), quantity: '0.1' }).body,
      ),
    })
    expect(body.read_after.shard_id, JSON.stringify(body)).to.match(/^accounts\./)
    const path = `/v0/orders/by-user/${account.userId}?limit=2&${bookmarkOf(body.read_after)}`
    const ids = (await exchange.get(account, path)).body.orders.map(({ order_id }: Body) => order_id)
    expect(ids).to.have.members(body.results.map(({ order }: Body) => order.order_id))
    await exchange.post(account, '/v0/orders/cancel/all')
  },
}

/** Locks the shard's row in the projection while `work` runs, so that the projector waits. */
async function holdingBack(db: Suite['exchange']['stack']['db'], shard: string, work: () => Promise<void>) {
  await db.transaction().execute(async (tx) => {
    await sql`select 1 from read.places where shard = ${shard} for update`.execute(tx)
    await work()
  })
}

const ACCESS: Readonly<Record<string, Proof>> = {
  async 'when the credential is a UUID session token, it is rejected'({ exchange, fixture: { owner } }) {
    const authorization = 'Bearer 123e4567-e89b-42d3-a456-426614174000'
    const { status, body } = await exchange.send(owner, 'GET', `/v0/orders/by-user/${owner.userId}`, {
      authorization,
    })
    expect([status, body.details.code]).to.deep.equal([401, 'BEARER_UUID_REFUSED'])
  },
  async 'when the API key is unknown, it is rejected'({ exchange, fixture: { owner } }) {
    const asking = { authorization: 'Key nobody' }
    const { status, body } = await exchange.send(owner, 'GET', `/v0/orders/by-user/${owner.userId}`, asking)
    expect([status, body.details.code]).to.deep.equal([401, 'API_KEY_UNKNOWN'])
  },
  async "when a path has another user's id, it is rejected"({ exchange, fixture: { owner, other } }) {
    const { status } = await exchange.get(other, `/v0/users/${owner.userId}/order-events`)
    expect(status).to.equal(403)
  },
  async 'when an order belongs to another user, it is rejected'({ exchange, fixture: { open, other } }) {
    expect((await exchange.cancel(other, open.order_hash)).status).to.equal(403)
  },
  async 'when a registered session key signs, the order is accepted for the owner'({
    exchange,
    fixture: { spare, market },
  }) {
    const key = Wallet.createRandom()
    const { provider, file } = exchange.stack
    const manager = AccountManager__factory.connect(
      file.contracts.account_manager,
      spare.wallet.connect(provider),
    )
    await (await manager.registerSessionKey(key.address, 1)).wait()
    const forgery = { signer: key as unknown as Wallet }
    let answer = await exchange.place(spare, draftOf(market), { forgery })
    // The key is unknown until the indexer has read the block.
    for (let tries = 0; answer.status !== 200 && tries < 50; tries++) {
      await sleep(100)
      answer = await exchange.place(spare, draftOf(market), { forgery })
    }
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    expect(answer.body.order).to.include({ maker: spare.address, signer: key.address.toLowerCase() })
    await exchange.cancel(spare, answer.body.order.order_hash)
  },
  async 'when an unregistered key signs, the order is rejected'({ exchange, fixture: { spare, market } }) {
    const forgery = { signer: Wallet.createRandom() as unknown as Wallet }
    const { status, body } = await exchange.place(spare, draftOf(market), { forgery })
    expect([status, body.details.code]).to.deep.equal([400, 'SIGNATURE_MISMATCH'])
  },
}

const FORM: Readonly<Record<string, Proof>> = {
  async 'when a path is unknown, it is 404 with an error body'({ exchange, fixture: { owner } }) {
    const { status, body } = await exchange.get(owner, '/v0/nothing')
    expect([status, body.details.code]).to.deep.equal([404, 'ROUTE_NOT_FOUND'])
    expect(body.message).to.be.a('string')
  },
  async 'when a body is not JSON, it is 400 with an error body'({ exchange, fixture: { owner } }) {
    const { status, body } = await exchange.send(owner, 'POST', '/v0/orders', { body: '{"market_id":' })
    expect([status, body.details.code]).to.deep.equal([400, 'INVALID_JSON'])
  },
  async 'when a double would round a number, the number is rejected'({
    exchange,
    fixture: { spare, market },
  }) {
    const { body } = signed(spare, market, draftOf(market))
    const text = JSON.stringify({ ...body, quantity: 0 }).replace(
      '"quantity":0',
      '"quantity":0.01000000000000000001',
    )
    const answer = await exchange.send(spare, 'POST', '/v0/orders', { body: text })
    expect(answer.body.details).to.include({ code: 'PRECISION_LOST', field: 'quantity' })
  },
  async 'when a body has a name twice, it is rejected'({ exchange, fixture: { spare } }) {
    const body = '{"market_id":4,"market_id":1}'
    const answer = await exchange.send(spare, 'POST', '/v0/orders/cancel/all', { body })
    expect([answer.status, answer.body.details.code]).to.deep.equal([400, 'DUPLICATE_FIELD'])
  },
  async 'when a path does not have the method, it is 404 with the methods that it has'({
    exchange,
    fixture: { spare },
  }) {
    const { status, headers } = await exchange.get(spare, '/v0/orders/cancel/all')
    expect([status, headers.get('allow')]).to.deep.equal([404, 'POST'])
  },
  async 'when a request is answered, the headers have its id and the remaining limit'({
    exchange,
    fixture: { spare },
  }) {
    const { headers } = await exchange.get(spare, '/v0/orders/cancel/all-after')
    expect(headers.get('x-request-id')).to.match(/^[a-z0-9]+-[a-z0-9]+$/)
    for (const name of ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'])
      expect(headers.get(name), name).to.match(/^\d+$/)
  },
  async 'when the description is read, every path begins with /v0/, and it is OpenAPI 3.1.0 of version 0'({
    exchange,
  }) {
    const { body } = await exchange.get(null, '/v0/openapi.json')
    expect([body.openapi, body.info.version]).to.deep.equal(['3.1.0', '0'])
    expect(Object.keys(body.paths).filter((path) => !path.startsWith('/v0/'))).to.deep.equal([])
  },
}

const PROOFS: Readonly<Record<string, Proof>> = {
  ...{ ...STATES, ...PLACING, ...COMMANDING, ...READING, ...BOOKMARKS, ...ACCESS, ...FORM },
}

export function testRules(suite: () => Suite): void {
  describe('the rules of the contract', () => {
    for (const { id, provenBy } of RULES) {
      const proof = PROOFS[id]
      if (provenBy !== undefined) testElsewhere(id, provenBy)
      else if (proof !== undefined) test(id, id, () => proof(suite()))
    }
  })
}
