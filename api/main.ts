/** Starts the api process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { engineConnector } from '../keeper/engine/link/connect.ts'
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

await runProcess(
  {
    name: 'api',
    readConfig,
    async compose(config, logger) {
      const connect = await engineConnector(config, logger)
      const link = connect('api')
      const api = await compose(config, logger, link.engine)
      const { host, port } = config.public
      await api.app.listen({ host, port })
      return {
        async stop() {
          api.announceStop()
          await sleep(config.drainNoticeMs)
          await api.stop()
          await link.close()
        },
      }
    },
  },
  process.env,
)
