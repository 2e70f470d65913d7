/** The keeper process: start, and stop in order on SIGTERM or SIGINT. */
import { setFlagsFromString } from 'node:v8'
import { compose, createLog } from './compose.ts'
import { readConfig } from './config.ts'

// V8 otherwise learns from the first batches that what a batch makes lives long, and keeps all of it: collecting it takes
// several times longer than clearing (bench/auction.ts).
setFlagsFromString('--no-allocation-site-pretenuring')

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
