/** The health server: one format for liveness, readiness and metrics. */
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { type Check, createReadiness, serveHealth } from '../../service/health.ts'
import type { HttpListener } from '../../service/http-listener.ts'
import { createRegistry } from '../../service/metrics.ts'

describe('serveHealth', () => {
  const { registry, instruments } = createRegistry()
  let server: HttpListener | undefined

  afterEach(async () => {
    await server?.close()
    server = undefined
  })

  const logged: { readonly details: object; readonly message: string }[] = []
  const note = (details: object, message: string): void => void logged.push({ details, message })
  const logger = { debug: note, info: note, warn: note, error: note }

  const serve = (port: number, checks: readonly Check[] = []): Promise<HttpListener> =>
    serveHealth({ host: '127.0.0.1', port, registry, logger, readiness: createReadiness(checks, logger) })

  async function get(path: string, checks: readonly Check[] = []) {
    server = await serve(0, checks)
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`)
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      text: await response.text(),
    }
  }

  const database: Check = { name: 'database', check: async () => true }
  const chain: Check = { name: 'chain', check: async () => 'head_never_reached' }
  const broken: Check = {
    name: 'queue',
    check: async () => {
      throw new Error('connect ECONNREFUSED 10.0.0.5:5432')
    },
  }
  const silent: Check = { name: 'node', check: () => new Promise(() => {}) }

  it('when the process runs, /health/live answers 200 whatever the checks report', async () => {
    const { status, text } = await get('/health/live', [chain])
    expect([status, JSON.parse(text)]).to.deep.equal([200, { status: 'ok' }])
  })

  it('when every check passes, /health/ready answers 200 and lists the checks', async () => {
    const { status, text } = await get('/health/ready', [database])
    expect([status, JSON.parse(text)]).to.deep.equal([200, { status: 'ok', checks: { database: true } }])
  })

  it('when checks fail, throw or do not end, /health/ready answers 503 with a code for each', async () => {
    const { status, type, text } = await get('/health/ready?verbose', [database, chain, broken, silent])
    expect(status).to.equal(503)
    expect(type).to.equal('application/json')
    expect(JSON.parse(text)).to.deep.equal({
      status: 'unavailable',
      checks: { database: true, chain: 'head_never_reached', queue: 'failed', node: 'timed_out' },
    })
  })

  it('when a check throws, its error is logged', async () => {
    logged.splice(0)
    await get('/health/ready', [broken])
    expect(logged.map(({ message }) => message)).to.deep.equal(['readiness check failed'])
    expect(JSON.stringify(logged[0]?.details)).to.include('"check":"queue"')
  })

  it('when several probes arrive at once, they share one run of the checks', async () => {
    let runs = 0
    const slow: Check = {
      name: 'database',
      async check() {
        runs++
        await new Promise((resolve) => setTimeout(resolve, 50))
        return true
      },
    }
    const readiness = createReadiness([slow], logger)
    await Promise.all([readiness(), readiness(), readiness()])
    expect(runs).to.equal(1)
    await readiness()
    expect(runs).to.equal(2)
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

  it('when metrics cannot be computed, the answer does not contain the error', async () => {
    const failing = createRegistry()
    failing.instruments.computed('test_broken', 'Broken', () => {
      throw new Error('password=secret')
    })
    const options = { host: '127.0.0.1', port: 0, logger, readiness: createReadiness([], logger) }
    server = await serveHealth({ ...options, registry: failing.registry })
    const response = await fetch(`http://127.0.0.1:${server.port}/metrics`)
    expect([response.status, await response.text()]).to.deep.equal([500, '{"message":"internal error"}'])
  })

  it('when the path is unknown, it answers 404 and lists the routes', async () => {
    const { status, text } = await get('/nowhere')
    expect([status, JSON.parse(text)]).to.deep.equal([
      404,
      { message: 'no route /nowhere: /health/live, /health/ready, /metrics' },
    ])
  })

  it('when the port is taken, it rejects with the error of the bind', async () => {
    server = await serve(0)
    const second = serve(server.port)
    expect(await second.catch((error: NodeJS.ErrnoException) => error.code)).to.equal('EADDRINUSE')
  })
})
