/** A process that follows the journal from the newest checkpoint to its head, stores the state there as the next checkpoint, and ends. */
import { createPool, LOOKUP_SETTINGS } from '../../../db/client.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { environment } from '../../../service/environment.ts'
import { createLogger, flushLog } from '../../../service/logger.ts'
import { recoverState, writeCheckpoint } from '../checkpoints.ts'
import { createFollower } from '../follower.ts'
import { followingMachine } from '../following-machine.ts'
import { createJournal } from '../store.ts'

const { database, text } = environment(process.env, 'engine checkpoint')
const logger = createLogger('engine checkpoint', text('LOG_LEVEL', 'info'))
const pool = createPool({
  url: database(),
  connections: 1,
  name: 'engine checkpoint',
  settings: LOOKUP_SETTINGS,
})

async function run(): Promise<boolean> {
  const { applied, number } = await recoverState(pool, logger)
  const follower = createFollower(followingMachine(applied), createJournal<Entry>(pool), logger, {
    head: number,
  })
  while ((await follower.advance()).length > 0);
  if (follower.fault !== null) return false
  if (follower.head === number) return true
  const isComplete = await writeCheckpoint(pool, { applied, number: follower.head }, () => true)
  logger.info({ number: follower.head, rows: applied.position(), isComplete }, 'checkpoint written')
  return isComplete
}

const isDone = await run().catch((err: unknown) => {
  logger.error({ err }, 'no checkpoint was written')
  return false
})
await pool.end()
await flushLog(500)
process.exitCode = isDone ? 0 : 1
