/** The health server: one format for liveness, readiness and metrics. */
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { type Check, type HealthServer, serveHealth } from '../../service/health.ts'
import { createRegistry } from '../../service/metrics.ts'

describe('serveHealth', () => {
  const { registry, instruments } = createRegistry()
  let server: HealthServer | undefined

  afterEach(async () => {
    await server?.close()
    server = undefined
  })

  async function get(path: string, checks: readonly Check[] = []) {
    server = await serveHealth({ host: '127.0.0.1', port: 0, registry, checks })
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`)
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      text: await response.text(),
    }
  }

  const database: Check = { name: 'database', check: async () => true }
  const chain: Check = { name: 'chain', check: async () => 'its head was never reached' }
  const broken: Check = {
    name: 'queue',
    check: async () => {
      throw new Error('connection refused')
    },
  }

  it('when the process runs, /health/live answers 200 whatever the checks report', async () => {
    const { status, text } = await get('/health/live', [chain])
    expect([status, JSON.parse(text)]).to.deep.equal([200, { status: 'ok' }])
  })

  it('when every check passes, /health/ready answers 200 and lists the checks', async () => {
    const { status, text } = await get('/health/ready', [database])
    expect([status, JSON.parse(text)]).to.deep.equal([200, { status: 'ok', checks: { database: true } }])
  })

  it('when checks fail or throw, /health/ready answers 503 with the reason of each', async () => {
    const { status, type, text } = await get('/health/ready?verbose', [database, chain, broken])
    expect(status).to.equal(503)
    expect(type).to.equal('application/json')
    expect(JSON.parse(text)).to.deep.equal({
      status: 'unavailable',
      checks: { database: true, chain: 'its head was never reached', queue: 'connection refused' },
    })
  })

  it('when metrics are scraped, /metrics answers in the format of Prometheus', async () => {
    instruments.counter('test_orders_total', 'Orders', ['side']).inc({ side: 'LONG' }, 3)
    instruments.computed('test_waiting', 'Waiting readers', () => 7)
    const { status, type, text } = await get('/metrics')
    expect(status).to.equal(200)
    expect(type).to.equal(registry.contentType)
    expect(text).to.match(/^test_orders_total\{side="LONG"\} 3$/m)
    expect(text).to.match(/^test_waiting 7$/m)
    expect(text).to.match(/^process_cpu_seconds_total /m)
  })

  it('when the path is unknown, it answers 404 and lists the routes', async () => {
    const { status, text } = await get('/nowhere')
    expect([status, JSON.parse(text)]).to.deep.equal([
      404,
      { message: 'no route /nowhere: /health/live, /health/ready, /metrics' },
    ])
  })

  it('when the port is taken, it rejects with the error of the bind', async () => {
    server = await serveHealth({ host: '127.0.0.1', port: 0, registry, checks: [] })
    const second = serveHealth({ host: '127.0.0.1', port: server.port, registry, checks: [] })
    expect(await second.catch((error: NodeJS.ErrnoException) => error.code)).to.equal('EADDRINUSE')
  })
})
