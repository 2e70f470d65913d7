/** A keeper that publishes prices and sets funding rates is killed at every named point on the way: prices and funding stay exact. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { id } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { storeAverages } from '../../db/price-averages.ts'
import { accrue, type FundingRate, HOUR, NO_RATE } from '../../domain/prices/funding.ts'
import { UPDATE_INTERVAL } from '../../domain/prices/funding-plan.ts'
import { addPremium, NO_PREMIUM } from '../../domain/prices/premium.ts'
import type { FundingIndex, Millis } from '../../domain/units.ts'
import { feedIdOf } from '../../stack/deploy.ts'
import { perpetual, rate } from '../support/markets.ts'
import { ChainFixture, useChain } from './support/chain-fixture.ts'
import { expectConsistent } from './support/invariants.ts'
import { KeeperProcess, until } from './support/keeper-process.ts'
import type { Trader } from './support/market-fixture.ts'

const STEPS = 2_000
/** An update that a busy machine mines too late is dropped, and the next one follows half a minute later. */
const PATIENCE_MS = 60_000
const OPEN: readonly string[] = ['QUEUED', 'SIGNED', 'SUBMITTED']
/** From the decision on a funding rate to its transaction. */
const FUNDING_POINTS = [
  ...(['after-funding-decision', 'after-funding-queueing', 'after-reserving', 'after-signing'] as const),
  'after-broadcast',
] as const

describe('a keeper that is killed while it publishes prices and sets funding rates', function () {
  this.timeout(480_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let folder: string
  let keeper: KeeperProcess | null = null
  let alice: Trader
  let bob: Trader

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'clearbatch-prices-'))
    fixture = await ChainFixture.openOn(chain())
    alice = await fixture.depositor('alice')
    bob = await fixture.depositor('bob')
    await setPremium()
  })
  afterEach(async () => {
    await keeper?.kill('SIGKILL')
    await expectConsistent(fixture)
    await fixture.close()
    rmSync(folder, { recursive: true })
  })

  /** Of the hour before now: the book of this test is empty. */
  async function setPremium(): Promise<void> {
    let premium = NO_PREMIUM
    for (let back: number = HOUR; back >= 0; back -= 5_000)
      premium = addPremium(premium, rate('0.01'), (Date.now() - back) as Millis)
    const averages = { basis: { value: 0n, at: 0 as Millis }, premium }
    await fixture.db.transaction().execute((tx) => storeAverages(tx, perpetual.marketId, averages))
  }

  /** With a price of 1,000 ticks that a single source repeats. */
  async function start(killAt: string, fundingMs = 400): Promise<KeeperProcess> {
    const file = join(folder, 'prices.json')
    const source = { name: 'still', kind: 'walk', first: 100, home: 100, grain: 0.1, volatility: 0 }
    const feed = { market_id: 1, feed_id: feedIdOf(perpetual.marketId), sources: [source] }
    const oracle = fixture.chainSide.shared.oracle
    writeFileSync(file, JSON.stringify({ oracle, threshold: 1, signers: [{ name: 'one' }], feeds: [feed] }))
    keeper = await KeeperProcess.start(fixture, {
      ...{ PRICES_FILE: file, ORACLE_KEYS: JSON.stringify({ one: id('oracle') }) },
      ...{
        FUNDING_INTERVAL_MS: `${fundingMs}`,
        LEASE_MS: '400',
        STUCK_AFTER_MS: '30000',
        CLEARBATCH_KILL_AT: killAt,
      },
    })
    return keeper
  }

  async function dieAt(point: string): Promise<void> {
    let isOver = false
    const victim = await start(point)
    const ended = victim.ended().finally(() => {
      isOver = true
    })
    await until(
      async () => {
        await fixture.follow()
        return isOver
      },
      () => `${point}: ${victim.output}`,
      PATIENCE_MS,
    )
    expect(await ended, point).to.deep.equal([null, 'SIGKILL'])
  }

  const reports = async () => (await fixture.db.selectFrom('recent_reports').selectAll().execute()).length
  const minedActions = async () => (await fixture.actions()).filter(({ status }) => status === 'MINED')
  const updates = async () => (await minedActions()).filter(({ kind }) => kind === 'update_funding')
  const margin = async (trader: Trader): Promise<bigint> =>
    (await fixture.trading().position(trader.wallet.address)).margin

  it('when it is restarted after each kill, every report and every update counts once, and funding is exact to the wei', async () => {
    await dieAt('after-report-signing')
    expect(await reports(), 'a signed report that was not stored').to.equal(0)
    await dieAt('after-report-storing')
    expect(await reports(), 'a stored report').to.equal(1)

    await fixture.place({ by: alice, side: 'LONG', steps: STEPS, limit: 1000 })
    await fixture.place({ by: bob, side: 'SHORT', steps: STEPS, limit: 1000 })
    await dieAt('after-batch-commit')
    for (const point of FUNDING_POINTS) await dieAt(point)

    const survivor = await start('')
    const before = (await updates()).length
    await until(
      async () => {
        await fixture.follow()
        const all = await updates()
        return all.length >= before + 3 && (await fixture.position(alice)) === BigInt(STEPS)
      },
      () => survivor.output,
      PATIENCE_MS,
    )
    await survivor.kill('SIGTERM')
    // The last one queues no further update.
    const last = await start('', UPDATE_INTERVAL)
    await until(
      async () => {
        await fixture.follow()
        return (await fixture.actions()).every(({ status }) => !OPEN.includes(status))
      },
      () => last.output,
      PATIENCE_MS,
    )

    const mined = await fixture.rows('funding_updated')
    expect(mined.length).to.equal((await updates()).length)
    const ids = mined.map(({ action_id }) => action_id)
    expect(ids).to.deep.equal([...new Set(ids)])
    const { fundingIndex } = await fixture.trading().lastReference()
    expect(await replayedIndex()).to.equal(fundingIndex)
    expect(fundingIndex).to.be.greaterThan(0n)
    const [paid, received] = [await margin(alice), await margin(bob)]
    const opened = await indexAtOpening()
    expect(paid - received, 'longs pay what shorts get').to.equal(
      -2n * BigInt(STEPS) * (fundingIndex - opened),
    )
    expect(await fixture.mode()).to.equal('open')
  })

  /** Independently of the exchange: each rate from its update to the next, truncated at every action. */
  async function replayedIndex(): Promise<bigint> {
    let [index, running, from] = [0n as FundingIndex, NO_RATE as FundingRate, 0 as Millis]
    for (const { kind, as_of, payload } of await minedActions()) {
      const asOf = as_of as Millis
      index = accrue(index, running, from, asOf)
      from = asOf
      if (kind !== 'update_funding') continue
      const { rate: set, valid_until } = payload as unknown as { rate: string; valid_until: number }
      running = {
        rate: BigInt(set) as FundingRate['rate'],
        validFrom: asOf,
        validUntil: valid_until as Millis,
      }
    }
    return index
  }

  async function indexAtOpening(): Promise<bigint> {
    const [settled] = await fixture.rows('part_settled')
    return BigInt(settled.funding_index)
  }
})
