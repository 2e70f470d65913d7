/** Processes are restarted, upgraded and downgraded one after another while orders flow. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { newestMigration } from '../../db/migrator.ts'
import { PATIENCE, waitFor } from '../support/patience.ts'
import { BalancedApis } from './support/balanced-apis.ts'
import { CONTRACTION, createNextVersion, EXPANSION, type NextVersion } from './support/next-version.ts'
import { OrderFlow } from './support/order-flow.ts'
import { RollingStack } from './support/rolling.ts'
import { differencesOf } from './support/stack.ts'

const ENV = {
  DRAIN_NOTICE_MS: '1000',
  // The bounds of a quiet machine, times the patience of tests: a slow machine must not refuse orders.
  CHAIN_MAX_AGE_MS: `${2_500 * PATIENCE}`,
  ORACLE_MAX_AGE_MS: `${10_000 * PATIENCE}`,
}
/** A few commands between two steps show that both versions serve. */
const COMMANDS = 6

/** The standby becomes the owner when the old owner drains. Apis come last: they admit what only the later version writes. */
const ORDER = ['engine standby', 'engine', 'indexer', 'indexer 2', 'keeper', 'keeper 2', 'api', 'api 2']
const BACK = ['api 2', 'keeper 2', 'indexer 2', 'engine standby', 'engine']

const run = promisify(execFile)

describe('an exchange whose processes are replaced while orders flow', function () {
  this.timeout(600_000)
  let rolling: RollingStack
  let next: NextVersion
  let apis: BalancedApis
  let flow: OrderFlow

  before(async () => {
    next = createNextVersion()
    rolling = await RollingStack.start({ change: (spec) => ({ ...spec, env: { ...spec.env, ...ENV } }) })
    apis = new BalancedApis(rolling.apis)
    flow = new OrderFlow(rolling.stack, apis)
    await moreCommands()
  })
  after(async () => {
    await flow?.stop()
    await apis?.stop()
    await rolling?.stop()
    next?.remove()
  })

  async function moreCommands(): Promise<void> {
    const enough = flow.acknowledged + COMMANDS
    await waitFor(
      async () => flow.acknowledged,
      (count) => count >= enough,
    )
  }

  async function replaceAll(names: readonly string[], folder?: string): Promise<void> {
    for (const name of names) {
      await rolling.replace(name, folder)
      await moreCommands()
    }
  }

  const migrate = async (...flags: readonly string[]): Promise<string> => {
    const env = { ...process.env, DATABASE_URL: rolling.stack.postgres.url }
    const { stdout } = await run(
      process.execPath,
      [join(next.folder, 'cli/main.ts'), 'db', 'migrate', ...flags],
      { env },
    )
    return stdout
  }

  function expectNothingRefused(): void {
    expect({ failures: flow.failures, refusals: apis.refusals }).to.deep.equal({ failures: [], refusals: [] })
  }

  it('when each is restarted, no command is refused and every drain ends within ten seconds', async () => {
    await replaceAll(ORDER)
    expectNothingRefused()
  })

  it('when the next version has migrated the database, the processes of this version go on and can be restarted', async () => {
    expect(await migrate())
      .to.include(`has schema ${EXPANSION}`)
      .and.to.include(`--contract applies ${CONTRACTION}`)
    expect(await newestMigration(rolling.stack.db)).to.equal(EXPANSION)
    await replaceAll(['api 2', 'engine standby'])
    expectNothingRefused()
  })

  it('when each is upgraded to the next version, no command is refused', async () => {
    await replaceAll(ORDER, next.folder)
    expectNothingRefused()
  })

  it('when each is taken back before the next version has written a new row, no command is refused', async () => {
    await replaceAll(BACK)
    await replaceAll(BACK.toReversed(), next.folder)
    expectNothingRefused()
  })

  it('when the next version writes rows of a new version, engine and indexer of this version stop and name them', async () => {
    flow.builder = 'rolling'
    await moreCommands()
    await rolling.end('indexer 2')
    rolling.begin('indexer 2')
    await rolling.end('engine standby')
    rolling.begin('engine standby')
    const reason = 'a row of order_placed has at most version 4, received 5'
    await waitFor(
      async () => rolling.logOf('engine standby'),
      (log) => log.includes(reason) && log.includes('start that version of the engine'),
    )
    await rolling.startAgain('engine standby', next.folder)
    await rolling.end('indexer')
    await waitFor(
      async () => rolling.logOf('indexer 2'),
      (log) => log.includes(reason) && log.includes('start a later version of the indexer'),
    )
    for (const name of ['indexer 2', 'indexer']) await rolling.startAgain(name, next.folder)
    await moreCommands()
    expectNothingRefused()
  })

  it('when the contract step has run, a process of this version refuses the database and names the step', async () => {
    expect(await migrate('--contract')).to.include(`has schema ${CONTRACTION}`)
    await moreCommands()
    await rolling.end('api 2')
    rolling.begin('api 2')
    await waitFor(
      async () => rolling.logOf('api 2'),
      (log) => log.includes(`the database has schema ${CONTRACTION}, this version has only`),
    )
    await rolling.startAgain('api 2', next.folder)
    expectNothingRefused()
  })

  it('when all is done, every acknowledged command is there once, and the books are exact', async () => {
    await flow.stop()
    expect(await flow.differences()).to.deep.equal([])
    expect(await differencesOf(rolling.stack)).to.deep.equal([])
    // A process that exceeds its bound, ten seconds, ends with 1.
    expect(rolling.replaced.filter(({ end }) => end !== 0)).to.deep.equal([])
  })
})
