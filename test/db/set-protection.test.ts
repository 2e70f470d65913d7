/** `clearbatch db set-protection` as a process, on a database of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { PROTECTION_NOTICE } from '../../domain/market/price-protection.ts'
import { systemClockWrongBy } from '../keeper/support/keeper-process.ts'
import { binary, e18, perpetual } from '../support/markets.ts'
import { freshDatabase } from '../support/postgres.ts'
import { listMarket } from '../support/rows/markets.ts'
import { ServedEngine } from '../support/served-engine.ts'

describe('clearbatch db set-protection', () => {
  let url: string
  let db: Db
  let served: ServedEngine
  before(async () => {
    url = await freshDatabase()
    db = createDb(createPool({ url, connections: 1, name: 'test' }))
    await listMarket(db, perpetual)
    await listMarket(db, binary)
    served = await ServedEngine.start(db)
  })
  after(async () => {
    await served.stop()
    await db.destroy()
  })

  async function set(market: string, protection: string, as = url, options: Record<string, string> = {}) {
    const args = ['cli/main.ts', 'db', 'set-protection', '--market', market, '--protection', protection]
    const env = { ...process.env, DATABASE_URL: as, ...served.env, ...options }
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (data) => {
        output[name] += data
      })
    const [code] = await once(child, 'close')
    return { code, ...output }
  }

  const stored = (marketId: number) =>
    db
      .selectFrom('markets')
      .select(['price_protection', 'next_price_protection', 'next_price_protection_at'])
      .where('market_id', '=', marketId)
      .executeTakeFirstOrThrow()
  const rows = async (shard: string) =>
    (await db.selectFrom('journal').select('row').where('shard', '=', shard).orderBy('seq').execute())
      .map(({ row }) => row)
      .filter(({ kind }) => kind === 'protection_announced')

  it('when a width is valid, it is announced for exactly a day ahead and written to the journal', async () => {
    const start = Date.now()
    const { code, stdout, stderr } = await set('BTC-PERP', '0.02')
    expect(stderr).to.equal('')
    expect(code).to.equal(0)
    const market = await stored(1)
    expect(market).to.include({ price_protection: e18('0.01'), next_price_protection: e18('0.02') })
    const at = (market.next_price_protection_at as number) - PROTECTION_NOTICE
    expect(at).to.be.within(start, Date.now())
    expect(stdout).to.equal(
      `BTC-PERP: price protection 0.01 in force, announced 0.02 from ${new Date(at + PROTECTION_NOTICE).toISOString()} on\n`,
    )
    expect(await rows('m1')).to.deep.equal([
      {
        ...{ kind: 'protection_announced', at, price_protection: e18('0.01').toString() },
        next_price_protection: e18('0.02').toString(),
        next_price_protection_at: at + PROTECTION_NOTICE,
      },
    ])
  })

  it('when another width was announced and is not in force, it is replaced', async () => {
    expect((await set('BTC-PERP', '0.015')).code).to.equal(0)
    expect(await stored(1)).to.include({
      ...{ price_protection: e18('0.01'), next_price_protection: e18('0.015') },
    })
    expect(await rows('m1')).to.have.length(2)
  })

  it('when the clock of the machine is two days ahead, the notice starts at the time of the database', async () => {
    expect((await set('BTC-PERP', '0.03', url, systemClockWrongBy(2 * PROTECTION_NOTICE))).code).to.equal(0)
    const market = await stored(1)
    // The width announced before is not in force yet, and is replaced.
    expect(market).to.include({ price_protection: e18('0.01'), next_price_protection: e18('0.03') })
    expect(market.next_price_protection_at).to.be.at.most(Date.now() + PROTECTION_NOTICE)
  })

  for (const [market, protection, problem] of [
    [
      'BTC-PERP',
      '0',
      '--protection must be above 0 and at most 0.1, with up to 18 decimals, for a perpetual, not 0',
    ],
    ['BTC-PERP', '0.11', '--protection must be above 0 and at most 0.1'],
    ['BTC-PERP', '0.0000000000000000001', 'with up to 18 decimals'],
    ['ELECTION-YES', '0.21', '--protection must be above 0 and at most 0.2'],
    ['BTC-PERP', '-0.01', "Option '--protection' argument is ambiguous"],
    ['BTC-PERP', '1 %', '--protection must be a decimal number, not 1 %'],
    ['ETH-PERP', '0.02', '--market must be one of BTC-PERP, ELECTION-YES, not ETH-PERP'],
  ] as const) {
    it(`when the arguments are ${market} ${protection}, it prints the valid values and exits with 2`, async () => {
      const before = await stored(1)
      const { code, stdout, stderr } = await set(market, protection)
      expect(code).to.equal(2)
      expect(stdout).to.equal('')
      expect(stderr)
        .to.include(problem)
        .and.to.match(/^[^\n]*\n$/)
      expect(await stored(1)).to.deep.equal(before)
      expect(await rows('m3')).to.deep.equal([])
    })
  }
})
