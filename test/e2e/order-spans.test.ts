/** One order's spans, from its HTTP request to the mined receipt, with a collector that decodes what the processes send. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Client } from '../../client/client.ts'
import { type CollectedSpan, OtlpCollector } from '../support/otlp-collector.ts'
import { waitFor } from '../support/patience.ts'
import { nearOracle, trade, useStack } from './support/stack.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'
const MARKET = 1
/** Spans of a part that the chain and the projection have followed to the end. */
const BATCH_SPANS = [
  'append group',
  'apply part',
  'mine transaction',
  'project chunk',
  'record block',
  'send transaction',
  'sign part',
]

describe('the spans of an order', function () {
  this.timeout(240_000)
  const variables = ['TRACE_EXPORT_URL', 'TRACE_SAMPLE_MILLIONTHS'] as const
  const earlier = variables.map((name) => process.env[name])
  let collector: OtlpCollector
  // Before the hook that starts the processes.
  before(async () => {
    collector = await OtlpCollector.start()
    process.env.TRACE_EXPORT_URL = collector.url
    process.env.TRACE_SAMPLE_MILLIONTHS = '1000000'
  })
  const exchange = useStack()
  after(() => {
    variables.forEach((name, at) => {
      if (earlier[at] === undefined) delete process.env[name]
      else process.env[name] = earlier[at]
    })
    collector.stop()
  })

  const sent: string[] = []

  async function tradeTraced(traceparent: string): Promise<string> {
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
          headers.set('traceparent', traceparent)
          if (typeof init?.body === 'string') sent.push(init.body)
          return fetch(input, { ...init, headers })
        },
      },
    })
    const seller = exchange.trader(1)
    const price = await nearOracle(seller, MARKET)
    const { placed } = await trade(traced, seller, { marketId: MARKET, price, quantity: '0.01' })
    traced.close()
    return placed[0]?.order.order_id as string
  }

  const childrenOf = ({ spanId, traceId }: CollectedSpan): readonly CollectedSpan[] =>
    collector.spans.filter((span) => span.traceId === traceId && span.parentSpanId === spanId)

  function only(spans: readonly CollectedSpan[], name: string): CollectedSpan {
    const found = spans.filter((span) => span.name === name)
    expect(found, `${name} among ${spans.map((span) => span.name)}`).to.have.length(1)
    return found[0] as CollectedSpan
  }

  it('when every request is sampled, the request, the decision, the batch and the receipt are one linked set', async () => {
    const orderId = await tradeTraced(`00-${TRACE}-${CALLER}-01`)
    await waitFor(
      async () => collector.spans,
      () => BATCH_SPANS.every((name) => collector.named(name).length > 0),
    )
    // Each process sends its spans once a second.
    await new Promise((resolve) => setTimeout(resolve, 3_000))

    const own = collector.spans.filter(({ traceId }) => traceId === TRACE)
    const request = only(own, 'POST /v0/orders')
    expect(request).to.include({ process: 'api', parentSpanId: CALLER })
    const call = only(childrenOf(request), 'engine orders')
    const decision = only(childrenOf(call), 'decide orders')
    expect(decision.process).to.equal('engine')
    expect(decision.attributes['clearbatch.order_ids']).to.deep.equal([orderId])
    only(childrenOf(decision), 'append group')
    const fill = only(childrenOf(decision), 'fill order')

    const batch = only(collector.spans, 'clear batch')
    expect(fill.links).to.deep.equal([{ traceId: batch.traceId, spanId: batch.spanId }])
    expect(batch.links).to.deep.include({ traceId: TRACE, spanId: decision.spanId })
    expect(batch.parentSpanId).to.equal(undefined)
    const parts = childrenOf(batch)
    expect([...new Set(parts.map(({ name }) => name))].toSorted()).to.deep.equal(BATCH_SPANS)
    const [mined, applied] = [only(parts, 'mine transaction'), only(parts, 'apply part')]
    expect(mined.process).to.equal('keeper')
    expect(applied.attributes['clearbatch.tx_hash']).to.equal(mined.attributes['clearbatch.tx_hash'])
    expect(only(parts, 'record block').attributes['clearbatch.block']).to.equal(
      mined.attributes['clearbatch.block'],
    )
    for (const span of [...own, ...parts]) expect(span.endedAt).to.be.at.least(span.startedAt)
    expect(mined.endedAt).to.be.greaterThan(request.endedAt)
  })

  it('when spans are exported, they contain no credential, signature or body', () => {
    const all = collector.bodies.join('\n')
    const { accounts } = exchange.stack.file
    for (const { api_key, private_key, address } of accounts)
      for (const secret of [api_key, private_key, address])
        expect(all.toLowerCase()).not.to.include(secret.toLowerCase())
    const values = sent.flatMap((body) => Object.values(JSON.parse(body) as Record<string, unknown>))
    const long = values.filter((value): value is string => typeof value === 'string' && value.length > 12)
    expect(long.length).to.be.greaterThan(1)
    for (const value of long) expect(all).not.to.include(value)
    const keys = collector.spans.flatMap(({ attributes }) => Object.keys(attributes))
    expect(
      [...new Set(keys)].filter((key) => !/^(clearbatch\.[a-z_]+|error\.type)$/.test(key)),
    ).to.deep.equal([])
  })

  it('when the client excludes its request, the request has no spans', async () => {
    const excluded = 'a'.repeat(32)
    await tradeTraced(`00-${excluded}-${CALLER}-00`)
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    expect(collector.spans.filter(({ traceId }) => traceId === excluded)).to.deep.equal([])
  })

  it('when the collector is silent, orders are placed, filled and settled as before', async () => {
    collector.mode = 'silent'
    const orderId = await tradeTraced(`00-${'b'.repeat(32)}-${CALLER}-01`)
    expect(orderId).to.match(/^1-\d+$/)
    expect(await exchange.differences()).to.deep.equal([])
  })
})
