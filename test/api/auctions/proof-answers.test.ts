import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { BatchCleared } from '../../../domain/journal/batch-rows.ts'
import { verifyProof } from '../../../domain/proof/verify.ts'
import { keccak } from '../../../service/crypto.ts'
import {
  createUser,
  type ExchangeFixture,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { minePart, runAuction } from '../support/keeper-turns.ts'
import { append } from '../support/trade-rows.ts'

describe('answers with proofs', () => {
  let exchange: ExchangeFixture
  let bob: User
  let batch: number
  let bookmark: { shard_id: string; shard_seq: number }

  before(async () => {
    exchange = await startExchange()
    const alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    await exchange.project()
    await exchange.place(alice, { side: 'SHORT', price: '100', quantity: '1' })
    const { body } = await exchange.place(bob, { price: '101', quantity: '1' })
    bookmark = body.read_after
    batch = (await runAuction(exchange)) as number
  })
  after(() => exchange.stop())

  const path = () => `/v0/auctions/1/${batch}/proof`
  const read = (headers = {}) => exchange.send(null, 'GET', path(), undefined, headers)

  it('when more proofs are requested than may wait, further requests are answered with PROOF_CAPACITY', async () => {
    const { shard_id, shard_seq } = bookmark
    // Reads with a bookmark share no answer.
    const url = `${path()}?read_after_shard_id=${shard_id}&read_after_shard_seq=${shard_seq}`
    const answers = await Promise.all(Array.from({ length: 40 }, () => exchange.get(null, url)))
    const refused = answers.filter(({ status }) => status === 503)
    expect(refused.length).to.be.within(1, 39)
    for (const { body, headers } of refused) {
      expect(body.details.code).to.equal('PROOF_CAPACITY')
      expect(headers['retry-after']).to.equal('1')
    }
    const served = answers.filter(({ status }) => status === 200)
    expect(served.length + refused.length).to.equal(40)
    for (const { body } of served) expect(body).to.deep.equal(served[0]?.body)
    expect((await read()).status).to.equal(200)
  })

  it('when the parts of a batch change, its proof changes with them', async () => {
    const settling = await read()
    expect(settling.body.status).to.equal('SETTLING')
    expect(settling.headers['cache-control']).to.equal('public, no-cache')
    await minePart(exchange)
    const mined = await read()
    expect(mined.body.status).to.equal('SETTLED')
    expect(mined.headers.etag).to.not.equal(settling.headers.etag)
  })

  it('when gzip is accepted, the answer is compressed, and otherwise it is the same text', async () => {
    const url = { method: 'GET', url: path() } as const
    const { app } = exchange.api
    const plain = await app.inject(url)
    const packed = await app.inject({ ...url, headers: { 'accept-encoding': 'br, gzip;q=0.8' } })
    expect(plain.headers['content-encoding']).to.equal(undefined)
    expect(packed.headers).to.include({ 'content-encoding': 'gzip' })
    expect(gunzipSync(packed.rawPayload).toString()).to.equal(plain.payload)
    for (const { headers } of [plain, packed]) {
      expect(String(headers.vary).toLowerCase()).to.include('accept-encoding')
      expect(headers['content-type']).to.equal('application/json; charset=utf-8')
    }
    for (const header of ['gzip;q=0', 'identity', 'xgzip'])
      expect((await app.inject({ ...url, headers: { 'accept-encoding': header } })).payload).to.equal(
        plain.payload,
      )
    const again = await app.inject({ ...url, headers: { 'if-none-match': String(plain.headers.etag) } })
    expect([again.statusCode, again.payload]).to.deep.equal([304, ''])
  })

  it('when a batch is final, its proof is immutable, and it is computed once', async () => {
    const { row } = await exchange.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', 'm1')
      .orderBy('seq', 'desc')
      .execute()
      .then((rows) => rows.find((one) => one.row.kind === 'batch_cleared') as { row: BatchCleared })
    await append(exchange, {
      ...{
        kind: 'batch_voided',
        batch_id: batch,
        from_part: 1,
        why: 'reverted',
        at: 1,
        fills: row.fills,
        reopened: [],
      },
    })
    await exchange.project()
    const first = await read()
    expect(first.headers['cache-control']).to.equal('public, max-age=86400, immutable')
    expect(verifyProof(first.body, keccak)).to.deep.equal([])
    // Without the inputs the proof could not be computed again.
    await exchange.db.deleteFrom('batch_inputs').where('batch_id', '=', batch).execute()
    const second = await read()
    expect([second.status, second.body]).to.deep.equal([200, first.body])
    await exchange.db
      .updateTable('read.batches')
      .set({ part_states: JSON.stringify([]) })
      .where('batch_id', '=', batch)
      .execute()
    expect((await read()).status, 'the parts have changed').to.equal(404)
  })

  it('when proofs are requested, they have a limit of their own', async () => {
    const limited = await startSecondApi(exchange, {
      RATE_LIMIT_PROOFS: '1',
      RATE_LIMIT_WINDOW_SECONDS: '60',
    })
    const answers = await Promise.all(Array.from({ length: 61 }, () => limited.get(null, path())))
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.map(({ body }) => body.details.scope)).to.deep.equal(['proofs'])
    await limited.stop()
  })
})
