/**
 * Once a command may have been executed, no later answer says that it was not. Random attempts at the same commands, over two api processes,
 * while reads, locks, parameters and the database fail; the rows of the database judge every answer.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import { perpetual } from '../../support/markets.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { type CutProxy, startProxy } from '../../support/proxy.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  signedBody,
  startExchange,
  startSecondApi,
  type User,
} from '../support/exchange-fixture.ts'
import { sendBatch } from '../support/place-batch.ts'

/** What fails while a command is sent. */
const FAULTS = ['none', 'fills', 'database', 'lock', 'signature', 'leverage'] as const
type Fault = (typeof FAULTS)[number]

describe('the outcome of repeated commands', () => {
  let exchange: ExchangeFixture
  let behindProxy: ExchangeFixture
  let proxy: CutProxy
  let alice: User
  const sql = (text: string): Promise<unknown> =>
    exchange.db.executeQuery({ sql: text, parameters: [], query: { kind: 'RawNode' } } as never)

  before(async () => {
    const url = await freshDatabase()
    proxy = await startProxy(url)
    exchange = await startExchange({ COMMAND_TIMEOUT_MS: '200' }, url)
    behindProxy = await startSecondApi(exchange, { DATABASE_URL: proxy.url, COMMAND_TIMEOUT_MS: '200' })
    alice = await createUser(exchange.db, 'alice', '100000000')
  })
  after(async () => {
    await behindProxy.stop()
    await exchange.stop()
    await proxy.cut()
  })

  const isPlaced = async (hash: string): Promise<boolean> =>
    (await exchange.db.selectFrom('orders').select('hash').where('hash', '=', hash).execute()).length === 1

  const byHash = (hash: string) => exchange.db.updateTable('orders').where('hash', '=', hash)

  /** Runs `work` while the fault lasts. */
  async function during<Value>(fault: Fault, hash: string, work: () => Promise<Value>): Promise<Value> {
    if (fault === 'fills') {
      // Only orders with fills read them.
      await byHash(hash).set({ filled: 1 }).execute()
      await sql('alter table read.fills rename to fills_away')
      return work().finally(async () => {
        await sql('alter table read.fills_away rename to fills')
        await byHash(hash).set({ filled: 0 }).execute()
      })
    }
    if (fault === 'database') {
      await proxy.cut()
      return work().finally(() => proxy.restore())
    }
    if (fault !== 'lock') return work()
    const sent: Promise<Value>[] = []
    await exchange.db.transaction().execute(async (tx) => {
      await tx.selectFrom('shards').select('head').where('shard', '=', 'm1').forUpdate().execute()
      sent.push(work())
      await Promise.race([...sent, new Promise((resolve) => setTimeout(resolve, 300))])
    })
    return sent[0] as Promise<Value>
  }

  const sent = (fault: Fault, body: Record<string, unknown>): Record<string, unknown> => {
    if (fault === 'signature') return { ...body, signature: `0x${'11'.repeat(64)}1b01` }
    // As if the parameters of the market had changed since the first attempt.
    return fault === 'leverage' ? { ...body, leverage: 1_000_000 } : body
  }

  function judge(answer: Answer, wasPlaced: boolean, what: string): void {
    const { status, body } = answer
    if (status === 200) return
    if (wasPlaced) expect(body.details.outcome, `${what}: ${JSON.stringify(body)}`).to.not.equal('not_placed')
  }

  const faults = fc.array(fc.record({ fault: fc.constantFrom(...FAULTS), second: fc.boolean() }), {
    minLength: 2,
    maxLength: 6,
  })

  it('when an order was placed, no later answer to it is not_placed', async () => {
    let rejectedLater = 0
    await fc.assert(
      fc.asyncProperty(faults, async (attempts) => {
        const { body, hash } = signedBody(alice)
        for (const { fault, second } of [{ fault: 'none', second: false } as const, ...attempts]) {
          const wasPlaced = await isPlaced(hash)
          const api = second || fault === 'database' ? behindProxy : exchange
          const answer = await during(fault, hash, () =>
            api.send(alice, 'POST', '/v0/orders', sent(fault, body)),
          )
          judge(answer, wasPlaced, fault)
          if (wasPlaced && answer.status !== 200) rejectedLater++
        }
        await exchange.cancel(alice, hash)
      }),
      { numRuns: 12, examples: [[FAULTS.map((fault) => ({ fault, second: false }))]] },
    )
    expect(rejectedLater).to.be.above(4)
  }).timeout(120_000)

  it('when a batch was executed, no later answer to it is not_placed', async () => {
    for (const mode of ['atomic', 'best_effort'] as const) {
      const { body, hash } = signedBody(alice)
      const id = `law ${mode}`
      expect((await sendBatch(exchange, alice, [body], { mode, id })).status).to.equal(200)
      for (const fault of ['database', 'lock'] as const) {
        const api = fault === 'database' ? behindProxy : exchange
        judge(
          await during(fault, hash, () => sendBatch(api, alice, [body], { mode, id })),
          true,
          `${mode} ${fault}`,
        )
      }
      // The order in another batch, under parameters that refuse it now.
      const again = { ...body, leverage: 1_000_000 }
      const other = await sendBatch(exchange, alice, [again], { mode, id: `${id} again` })
      const error = mode === 'atomic' ? other.body : other.body.results[0].error
      expect(error.details, JSON.stringify(error)).to.include({ code: 'LEVERAGE_CAP', outcome: 'unknown' })
    }
  })

  it('when a cancel was executed, no later answer to it is not_placed', async () => {
    const { body, hash } = signedBody(alice)
    expect((await exchange.send(alice, 'POST', '/v0/orders', body)).status).to.equal(200)
    expect((await exchange.cancel(alice, hash)).body.cancelled).to.equal(true)
    for (const fault of ['database', 'lock'] as const) {
      const api = fault === 'database' ? behindProxy : exchange
      judge(await during(fault, hash, () => api.cancel(alice, hash)), true, fault)
    }
  })

  it('when a recognised order cannot read its fills, the error says that the order is placed', async () => {
    const { body, hash } = signedBody(alice)
    expect((await exchange.send(alice, 'POST', '/v0/orders', body)).status).to.equal(200)
    const { status, body: error } = await during('fills', hash, () =>
      exchange.send(alice, 'POST', '/v0/orders', body),
    )
    expect(status).to.equal(500)
    expect(error.details).to.include({ outcome: 'placed', order_hash: hash })
  })

  it('when an order was never placed, a refusal says so', async () => {
    const { body } = signedBody(alice, { market: perpetual })
    for (const fault of ['signature', 'leverage', 'lock'] as const) {
      const answer = await during(fault, '0x', () =>
        exchange.send(alice, 'POST', '/v0/orders', sent(fault, body)),
      )
      if (answer.status !== 200) expect(answer.body.details.outcome, fault).to.equal('not_placed')
    }
  })
})
