/** The keeper process: start, and stop in order on SIGTERM or SIGINT. */
import { compose, createLog } from './compose.ts'
import { readConfig } from './config.ts'

const config = readConfig(process.env)
const log = createLog(config.logLevel)
const keeper = await compose(config)

let stopping = false
async function stop(signal: NodeJS.Signals): Promise<void> {
  if (stopping) return
  stopping = true
  log.info({ signal }, 'keeper stops')
  await keeper.stop()
  process.exit(0)
}

process.on('SIGTERM', (signal) => void stop(signal))
process.on('SIGINT', (signal) => void stop(signal))
