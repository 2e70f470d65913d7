import { expect } from 'chai'
import { toBeHex } from 'ethers'
import { describe, it } from 'mocha'
import { createLeases } from '../../../db/leases.ts'
import { createCalls } from '../../../keeper/adapters/calls.ts'
import { createChain, createSigner } from '../../../keeper/adapters/chain.ts'
import { createHeartbeats, HEARTBEAT_AFTER_MS } from '../../../keeper/heartbeat/heartbeat.ts'
import { heartbeatJob } from '../../../keeper/leader/leader-jobs.ts'
import { runLeaderLoop } from '../../../keeper/leader/leader-loop.ts'
import { Delivery } from '../../../keeper/relayer/delivery.ts'
import { LaneWatch } from '../../../keeper/relayer/lane-watch.ts'
import { createRelayerStore } from '../../../keeper/relayer/store.ts'
import { plainKey } from '../../../service/keys/key-source.ts'
import { passTime } from '../../support/chain-faults.ts'
import { perpetual } from '../../support/markets.ts'
import { ChainFixture, laneKey, POLICY, useChain } from '../support/chain-fixture.ts'
import { until } from '../support/keeper-process.ts'
import { NO_METRICS, SILENT_LOGGER } from '../support/market-fixture.ts'

/** The market's clock, its first slot, with batch 1: before it no freeze can be requested. */
const AFTER_FIRST_BATCH = [toBeHex(0, 32), toBeHex(1n << 48n, 32)]

describe('heartbeats', function () {
  this.timeout(60_000)
  const chain = useChain(perpetual)

  async function openJob(key: string) {
    const fixture = await ChainFixture.openOn(chain())
    const { url } = chain().anvil
    const options = { url, chainId: 6343, requestTimeoutMs: 3000, sendTimeoutMs: 3000 }
    const signer = createSigner(6343, plainKey(key))
    const lane = { name: 'heartbeat', relayer: signer.address, chainId: 6343 }
    const relayers = createRelayerStore(fixture)
    await relayers.register(lane, 0)
    const ports = {
      ...{ relayers, signer, chain: createChain(options), clock: fixture.clock, logger: SILENT_LOGGER },
      ...{ metrics: NO_METRICS, confirmations: 0, killPoint: () => {}, policy: POLICY, onChange: () => {} },
      calls: createCalls({ part: 400_000n, order: 150_000n, simple: 300_000n }),
      fee: () => ({ maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1_000_000n }),
      markets: async () => [fixture.spec],
      laneJobs: { passed: () => undefined },
      laneWatch: new LaneWatch({ clock: fixture.clock, stallMs: 60_000 }),
    }
    const delivery = new Delivery(ports, lane)
    const beat = createHeartbeats({ ...ports, delivery }, lane)
    const errors: unknown[] = []
    const pendings: boolean[] = []
    const noted = {
      ...ports,
      logger: { ...SILENT_LOGGER, error: (details: unknown) => errors.push(details) },
      metrics: {
        ...NO_METRICS,
        freezePending: (_: unknown, isPending: boolean) => pendings.push(isPending),
      },
    }
    const start = () => {
      const leases = createLeases(fixture.db, 'the job', 60_000)
      const intervals = { auctionMs: 200, sweepMs: 500, pollMs: 50 }
      const job = heartbeatJob(noted, lane, intervals, () => {})
      return runLeaderLoop({ ...noted, leases, leaseMs: 3_000 }, 'freeze watch', job)
    }
    const fence = await fixture.lease('heartbeat')
    const pass = async () => {
      const progress = await beat.pass(fence)
      await delivery.settled()
      return progress
    }
    return { fixture, pass, start, errors, pendings }
  }

  const heartbeatAt = async (fixture: ChainFixture): Promise<number> =>
    Number((await fixture.trading().windDown()).heartbeatAt)

  it('when a market is silent for an hour, it gets a heartbeat, and none while it is alive', async () => {
    const { fixture, pass } = await openJob(laneKey)
    await pass()
    const first = await heartbeatAt(fixture)
    expect(first).to.be.greaterThan(0)
    fixture.clock.value += HEARTBEAT_AFTER_MS - 60_000
    expect(await pass()).to.equal('idle')
    expect(await heartbeatAt(fixture)).to.equal(first)
    fixture.clock.value += 120_000
    await passTime(chain(), 5_000)
    await pass()
    expect(await heartbeatAt(fixture)).to.be.greaterThan(first)
    expect((await fixture.transactions()).map(({ purpose, status }) => [purpose, status])).to.deep.equal([
      ['heartbeat', 'MINED'],
      ['heartbeat', 'MINED'],
    ])
    await fixture.close()
  })

  it('when a freeze was requested, the next heartbeat voids the request', async () => {
    const { fixture, pass } = await openJob(laneKey)
    await chain().provider.send('anvil_setStorageAt', [fixture.spec.trader, ...AFTER_FIRST_BATCH])
    await (await fixture.trading().connect(chain().admin).requestFreeze()).wait()
    await passTime(chain(), 5_000)
    await pass()
    await passTime(chain(), 2 * 86_400_000)
    const frozen = fixture.trading().connect(chain().admin).freeze.staticCall()
    expect(
      await frozen.then(
        () => 'frozen',
        (error: Error) => error.message,
      ),
    ).to.include('FreezeRequestVoid')
    await fixture.close()
  })

  it('when a freeze is requested while no indexer runs, a heartbeat voids it within 5 s, and the request is logged and counted', async () => {
    const { fixture, start, errors, pendings } = await openJob(laneKey)
    await chain().provider.send('anvil_setStorageAt', [fixture.spec.trader, ...AFTER_FIRST_BATCH])
    const loop = start()
    const market = fixture.trading().connect(chain().admin)
    await until(async () => (await heartbeatAt(fixture)) > 0)
    await passTime(chain(), 5_000)
    await (await market.requestFreeze()).wait()
    const requested = Date.now()
    const { requestedAt } = await market.windDown()
    await until(async () => (await market.windDown()).heartbeatAt > requestedAt)
    const answered = Date.now() - requested
    expect(answered).to.be.below(5_000)
    await until(async () => pendings.at(-1) === false)
    await loop.stop()
    expect(pendings).to.include(true)
    expect(errors).to.deep.equal([{ market_id: 1, requested_at: Number(requestedAt) }])
    await passTime(chain(), 2 * 86_400_000)
    const error = await market.freeze.staticCall().then(
      () => 'frozen',
      (thrown: Error) => thrown.message,
    )
    expect(error).to.include('FreezeRequestVoid')
    await fixture.close()
  })

  it('when the market is halted, it gets its heartbeat all the same', async () => {
    const { fixture, pass } = await openJob(laneKey)
    const market = fixture.trading().connect(chain().admin)
    await (await market.restrictMode(2)).wait()
    await passTime(chain(), 10_000)
    await pass()
    expect(await heartbeatAt(fixture)).to.be.greaterThan(0)
    await fixture.close()
  })

  it('when the heartbeat reverts, it is not repeated at once', async () => {
    const key = `0x${'77'.repeat(32)}`
    const { fixture, pass } = await openJob(key)
    const { address } = createSigner(6343, plainKey(key))
    await chain().provider.send('anvil_setBalance', [address, '0xde0b6b3a7640000'])
    for (let count = 0; count < 3; count++) await pass()
    expect((await fixture.transactions()).map(({ status }) => status)).to.deep.equal(['REVERTED'])
    fixture.clock.value += 700_000
    await pass()
    expect(await fixture.transactions()).to.have.length(2)
    await fixture.close()
  })
})
