/**
 * The processor time of the proof of the largest batch, on all threads. A client that uses the limit of proofs to the full takes at most a quarter of
 * one core of the reference. `npm run bench:costs` prints the table.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { costOfAnswer } from '../../../api/http/answer-cost.ts'
import { MAX_ORDERS_PER_TURN } from '../../../domain/auction/turn-bound.ts'
import { perpetual } from '../../support/markets.ts'
import { budgetOf } from '../support/cost-budget.ts'
import {
  createUser,
  type ExchangeFixture,
  setOracle,
  signedBody,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'
import { minePart, runAuction } from '../support/keeper-turns.ts'
import { sendBatch } from '../support/place-batch.ts'
import { ProcessorTime } from '../support/processor-time.ts'

const BATCH = 50

describe('the cost of the proof of the largest batch', function () {
  this.timeout(300_000)
  let exchange: ExchangeFixture
  let batch: number
  let time: ProcessorTime
  const report: string[] = []

  before(async () => {
    exchange = await startExchange()
    const users = await Promise.all(
      ['alice', 'bob', 'carol', 'dave'].map((name) => createUser(exchange.db, name, '1000000000')),
    )
    for (let placed = 0; placed < MAX_ORDERS_PER_TURN; placed += BATCH) {
      const at = (placed / BATCH) % users.length
      const terms = { side: at % 2 === 0 ? 'LONG' : 'SHORT', price: '100', quantity: '0.01' } as const
      const orders = Array.from({ length: BATCH }, () => signedBody(users[at] as User, terms).body)
      const { body } = await sendBatch(exchange, users[at] as User, orders)
      expect(body.accepted, JSON.stringify(body).slice(0, 300)).to.equal(BATCH)
    }
    await setOracle(exchange.db, perpetual, '100')
    batch = (await runAuction(exchange)) as number
    expect(batch).to.be.above(0)
    const { hash, body } = signedBody(users[0] as User)
    const signature = Buffer.from(String(body.signature).slice(2, 130), 'hex')
    time = new ProcessorTime({ digest: Buffer.from(hash.slice(2), 'hex'), signature })
    await time.start()
  })
  after(async () => {
    if (process.env.COSTS !== undefined) console.log(report.sort().join('\n'))
    await exchange.stop()
  })

  for (const state of ['settling', 'settled'] as const)
    for (const encoding of ['gzip', 'identity'])
      it(`when it is ${state} and sent with the encoding ${encoding}, it takes no more than its requests of the limit allow`, async () => {
        if (state === 'settled') for (let part = 0; part < 20; part++) await minePart(exchange)
        const url = `/v0/auctions/1/${batch}/proof`
        const headers = { 'accept-encoding': encoding }
        const read = () => exchange.api.app.inject({ method: 'GET', url, headers })
        const { statusCode, rawPayload } = await read()
        expect(statusCode, rawPayload.subarray(0, 300).toString()).to.equal(200)
        const cost = await time.of(read, { warm: 10, samples: 5, calls: 3 })
        const allowed = budgetOf('proofs') * (1 + costOfAnswer('proofs', rawPayload.length))
        const line = `proof, ${state}, ${encoding}, ${rawPayload.length} bytes: ${cost.toFixed(0)} of ${allowed.toFixed(0)} recoveries`
        report.push(line)
        expect(cost, line).to.be.at.most(allowed)
      })
})
