/** A keeper that publishes prices and is killed between its writes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { id } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { feedIdOf } from '../../stack/deploy.ts'
import { perpetual } from '../support/markets.ts'
import { ChainFixture, useChain } from './support/chain-fixture.ts'
import { KeeperProcess, until } from './support/keeper-process.ts'

describe('a keeper that is killed while it publishes prices', function () {
  this.timeout(120_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let folder: string
  let keeper: KeeperProcess | null = null

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'clearbatch-prices-'))
    fixture = await ChainFixture.openOn(chain())
  })
  afterEach(async () => {
    await keeper?.kill('SIGKILL')
    await fixture.close()
    rmSync(folder, { recursive: true })
  })

  /** With a price of 1,000 ticks that a single source repeats. */
  async function start(killAt: string): Promise<KeeperProcess> {
    const file = join(folder, 'prices.json')
    const source = { name: 'still', kind: 'walk', first: 100, home: 100, grain: 0.1, volatility: 0 }
    const feed = { market_id: 1, feed_id: feedIdOf(perpetual.marketId), sources: [source] }
    const oracle = fixture.chainSide.shared.oracle
    writeFileSync(file, JSON.stringify({ oracle, threshold: 1, signers: [{ name: 'one' }], feeds: [feed] }))
    const prices = { PRICES_FILE: file, ORACLE_KEYS: JSON.stringify({ one: id('oracle') }) }
    keeper = await KeeperProcess.start(fixture, { ...prices, LEASE_MS: '400', CLEARBATCH_KILL_AT: killAt })
    return keeper
  }

  async function dieAt(point: string): Promise<void> {
    const victim = await start(point)
    expect(await victim.ended(), `${point}: ${victim.output}`).to.deep.equal([null, 'SIGKILL'])
  }

  const reports = async () => (await fixture.db.selectFrom('recent_reports').selectAll().execute()).length

  it('when it is restarted after each kill, every report counts once, and the next process publishes on', async () => {
    await dieAt('after-report-signing')
    expect(await reports(), 'a signed report that was not stored').to.equal(0)
    await dieAt('after-report-storing')
    expect(await reports(), 'a stored report').to.equal(1)
    const survivor = await start('')
    await until(
      async () => (await reports()) > 3,
      () => survivor.output,
    )
    const times = await fixture.db.selectFrom('recent_reports').select('observed_at').execute()
    expect(new Set(times.map(({ observed_at }) => observed_at)).size).to.equal(times.length)
  })
})
