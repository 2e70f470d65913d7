import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { BatchProof } from '../../../api/auctions/proof-schema.ts'
import type { BatchCleared } from '../../../domain/journal/batch-rows.ts'
import { commitment } from '../../../domain/proof/commitment.ts'
import { type BatchProof as Proof, verifyProof } from '../../../domain/proof/verify.ts'
import { statementFrom } from '../../../domain/proof/wire.ts'
import { keccak } from '../../../service/crypto.ts'
import { leavesOf } from '../../domain/support/leaves.ts'
import { createUser, type ExchangeFixture, startExchange, type User } from '../support/exchange-fixture.ts'
import { minePart, runAuction } from '../support/keeper-turns.ts'
import { append } from '../support/trade-rows.ts'

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

/** The paths of all values, with `[]` for every element of a list. */
const pathsOf = ({ properties, items }: Schema, path: readonly string[] = []): string[] => {
  if (properties !== undefined)
    return Object.entries(properties).flatMap(([name, schema]) => pathsOf(schema, [...path, name]))
  return items === undefined ? [path.join('.')] : pathsOf(items, [...path, '[]'])
}

describe('GET /v0/auctions/:market_id/:batch_id/proof', () => {
  let exchange: ExchangeFixture
  let alice: User
  let bob: User
  let carol: User
  let batch: number
  const placed: Record<string, { order_id: string; order_hash: string }> = {}

  before(async () => {
    exchange = await startExchange()
    alice = await createUser(exchange.db, 'alice')
    bob = await createUser(exchange.db, 'bob')
    carol = await createUser(exchange.db, 'carol')
    await exchange.project()
    const place = async (name: string, user: User, terms: Parameters<ExchangeFixture['place']>[1]) => {
      const { status, body } = await exchange.place(user, terms)
      expect(status, JSON.stringify(body)).to.equal(200)
      placed[name] = body.order
    }
    await place('ask', alice, { side: 'SHORT', price: '100', quantity: '1' })
    await place('bid', bob, { price: '101', quantity: '3', leverage: 2 })
    await place('rationed', carol, { price: '99.5', quantity: '1' })
    await place('far', carol, { price: '95', quantity: '1' })
    await place('market', carol, { side: 'SHORT', type: 'MARKET', quantity: '0.5' })
    batch = (await runAuction(exchange)) as number
  })
  after(() => exchange.stop())

  const read = (marketId = 1, batchId = batch) =>
    exchange.get(null, `/v0/auctions/${marketId}/${batchId}/proof`)
  const proofOf = async (): Promise<Proof> => {
    const { status, body } = await read()
    expect(status, JSON.stringify(body)).to.equal(200)
    return body
  }
  const commitmentOf = (user: User, name: string, batchId: number = batch) =>
    exchange.get(user, `/v0/orders/${placed[name]?.order_id}/commitment?batch_id=${batchId}`)

  it('when a batch is settling, its proof holds and names no order', async () => {
    const proof = await proofOf()
    expect(verifyProof(proof, keccak)).to.deep.equal([])
    expect(proof).to.include({ market_id: 1, symbol: 'BTC-PERP', batch_id: batch, status: 'SETTLING' })
    const text = JSON.stringify(proof)
    for (const { order_hash, order_id } of Object.values(placed)) {
      expect(text).to.not.include(order_hash)
      expect(text).to.not.include(`"${order_id}"`)
    }
    for (const { address } of [alice, bob, carol]) expect(text).to.not.include(address.slice(2))
  })

  it('when a trader reads the commitment to an own order, the statement contains it if the order could trade', async () => {
    const { orders } = statementFrom((await proofOf()).statement)
    const stated = orders.map((order) => order.commitment)
    for (const [name, user, tookPart] of [
      ['ask', alice, true],
      ['bid', bob, true],
      ['market', carol, true],
      ['rationed', carol, true],
      ['far', carol, false],
    ] as const) {
      const { status, body } = await commitmentOf(user, name)
      expect(status, JSON.stringify(body)).to.equal(200)
      const orderHash = placed[name]?.order_hash as string
      expect(body).to.include({ order_hash: orderHash, market_id: 1, batch_id: batch })
      const own = commitment(keccak, { salt: body.salt, orderHash, marketId: 1, batchId: batch })
      expect(body.commitment).to.equal(own)
      expect(stated.includes(own), name).to.equal(tookPart)
    }
  })

  it('when a batch is settled, its proof opens the orders that filled, and only those', async () => {
    await minePart(exchange)
    const proof = await proofOf()
    expect(verifyProof(proof, keccak)).to.deep.equal([])
    expect(proof.status).to.equal('SETTLED')
    const [part] = proof.parts
    expect(part?.transaction_hash).to.match(/^0x/)
    const opened = part?.fills.map(({ order_hash }) => order_hash)
    expect(opened?.toSorted()).to.deep.equal(
      ['ask', 'bid', 'market'].map((name) => placed[name]?.order_hash).toSorted(),
    )
    for (const name of ['rationed', 'far'])
      expect(JSON.stringify(proof)).to.not.include(placed[name]?.order_hash)
  })

  it('when the same order is in two batches, nothing of its closed commitments is equal', async () => {
    await exchange.place(alice, { side: 'SHORT', price: '100', quantity: '0.2' })
    const next = (await runAuction(exchange)) as number
    expect(next).to.equal(batch + 1)
    const [first, second] = [await commitmentOf(bob, 'bid'), await commitmentOf(bob, 'bid', next)]
    expect(first.body.salt).to.not.equal(second.body.salt)
    expect(first.body.commitment).to.not.equal(second.body.commitment)
  })

  it('when a batch is voided, its proof says so, holds, and opens nothing', async () => {
    const { row } = await exchange.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', 'm1')
      .orderBy('seq', 'desc')
      .execute()
      .then((rows) => rows.find((one) => one.row.kind === 'batch_cleared') as { row: BatchCleared })
    const { batch_id, fills } = row
    const voided = {
      kind: 'batch_voided',
      batch_id,
      from_part: 1,
      why: 'reverted',
      at: 1,
      fills,
      reopened: [],
    } as const
    await append(exchange, voided)
    await exchange.project()
    const { status, body } = await read(1, batch_id)
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(verifyProof(body, keccak)).to.deep.equal([])
    expect(body.status).to.equal('VOIDED')
    expect(body.parts[0]).to.include({ status: 'failed', transaction_hash: null })
    expect(body.parts[0].fills[0]).to.include({ order_hash: null, salt: null })
  })

  it('when a proof is read, its fields are exactly those of its schema', async () => {
    const stated = new Set(pathsOf(BatchProof as unknown as Schema))
    const found = new Set(
      leavesOf(await proofOf()).map((path) =>
        path.map((name) => (typeof name === 'number' ? '[]' : name)).join('.'),
      ),
    )
    // No account has a position, no order ended, and none has replaced one that had filled.
    const absent = [...stated].filter((path) => !found.has(path))
    expect([...found].filter((path) => !stated.has(path))).to.deep.equal([])
    expect(absent.filter((path) => !/capacities|cancels|unused/.test(path))).to.deep.equal([])
  })

  it('when a market or a batch does not exist, the proof is not found', async () => {
    for (const [answer, code] of [
      [await read(1, 999), 'AUCTION_NOT_FOUND'],
      [await read(9, 1), 'MARKET_NOT_FOUND'],
      [await commitmentOf(bob, 'bid', 999), 'AUCTION_NOT_FOUND'],
    ] as const)
      expect([answer.status, answer.body.details.code]).to.deep.equal([404, code])
  })

  it('when another account asks for the commitment to an order, it is refused', async () => {
    const { status, body } = await commitmentOf(alice, 'bid')
    expect([status, body.details.code]).to.deep.equal([403, 'NOT_YOURS'])
    expect(JSON.stringify(body)).to.not.include('salt')
  })

  it('when the inputs of a batch have been deleted, its proof is not available and its commitments still are', async () => {
    await exchange.db.deleteFrom('batch_inputs').where('batch_id', '=', batch).execute()
    const { status, body } = await read()
    expect([status, body.details.code]).to.deep.equal([404, 'PROOF_NOT_AVAILABLE'])
    expect((await commitmentOf(bob, 'bid')).status).to.equal(200)
  })
})
