/** A process whose dependencies use stderr: it warns at an interval, and fails on a message of its parent. The parent reads the IPC channel only. */
import { environment } from '../../../service/environment.ts'
import { runProcess } from '../../../service/process.ts'

await runProcess(
  {
    name: 'warning',
    readConfig: (env) => environment(env, 'warning').process(0, 2_000),
    async compose() {
      const failures: Record<string, () => void> = {
        throw: () => {
          throw new Error('thrown by a listener')
        },
        reject: () => void Promise.reject(new Error('rejected without a listener')),
      }
      process.on('message', (message) => setImmediate(() => failures[String(message)]?.()))
      const timer = setInterval(() => {
        for (let count = 0; count < 20; count++) process.emitWarning('x'.repeat(10_000))
        process.send?.('alive')
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
