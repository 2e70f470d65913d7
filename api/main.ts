/** Starts the api process. */
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

await runProcess(
  {
    name: 'api',
    readConfig,
    async compose(config, logger) {
      const api = await compose(config, logger)
      await api.app.listen({ ...config.public })
      return api
    },
  },
  process.env,
)
