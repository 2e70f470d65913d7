/** Starts the keeper process. */
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'
import { engineConnector } from './engine/link/connect.ts'

await runProcess(
  {
    name: 'keeper',
    readConfig,
    compose: async (config, logger) => compose(config, logger, await engineConnector(config, logger)),
  },
  process.env,
)
