/** Preloaded into each job of `npm test`: at the end, the process writes its processor time in seconds to the descriptor that `test/run.ts` reads. */
import { writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { ownProcessorTime } from './processor-time.ts'

/** The fourth pipe that `test/run.ts` opens. */
const DESCRIPTOR = 3

if (isMainThread)
  process.on('exit', () => {
    try {
      writeSync(DESCRIPTOR, `${ownProcessorTime()}\n`)
    } catch {
      // The runner has ended and closed the pipe.
    }
  })
