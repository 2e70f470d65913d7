/** The commands of `clearbatch ops relayer …` on a database of their own. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createDb, createPool, type Db } from '../../db/client.ts'
import { chosenKey } from '../../db/relayers.ts'
import { ACCOUNTS_SHARD } from '../../domain/journal/journal-row.ts'
import { freshDatabase, loginOf } from '../support/postgres.ts'
import { createShard } from '../support/rows/journal.ts'
import { registerRelayer } from '../support/rows/relayers.ts'
import { captureOps } from './support/captured-ops.ts'

const FIRST = `0x${'1'.repeat(40)}`
const SECOND = `0x${'2'.repeat(40)}`
const OTHER = `0x${'3'.repeat(40)}`
const CHAIN_ID = 6343

describe('clearbatch ops relayer', () => {
  let url: string
  let db: Db
  before(async () => {
    url = await freshDatabase()
    db = createDb(createPool({ url, connections: 1, name: 'test' }))
    await db.transaction().execute((tx) => createShard(tx, ACCOUNTS_SHARD))
  })
  after(() => db.destroy())

  const ops = (args: readonly string[], as = url) => captureOps(['relayer', ...args], { DATABASE_URL: as })
  const register = (name: string, relayer: string) =>
    registerRelayer(db, { name, relayer, chainId: CHAIN_ID }, 0)
  const sign = (relayer: string, status: string) =>
    db
      .insertInto('relayer_transactions')
      .values({
        tx_hash: `0x${status}`,
        relayer,
        chain_id: CHAIN_ID,
        nonce: 0,
        purpose: 'nothing',
        raw: '0x',
        status: status as 'BROADCAST',
        error: null,
        signed_at: 0,
        broadcast_at: null,
        block: null,
      })
      .execute()

  it('when no lane has run, show says so', async () => {
    expect((await ops(['show'])).stdout).to.equal('No relayer lane has run yet.\n')
  })

  it('when a lane has changed its key, show names the present one, and when the former one can be removed', async () => {
    await register('m1', FIRST)
    await sign(FIRST, 'BROADCAST')
    await new Promise((resolve) => setTimeout(resolve, 2))
    await register('m1', SECOND)
    await register('m2', OTHER)
    const { stdout } = await ops(['show'])
    expect(stdout).to.match(
      new RegExp(
        [
          '^m1: the first key of the keeper',
          `  ${SECOND}  present; last run .*; open transactions 0, unsettled actions 0`,
          `  ${FIRST}  former, still followed; last run .*; open transactions 1, unsettled actions 0`,
          'm2: the first key of the keeper',
          `  ${OTHER}  present; .*`,
        ].join('\n'),
      ),
    )
    await db.updateTable('relayer_transactions').set({ status: 'MINED' }).execute()
    expect((await ops(['show'])).stdout).to.include(`${FIRST}  former, can be removed;`)
  })

  it('when a key is chosen, it is printed, and written with --send only', async () => {
    const rotation = ['rotate', '--lane', 'm1', '--to', FIRST.toUpperCase().replace('0X', '0x')]
    expect(await ops(rotation)).to.deep.equal({
      code: 0,
      stdout: `m1: chosen ${FIRST} instead of the first key of the keeper\nNothing was written: --send writes it.\n`,
      stderr: '',
    })
    expect(await chosenKey(db, 'm1')).to.equal(null)
    expect((await ops([...rotation, '--send'])).stdout).to.include('Written. Keepers that have the key')
    expect(await chosenKey(db, 'm1')).to.equal(FIRST)
    const back = await ops(['rotate', '--lane', 'm1', '--to', SECOND, '--send'])
    expect(back.stdout).to.include(`m1: chosen ${SECOND} instead of ${FIRST}`)
    expect(await chosenKey(db, 'm1')).to.equal(SECOND)
  })

  it('when the keeper role tries to choose a key, the database refuses', async () => {
    const { code } = await ops(
      ['rotate', '--lane', 'm1', '--to', FIRST, '--send'],
      await loginOf(url, 'keeper'),
    )
    expect(code).not.to.equal(0)
    expect(await chosenKey(db, 'm1')).to.equal(SECOND)
  })

  for (const [args, problem] of [
    [['rotate', '--to', FIRST], '--lane is required'],
    [['rotate', '--lane', 'm1'], '--to is required'],
    [['rotate', '--lane', 'first', '--to', FIRST], '--lane must be m<market_id>, adjust,'],
    [
      ['rotate', '--lane', 'm1', '--to', '0x1'],
      '--to must be an address: 0x and 40 hexadecimal digits; received 0x1',
    ],
    [['rotate', '--lane', 'm1', '--to', OTHER], `received ${OTHER}, which belongs to m2`],
  ] as const)
    it(`when ops relayer gets "${args.join(' ')}", it names the problem and what would be valid`, async () => {
      const { code, stderr } = await ops(args)
      expect(code).not.to.equal(0)
      expect(stderr).to.include(problem)
    })
})
