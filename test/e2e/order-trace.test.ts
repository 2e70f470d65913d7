/** One search of the logs by the trace id of a request follows its order through api, engine and keeper to the receipt. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { waitFor } from '../support/patience.ts'
import { nearOracle, trade, useStack } from './support/stack.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const MARKET = 1

interface Line {
  readonly process: string
  readonly msg: string
  readonly kind?: string
  readonly trace_id?: string
  readonly trace_ids?: readonly string[]
  readonly order_ids?: readonly string[]
  readonly batches?: readonly string[]
  readonly tx_hash?: string
  readonly tx_hashes?: readonly string[]
}

describe('the trace of an order', function () {
  this.timeout(180_000)
  const level = process.env.LOG_LEVEL
  // Before the hook that starts the processes.
  before(() => {
    process.env.LOG_LEVEL = 'debug'
  })
  const exchange = useStack()
  after(() => {
    if (level === undefined) delete process.env.LOG_LEVEL
    else process.env.LOG_LEVEL = level
  })

  const linesOf = (name: string): readonly Line[] =>
    readFileSync(join(exchange.logDir, `${name}.log`), 'utf8')
      .split('\n')
      .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Line] : []))

  it('when a request has a traceparent, lines of its placement, batch, transaction and receipt have its trace id', async () => {
    const { file } = exchange.stack
    const [account] = file.accounts
    if (account === undefined) throw new Error('the stack has accounts')
    const traced = new Client({
      baseUrl: file.base_url,
      rpcUrl: file.rpc_url,
      apiKey: account.api_key,
      privateKey: account.private_key,
      http: {
        fetch: (input, init) => {
          const headers = new Headers(init?.headers)
          headers.set('traceparent', `00-${TRACE}-00f067aa0ba902b7-01`)
          return fetch(input, { ...init, headers })
        },
      },
    })
    const seller = exchange.trader(1)
    const price = await nearOracle(seller, MARKET)
    const { placed } = await trade(traced, seller, { marketId: MARKET, price, quantity: '0.01' })
    traced.close()
    const id = placed[0]?.order.order_id as string

    const found = await waitFor(
      async () => linesOf('engine').filter(({ trace_ids }) => trace_ids?.includes(TRACE)),
      (lines) => lines.some(({ kind }) => kind === 'apply_block'),
    )
    expect(linesOf('api').some(({ trace_id }) => trace_id === TRACE)).to.equal(true)
    expect(found.every(({ order_ids }) => order_ids?.includes(id))).to.equal(true)
    expect(found.map(({ kind }) => kind)).to.include.members(['orders', 'turn', 'submitted', 'apply_block'])
    const mined = found.find(({ kind }) => kind === 'apply_block')
    const [hash = ''] = mined?.tx_hashes ?? []
    // Its own poll may show the keeper the receipt later than the block reaches the engine.
    const receipts = await waitFor(
      async () => linesOf('keeper').filter(({ tx_hash }) => tx_hash === hash),
      (lines) => lines.some(({ msg }) => msg === 'receipt recorded'),
    )
    const signed = receipts.find(({ msg }) => msg === 'action signed')
    expect(signed?.batches).to.deep.equal(mined?.batches)
  })
})
