import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { unpackInputs } from '../../db/batch-inputs.ts'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { toJson } from '../../db/json.ts'
import { createMigrator } from '../../db/migrator.ts'
import { dataDirAt } from '../../stack/data-dir.ts'
import { startPostgres } from '../../stack/postgres.ts'
import { type Stack, startStack } from '../../stack/stack.ts'
import { differencesOf, nearOracle, newestProofs, trade, traderOn } from './support/stack.ts'

/** The newest migration of the version before this one. */
const PREVIOUS_SCHEMA = '0009-lean-reads'

describe('a data directory of the previous version', function () {
  this.timeout(120_000)
  const dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-upgrade-'))
  let running: Stack | undefined
  let restingId: string
  /** Batches of the previous version. */
  let tradedBefore = 0
  const start = async (): Promise<Stack> => {
    running = await startStack({ port: 0, dataDir, fresh: false, bots: false, backstop: false }, () => {})
    return running
  }
  const stop = async (): Promise<void> => {
    await running?.stop()
    running = undefined
  }

  before(async () => {
    const stack = await start()
    const [alice, bob] = [traderOn(stack, 0), traderOn(stack, 1)]
    const price = await nearOracle(alice, 1, -20_000)
    const resting = await alice.orders.place({ marketId: 1, side: 'LONG', price, quantity: '0.02' })
    restingId = resting.order.order_id
    await trade(alice, bob, { marketId: 1, price: await nearOracle(alice, 1), quantity: '0.01' })
    await stop()
    await migrateTo(PREVIOUS_SCHEMA)
  })
  after(async () => {
    await stop()
    rmSync(dataDir, { recursive: true, force: true })
  })

  async function migrateTo(migration: string): Promise<void> {
    const postgres = await startPostgres({ dir: dataDirAt(dataDir).postgres })
    const db = createDb(createPool({ url: postgres.url, connections: 1, name: 'upgrade test' }))
    await unpackAll(db)
    const { error } = await createMigrator(db).migrateTo(migration)
    await db.destroy()
    await postgres.stop()
    if (error) throw error
  }

  /** Stores inputs as JSON, as the previous version did. The way back of the migrations deletes packed inputs, and with them the proof. */
  async function unpackAll(db: Db): Promise<void> {
    const batches = await db
      .selectFrom('batches')
      .select(['market_id', 'batch_id', 'inputs'])
      .where('inputs', 'is not', null)
      .execute()
    for (const { market_id, batch_id, inputs } of batches)
      await db
        .updateTable('batches')
        .set({ inputs: Buffer.from(toJson(unpackInputs(inputs as Buffer))) })
        .where('market_id', '=', market_id)
        .where('batch_id', '=', batch_id)
        .execute()
    tradedBefore = batches.length
  }

  it('when its contracts have the code of this version, the next start migrates its database and keeps orders, positions and proofs', async () => {
    const stack = await start()
    const [alice, bob] = [traderOn(stack, 0), traderOn(stack, 1)]
    expect((await alice.orders.get(restingId)).status).to.equal('OPEN')
    expect((await alice.account.positions({ marketId: 1 }))[0]?.size).to.be.closeTo(0.01, 1e-9)
    const price = await nearOracle(alice, 1)
    const { buy } = await trade(alice, bob, { marketId: 1, price, quantity: '0.01' })
    expect(buy.status).to.equal('FILLED')
    expect(tradedBefore).to.be.above(0)
    const { verified } = await newestProofs(stack)
    expect(verified).to.be.above(tradedBefore)
    expect(await differencesOf(stack)).to.deep.equal([])
  })

  it('when its contracts have other code, the next start refuses and names --fresh', async () => {
    const { provider, file } = running as Stack
    const bank = file.contracts.margin_bank
    const code = await provider.getCode(bank)
    const changed = code.replace(/^0x../, '0xfe')
    await provider.send('anvil_setCode', [bank, changed])
    await stop()
    const message = await start().then(
      () => 'it started',
      (error: Error) => error.message,
    )
    expect(message).to.include(`MarginBank at ${bank} has code with hash 0x`).and.to.include('--fresh')
  })
})
