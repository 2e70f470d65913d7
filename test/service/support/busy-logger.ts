/** A process that logs much more than its buffer holds and reports to its parent that it is alive: the program behind log-writer.test.ts. */
import { environment } from '../../../service/environment.ts'
import { droppedLogLines } from '../../../service/logger.ts'
import { runProcess } from '../../../service/process.ts'

const TEXT = 'x'.repeat(10_000)

await runProcess(
  {
    name: 'busy',
    readConfig: (env) => environment(env, 'busy').process(0, 2_000),
    async compose(_config, logger) {
      let isQuiet = false
      process.on('message', () => {
        isQuiet = true
      })
      const timer = setInterval(() => {
        for (let line = 0; line < 50 && !isQuiet; line++) logger.info({ text: TEXT }, 'much')
        process.send?.({ dropped: droppedLogLines() })
      }, 5)
      return {
        async stop() {
          clearInterval(timer)
          process.disconnect()
        },
      }
    },
  },
  process.env,
)
