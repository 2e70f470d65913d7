/** A process that logs numbered lines and ends: the program behind log-rotation.test.ts. */
import { environment } from '../../../service/environment.ts'
import { runProcess } from '../../../service/process.ts'

const PAUSE_EVERY = 50

await runProcess(
  {
    name: 'lines',
    readConfig(env) {
      const { process, count } = environment(env, 'lines')
      return { ...process(0, 5_000), lines: count('LINES') }
    },
    async compose({ lines }, logger) {
      for (let line = 0; line < lines; line++) {
        logger.info({ line }, 'numbered')
        if (line % PAUSE_EVERY !== 0) continue
        console.error(`beside ${line}`)
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      process.kill(process.pid, 'SIGTERM')
      return { async stop() {} }
    },
  },
  process.env,
)
