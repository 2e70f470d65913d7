import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Address, Millis } from '../../../domain/units.ts'
import { createChain } from '../../../keeper/adapters/chain.ts'
import { createMetrics } from '../../../keeper/metrics.ts'
import { readBalances } from '../../../keeper/relayer/balance-watch.ts'

/** The time after which a silent node is given up; a node that answers has longer. */
const TIMEOUT_MS = 1000
const PATIENT_MS = 20_000
const ETHER = 10n ** 18n
const lanes = ['m1', 'm2', 'm3'].map((name, index) => ({
  name,
  relayer: `0x${String(index + 1).repeat(40)}` as Address,
}))

/** A node that answers balances, and never those of `silent` relayers. */
describe('the balances of relayers', () => {
  const silent = new Set<string>()
  const balances = new Map<string, bigint>()
  /** The present key of each lane. */
  const keys = new Map<string, Address>()
  const logged: { readonly message: string; readonly lane: unknown }[] = []
  const note = (details: object, message: string): void =>
    void logged.push({ message, lane: (details as { lane?: unknown }).lane })
  const logger = { debug: note, info: note, warn: note, error: note }
  let node = createServer()
  let now = 0 as Millis
  let metrics = createMetrics()

  beforeEach(async () => {
    silent.clear()
    now = 1_000_000 as Millis
    logged.splice(0)
    metrics = createMetrics()
    for (const { name, relayer } of lanes) {
      balances.set(relayer, 2n * ETHER)
      keys.set(name, relayer)
    }
    node = createServer(async (request, response) => {
      const text: string[] = []
      for await (const chunk of request) text.push(String(chunk))
      const { id, method, params } = JSON.parse(text.join(''))
      if (method !== 'eth_getBalance' || silent.has(params[0])) return
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id, result: `0x${balances.get(params[0])?.toString(16)}` }),
      )
    }).listen(0, '127.0.0.1')
    await once(node, 'listening')
  })
  afterEach(() => {
    node.closeAllConnections()
    node.close()
  })

  const read = (timeoutMs = PATIENT_MS): Promise<void> => {
    const { port } = node.address() as AddressInfo
    const options = { chainId: 6343, requestTimeoutMs: timeoutMs, sendTimeoutMs: timeoutMs }
    const chain = createChain({ url: `http://127.0.0.1:${port}`, ...options })
    const clock = { now: () => now }
    const names = () => lanes.map(({ name }) => name)
    const relayerOf = async (lane: string): Promise<Address> => {
      const relayer = keys.get(lane)
      if (relayer === undefined) throw new Error(`no relayer key for lane ${lane}`)
      return relayer
    }
    return readBalances({ chain, clock, metrics, logger, lowBalance: ETHER, lanes: names, relayerOf })
  }

  /** Balance and time of its read, by lane. */
  async function gauges(): Promise<Record<string, readonly [balance: number, seconds: number]>> {
    const text = await metrics.registry.metrics()
    const gaugeOf = (name: string, lane: string): number =>
      Number(new RegExp(`^${name}\\{lane="${lane}"\\} (.*)$`, 'm').exec(text)?.[1])
    return Object.fromEntries(
      lanes.map(({ name }) => [
        name,
        [
          gaugeOf('keeper_relayer_balance', name),
          gaugeOf('keeper_relayer_balance_timestamp_seconds', name),
        ] as const,
      ]),
    )
  }

  it('when the node answers, every gauge has its balance and the time of the read', async () => {
    await read()
    expect(await gauges()).to.deep.equal({ m1: [2, 1000], m2: [2, 1000], m3: [2, 1000] })
    expect(logged).to.deep.equal([])
  })

  it('when one balance gets no response, all other balances are read, and that balance keeps its value and time', async () => {
    await read()
    for (const { relayer } of lanes) balances.set(relayer, 3n * ETHER)
    silent.add(lanes[0]?.relayer as string)
    now = (now + 30_000) as Millis
    await read(TIMEOUT_MS)
    expect(await gauges()).to.deep.equal({ m1: [2, 1000], m2: [3, 1030], m3: [3, 1030] })
    expect(logged).to.deep.equal([{ message: 'reading a relayer balance failed; will retry', lane: 'm1' }])
  })

  it('when no balance gets a response, all reads together take one timeout', async () => {
    for (const { relayer } of lanes) silent.add(relayer)
    const started = Date.now()
    await read(TIMEOUT_MS)
    expect(Date.now() - started).to.be.within(TIMEOUT_MS - 20, 2.5 * TIMEOUT_MS)
    expect(logged).to.have.length(3)
  })

  it('when a lane changes its key, its gauge has the balance of the present key', async () => {
    const next = `0x${'9'.repeat(40)}` as Address
    balances.set(next, 7n * ETHER)
    await read()
    keys.set('m2', next)
    await read()
    expect((await gauges()).m2).to.deep.equal([7, 1000])
  })

  it('when the key of a lane cannot be read, the balances of the other lanes are read', async () => {
    keys.delete('m1')
    await read()
    expect((await gauges()).m3).to.deep.equal([2, 1000])
    expect(logged).to.deep.equal([{ message: 'reading a relayer balance failed; will retry', lane: 'm1' }])
  })

  it('when a balance is below the threshold, it logs an error with the lane', async () => {
    balances.set(lanes[1]?.relayer as string, ETHER - 1n)
    await read()
    expect(logged).to.deep.equal([{ message: 'relayer balance low', lane: 'm2' }])
  })
})
