/**
 * The processor time of every command on orders at its maximum, in an api and an engine that are processes of their own. A client that uses a
 * limit to the full takes at most a quarter of one core of either. `npm run bench:costs` prints the table.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { costOfCancels } from '../../../api/http/answer-cost.ts'
import type { Bucket } from '../../../api/http/buckets.ts'
import { allowAuctions } from '../../../bench/intake/isolated-engine.ts'
import { type IsolatedTarget, startIsolated } from '../../../bench/intake/isolated-target.ts'
import { accountOf, bodyOf, orderSigner, type Signed, signerOf } from '../../../bench/intake/orders.ts'
import type { Target } from '../../../bench/intake/target.ts'
import type { Order } from '../../../domain/orders/order.ts'
import type { Seconds, Steps, Ticks } from '../../../domain/units.ts'
import { budgetOf, DEFAULTS, LIMITS } from '../support/cost-budget.ts'
import { newRequestId } from '../support/place-batch.ts'
import { ProcessorTime } from '../support/processor-time.ts'

/** Microseconds of processor time of all threads of a process. */
function usageOf(pid: number): number {
  const folder = `/proc/${pid}/task`
  const nanoseconds = readdirSync(folder).map((thread) =>
    Number(readFileSync(`${folder}/${thread}/schedstat`, 'utf8').split(' ')[0]),
  )
  return nanoseconds.reduce((sum, each) => sum + each, 0) / 1000
}

interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies by name
  readonly body: any
  readonly bytes: number
}

const PROCESSES = ['api', 'engine'] as const
type Costs = Readonly<Record<(typeof PROCESSES)[number], number>>

const IDLE_MS = 1_000
const SAMPLES = 5
/** As many if the first ones exceed the limit: a busy machine may have disturbed each of them. */
const MOST_SAMPLES = 20
/** Samples before them, in which the code is compiled. */
const WARM_UP = 4
/** Refusals run through more code: a flood of them pays for its compilation once. */
const REFUSALS_WARM_UP = 20
/** Work that the preparation of a sample has caused ends within this time. */
const PAUSE_MS = 100

describe('the cost of commands on orders at their maximum', function () {
  this.timeout(300_000)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const account = accountOf(0)
  const report: string[] = []
  let target: IsolatedTarget
  let time: ProcessorTime
  let idle: Costs
  let salt = 16

  before(async () => {
    target = await startIsolated({ SIGNATURE_EXPLANATIONS: '0' })
    const [market] = target.markets
    const { hash, signature } = signerOf(market as Target['markets'][number])(account, 0)
    time = new ProcessorTime({
      digest: Buffer.from(hash.slice(2), 'hex'),
      signature: Buffer.from(signature.slice(2, 130), 'hex'),
    })
    await cancelAll()
    for (const order of ordersOf(100)) await place(order)
    await cancelAll()
    idle = await costsOf(() => sleep(IDLE_MS), IDLE_MS)
  })
  after(async () => {
    if (process.env.COSTS !== undefined) console.log(report.sort().join('\n'))
    agent.destroy()
    await target.stop()
  })

  /** Microseconds of each process, divided by `count`. */
  async function costsOf(work: () => Promise<unknown>, count: number): Promise<Costs> {
    const used = () => PROCESSES.map((name) => usageOf(target.processes[name] as number))
    const before = used()
    await work()
    const [api = 0, engine = 0] = used().map((after, index) => (after - (before[index] as number)) / count)
    return { api, engine }
  }

  function ordersOf(count: number): Signed[] {
    const sign = signerOf(target.markets[0] as Target['markets'][number])
    return Array.from({ length: count }, () => sign(account, salt++))
  }

  const fieldsOf = (order: Signed) => JSON.parse(textOf(order))
  const textOf = (order: Signed) => bodyOf(order, (target.markets[0] as Target['markets'][number]).spec)

  async function post(path: string, body: string, account = 0): Promise<Answer> {
    const headers = {
      authorization: `Key ${target.keys[account]}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    }
    const answer = await new Promise<{ status: number; received: string }>((resolve, reject) => {
      const sent = request(
        { agent, host: '127.0.0.1', port: target.port, method: 'POST', path, headers },
        (response) => {
          const { statusCode: status = 0 } = response
          text(response).then((received) => resolve({ status, received }), reject)
        },
      )
      sent.on('error', reject)
      sent.end(body)
    })
    const { status, received } = answer
    return { status, body: JSON.parse(received), bytes: received.length }
  }

  const place = (order: Signed) => post('/v0/orders', textOf(order))
  const batchOf = (orders: readonly object[]) =>
    JSON.stringify({ client_request_id: newRequestId(), mode: 'best_effort', orders })
  const cancelAll = () => post('/v0/orders/cancel/all', '{}')

  const excesses: string[] = []

  function judge(name: string, { cost, allowed }: { cost: number; allowed: number }): void {
    const line = `${name}: ${cost.toFixed(0)} of ${allowed.toFixed(0)} recoveries`
    report.push(line)
    if (cost > allowed) excesses.push(line)
  }

  /**
   * The least cost of one call over a few samples: other programs add to a sample, and never take from it. `prepare`, which returns what the calls of a
   * sample send, is not counted.
   */
  async function measure<Input>(
    name: string,
    requests: (answer: Answer) => { readonly bucket: Bucket; readonly count: number },
    {
      prepare,
      call,
      warmUp = WARM_UP,
    }: { prepare: () => Promise<Input[]>; call: (input: Input) => Promise<Answer>; warmUp?: number },
  ): Promise<Costs> {
    const samples: Costs[] = []
    let answer: Answer | undefined
    const leastOf = (process: (typeof PROCESSES)[number]): number =>
      Math.min(...samples.map((each) => each[process]))
    const allowed = (): number => {
      const { bucket, count } = requests(answer as Answer)
      return budgetOf(bucket) * count
    }
    const isExcessive = (): boolean => PROCESSES.some((process) => leastOf(process) > allowed())
    const isEnough = (): boolean =>
      samples.length >= MOST_SAMPLES || (samples.length >= SAMPLES && !isExcessive())
    for (let sample = 0; !isEnough(); sample++) {
      const inputs = await prepare()
      await sleep(PAUSE_MS)
      const from = performance.now()
      const recoveryUs = time.recoveryUs()
      const costs = await costsOf(async () => {
        for (const input of inputs) answer = await call(input)
      }, inputs.length)
      const idleMs = (performance.now() - from) / inputs.length
      const recovery = (recoveryUs + time.recoveryUs()) / 2
      if (sample >= warmUp)
        samples.push({
          api: Math.max(0, costs.api - idle.api * idleMs) / recovery,
          engine: Math.max(0, costs.engine - idle.engine * idleMs) / recovery,
        })
    }
    const ofProcess = (process: (typeof PROCESSES)[number]): number => {
      const cost = leastOf(process)
      judge(`${name}, ${process} (${answer?.status})`, { cost, allowed: allowed() })
      return cost
    }
    return { api: ofProcess('api'), engine: ofProcess('engine') }
  }

  const expectWithin = (): void => void expect(excesses.splice(0)).to.deep.equal([])
  const of = (bucket: Bucket) => () => ({ bucket, count: 1 })
  const fromSize = (bytes: number): number => Math.floor(bytes / 32_768)

  it('when an order is placed, it takes no more than its limit allows', async () => {
    // Behind the limit of open orders it would measure refusals.
    const prepare = async () => {
      await cancelAll()
      return ordersOf(60)
    }
    const call = async (order: Signed) => {
      const answer = await place(order)
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
      return answer
    }
    await measure('place', of('orders'), { prepare, call })
    await cancelAll()
    expectWithin()
  })

  it('when a batch of the maximum is placed, it takes no more than its limit allows', async () => {
    await measure('place/batch of 50', of('batches'), {
      prepare: async () => Array.from({ length: 4 }, () => ordersOf(50).map(fieldsOf)),
      call: (orders) => post('/v0/orders/place/batch', batchOf(orders)),
    })
    await cancelAll()
    expectWithin()
  })

  it('when signatures are wrong, refusing them takes no more than the two requests of their limits that they cost', async () => {
    const measureWrong = async (suffix: string) => {
      const wrong = (count: number) => ordersOf(count).map((order) => ({ ...fieldsOf(order), leverage: 7 }))
      const twice = (bucket: Bucket) => () => ({ bucket, count: 2 })
      const single = await measure(`place, wrong${suffix}`, twice('orders'), {
        prepare: async () => wrong(30),
        call: (order) => post('/v0/orders', JSON.stringify(order)),
      })
      const batch = await measure(`place/batch, 50 wrong${suffix}`, twice('batches'), {
        prepare: async () => Array.from({ length: 2 }, () => wrong(50)),
        warmUp: REFUSALS_WARM_UP,
        call: (orders) => post('/v0/orders/place/batch', batchOf(orders)),
      })
      return { single, batch }
    }
    const { single, batch } = await measureWrong('')
    expectWithin()
    const withoutExplanations = target
    target = await startIsolated({ SIGNATURE_EXPLANATIONS: '1000000' })
    try {
      // At most so many signatures a second are explained, of all clients together.
      const explained = await measureWrong(' and explained')
      excesses.length = 0
      judge('place, wrong, with all explanations', {
        cost:
          single.api + ((explained.single.api - single.api) * DEFAULTS.signatureExplanations) / LIMITS.orders,
        allowed: 2 * budgetOf('orders'),
      })
      const ofOne = (explained.batch.api - batch.api) / 50
      judge('place/batch, 50 wrong, with all explanations', {
        cost: batch.api + (ofOne * DEFAULTS.signatureExplanations) / LIMITS.batches,
        allowed: 2 * budgetOf('batches'),
      })
    } finally {
      await target.stop()
      target = withoutExplanations
    }
    expectWithin()
  })

  async function placed(count: number): Promise<string[]> {
    const orders = ordersOf(count)
    for (let at = 0; at < count; at += 50)
      await post('/v0/orders/place/batch', batchOf(orders.slice(at, at + 50).map(fieldsOf)))
    return orders.map(({ hash }) => hash)
  }

  it('when orders are cancelled, it takes no more than its limit allows', async () => {
    await measure('cancel/by-hash', of('cancels'), {
      prepare: () => placed(50),
      call: (hash) => post(`/v0/orders/cancel/by-hash/${hash}`, ''),
    })
    const batch = (orderHashes: readonly string[]) =>
      post('/v0/orders/cancel/batch', JSON.stringify({ client_request_id: newRequestId(), orderHashes }))
    const requests = ({ bytes }: Answer) => ({
      bucket: 'cancels' as const,
      count: 1 + Math.max(costOfCancels(100), fromSize(bytes)),
    })
    await measure('cancel/batch of 100', requests, {
      prepare: async () => [await placed(100), await placed(100)],
      call: batch,
    })
    const unknown = Array.from({ length: 100 }, (_, at) => `0x${(at + 1).toString(16).padStart(64, '0')}`)
    await measure('cancel/batch of 100 unknown', requests, {
      prepare: async () => [unknown, unknown],
      call: batch,
    })
    // The orders had to be placed before, in batches of fifty.
    await measure(
      'cancel/all of 300',
      ({ bytes }) => ({
        bucket: 'cancels',
        count: 1 + fromSize(bytes) + (6 * budgetOf('batches')) / budgetOf('cancels'),
      }),
      { prepare: async () => [await placed(300)], call: cancelAll },
    )
    expectWithin()
  })

  /** Orders in the book, and a new order for each. Salts that differ by 64 have the same side. */
  async function replacements(): Promise<object[]> {
    await cancelAll()
    const old = ordersOf(64).slice(0, 50)
    await post('/v0/orders/place/batch', batchOf(old.map(fieldsOf)))
    const replacing = ordersOf(64).slice(0, 50)
    return replacing.map((order, at) => ({ cancel: { order_hash: old[at]?.hash }, order: fieldsOf(order) }))
  }

  it('when orders are replaced, it takes no more than its limit allows', async () => {
    await measure('replace', of('orders'), {
      prepare: replacements,
      call: async (each) => {
        const answer = await post('/v0/orders/replace', JSON.stringify(each))
        expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
        return answer
      },
    })
    await measure('replace/batch of 50', of('batches'), {
      prepare: async () => [await replacements()],
      call: async (orders) => {
        const answer = await post('/v0/orders/replace/batch', batchOf(orders))
        expect(answer.body.accepted, JSON.stringify(answer.body).slice(0, 300)).to.equal(50)
        return answer
      },
    })
    await cancelAll()
    expectWithin()
  })

  it('when orders are cancelled by their own ids or a switch is armed, it takes no more than its limit allows', async () => {
    const named = async () => {
      const orders = ordersOf(50).map((order) => ({ ...fieldsOf(order), client_order_id: newRequestId() }))
      await post('/v0/orders/place/batch', batchOf(orders))
      return orders.map(({ client_order_id }) => client_order_id)
    }
    await measure('cancel/by-client-id', of('cancels'), {
      prepare: named,
      call: async (id) => {
        const answer = await post(`/v0/orders/cancel/by-client-id/${id}`, '')
        expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
        return answer
      },
    })
    await measure('cancel/all-after', of('cancels'), {
      prepare: async () => Array<number>(50).fill(60),
      call: (seconds) => post('/v0/orders/cancel/all-after', JSON.stringify({ timeout_seconds: seconds })),
    })
    expectWithin()
  })

  /** An order of the first market, at the report's price. */
  function orderOf(by: number, side: Order['side'], terms: Partial<Order>): Signed {
    const market = target.markets[0] as Target['markets'][number]
    const { address: maker, key } = accountOf(by)
    const own = { marketId: market.spec.marketId, maker, side, salt: BigInt(salt++) }
    const rest = { trigger: 0 as Ticks, leverage: 5, reduceOnly: false, expiration: 0 as Seconds }
    const order = {
      type: 'LIMIT',
      price: market.oracle,
      quantity: 1_000 as Steps,
      ...own,
      ...rest,
      ...terms,
    } as const
    return orderSigner(market)(order, key)
  }
  const closing = () =>
    textOf(
      orderOf(0, 'SHORT', { type: 'MARKET', price: 0 as Ticks, quantity: 10 as Steps, reduceOnly: true }),
    )
  const close = async (body: string) => {
    const answer = await post('/v0/positions/close', body)
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
    return answer
  }

  it('when a position is closed, it takes no more than its limit allows', async () => {
    await allowAuctions(target.db, target.engine, target.markets)
    for (const [by, side] of [
      [0, 'LONG'],
      [1, 'SHORT'],
    ] as const)
      expect((await post('/v0/orders', textOf(orderOf(by, side, {})), by)).status).to.equal(200)
    // Refused until the auction has matched both orders.
    while ((await post('/v0/positions/close', closing())).body.position_quantity !== 1) await sleep(200)
    const call = async (body: string) => {
      const answer = await close(body)
      expect(answer.body).to.include({ position_quantity: 1 })
      return answer
    }
    for (const resting of [0, 400]) {
      const prepare = async () => {
        await cancelAll()
        await placed(resting)
        return Array.from({ length: 50 }, closing)
      }
      await measure(`positions/close beside ${resting} orders`, of('orders'), { prepare, call })
    }
    await cancelAll()
    expectWithin()
  })
})
