/**
 * Preloaded into a command: kills its process at a write of its state file, as `kill -9` would. `CRASH_AT` is `before 2` or `after 2`: around
 * the second write. `CLOCK_AHEAD_MS` is the error of the machine's clock.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const { CRASH_AT, CLOCK_AHEAD_MS = '0' } = process.env
const { renameSync } = fs
const { now } = Date
let writes = 0

Date.now = () => now() + Number(CLOCK_AHEAD_MS)
fs.renameSync = (from, to) => {
  if (!String(to).endsWith('twap.json')) {
    renameSync(from, to)
    return
  }
  writes++
  if (CRASH_AT === `before ${writes}`) process.kill(process.pid, 'SIGKILL')
  renameSync(from, to)
  if (CRASH_AT === `after ${writes}`) process.kill(process.pid, 'SIGKILL')
}
syncBuiltinESMExports()
