/** A process that does nothing but start, drain and exit, as its environment says: the program behind process.test.ts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { environment } from '../../../service/environment.ts'
import { runProcess } from '../../../service/process.ts'

await runProcess(
  {
    name: 'small',
    readConfig(env) {
      const { process, count, optional } = environment(env, 'small')
      const { logLevel, drainMs } = process(0, 400)
      return {
        logLevel,
        drainMs,
        startMs: count('START_MS', 0),
        /** How long the drain takes. */
        stopMs: count('STOP_MS', 0),
        /** `start`, `run` or `stop`: where the process fails. */
        failAt: optional('FAIL_AT'),
      }
    },
    async compose({ startMs, stopMs, failAt }, logger) {
      const alive = setInterval(() => {}, 1_000)
      logger.info({}, 'small starting')
      await sleep(startMs)
      if (failAt === 'start') throw new Error('the port is taken')
      logger.info({}, 'small started')
      return {
        ...(failAt === 'run' && { failed: Promise.reject(new Error('the chain is another one')) }),
        async stop() {
          if (failAt === 'stop') throw new Error('the database is gone')
          await sleep(stopMs)
          logger.info({}, 'small released everything')
          clearInterval(alive)
        },
      }
    },
  },
  process.env,
)
