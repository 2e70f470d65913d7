/** Starts the indexer process. */

import { engineConnector } from '../keeper/engine/link/connect.ts'
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

await runProcess(
  {
    name: 'indexer',
    readConfig,
    compose: async (config, logger) =>
      // The configuration has an engine, so there is a connector.
      compose(config, logger, await engineConnector(config, logger)),
  },
  process.env,
)
