/** Checkpoints on Postgres: a start must reach the owner's state, whatever a writer of checkpoints has left behind. */

import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, beforeEach, describe, it } from 'mocha'
import type pg from 'pg'
import { createPool } from '../../../db/client.ts'
import { newestCheckpoints } from '../../../db/engine-checkpoints.ts'
import { AppliedRows } from '../../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { createState } from '../../../domain/exchange/state.ts'
import { STATE_VERSION } from '../../../domain/exchange/state-version.ts'
import { recoverState, writeCheckpoint } from '../../../keeper/engine/checkpoints.ts'
import type { Logger } from '../../../service/logger.ts'
import { anySteps } from '../../domain/exchange/support/any-steps.ts'
import { commandsOf } from '../../domain/exchange/support/journals.ts'
import { freshDatabase } from '../../support/postgres.ts'

const always = (): boolean => true

function stateAfter(entries: readonly Entry[]): AppliedRows {
  const applied = new AppliedRows(createState())
  for (const entry of entries) applied.apply(entry)
  applied.forget(applied.position())
  return applied
}

describe('checkpoints of the engine', () => {
  let pool: pg.Pool
  let errors: string[]
  const logger: Logger = {
    debug() {},
    info() {},
    warn() {},
    error: (_, message) => void errors.push(message),
  }
  const [sample] = fc.sample(anySteps, { numRuns: 1, seed: 7 })
  const rows = commandsOf(sample ?? []).flat()

  before(async () => {
    pool = createPool({ url: await freshDatabase(), connections: 4, name: 'engine-test' })
  })
  beforeEach(async () => {
    errors = []
    await pool.query('delete from engine_checkpoints')
  })
  after(() => pool.end())

  const write = (count: number): Promise<boolean> =>
    writeCheckpoint(pool, { applied: stateAfter(rows.slice(0, count)), number: count }, always)

  it('when a start loads a checkpoint and the rows after it, its state equals that of the owner', async () => {
    await fc.assert(
      fc.asyncProperty(anySteps, fc.double({ min: 0, max: 1, noNaN: true }), async (steps, share) => {
        await pool.query('delete from engine_checkpoints')
        const entries = commandsOf(steps).flat()
        const count = Math.floor(entries.length * share)
        const applied = stateAfter(entries.slice(0, count))
        expect(await writeCheckpoint(pool, { applied, number: count }, always)).to.equal(true)
        const { applied: recovered, number } = await recoverState(pool, logger)
        expect([number, recovered.position(), recovered.time()]).to.deep.equal([
          count,
          applied.position(),
          applied.time(),
        ])
        for (const entry of entries.slice(count)) recovered.apply(entry)
        expect(recovered.digest()).to.equal(stateAfter(entries).digest())
      }),
      { numRuns: 15 },
    )
    expect(errors).to.deep.equal([])
  })

  it('when there is no checkpoint, a start begins before the first row', async () => {
    const { applied, number } = await recoverState(pool, logger)
    expect([applied.position(), number]).to.deep.equal([0, 0])
  })

  it('when more are written, the two newest are kept with their chunks alone', async () => {
    for (const count of [5, 6, 7, 8]) expect(await write(count)).to.equal(true)
    expect((await newestCheckpoints(pool, STATE_VERSION)).map(({ number }) => number)).to.deep.equal([8, 7])
    const chunks = await pool.query('select distinct checkpoint_id from engine_checkpoint_chunks')
    expect(chunks.rows).to.have.length(2)
  })

  it('when its writer ends before the last chunk, it does not count and the next one removes it', async () => {
    await write(5)
    let left = 3
    const abandoned = { applied: stateAfter(rows), number: rows.length }
    expect(await writeCheckpoint(pool, abandoned, () => left-- > 0)).to.equal(false)
    expect((await recoverState(pool, logger)).number).to.equal(5)
    await write(6)
    expect((await pool.query('select * from engine_checkpoints')).rows).to.have.length(2)
  })

  for (const [name, damage] of Object.entries({
    'a chunk is missing':
      'delete from engine_checkpoint_chunks where checkpoint_id = (select max(checkpoint_id) from engine_checkpoints) and place = 1',
    'a chunk occurs twice': `insert into engine_checkpoint_chunks (checkpoint_id, place, table_no, bytes)
      select checkpoint_id, (select max(place) + 1 from engine_checkpoint_chunks c where c.checkpoint_id = o.checkpoint_id), table_no, bytes
      from engine_checkpoint_chunks o where checkpoint_id = (select max(checkpoint_id) from engine_checkpoints) and place = 0`,
    'a byte differs': `update engine_checkpoint_chunks set bytes = set_byte(bytes, 8, 255 - get_byte(bytes, 8))
      where checkpoint_id = (select max(checkpoint_id) from engine_checkpoints) and place = 1`,
  })) {
    it(`when ${name} in the newest, a start raises an alarm and uses the one before`, async () => {
      await write(5)
      await write(9)
      await pool.query(damage)
      expect((await recoverState(pool, logger)).number).to.equal(5)
      expect(errors).to.deep.equal(['checkpoint cannot be loaded; the one before is used'])
    })
  }

  it('when a checkpoint is of another version of the state, a start does not load it', async () => {
    await write(5)
    await pool.query('update engine_checkpoints set state_version = state_version + 1')
    expect((await recoverState(pool, logger)).number).to.equal(0)
  })
})
