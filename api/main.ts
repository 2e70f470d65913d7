/** The api process: `node api/main.ts`. */
import { ConfigError } from '../service/environment.ts'
import { type Api, compose } from './compose.ts'
import { readConfig } from './config.ts'

async function stop({ log, stop }: Api, signal: string): Promise<void> {
  log.info({ signal }, 'stopping')
  try {
    await stop()
    process.exit(0)
  } catch (error) {
    log.error({ err: error }, 'stop failed')
    process.exit(1)
  }
}

async function main(): Promise<void> {
  const config = readConfig(process.env)
  const api = await compose(config)
  await api.app.listen({ host: config.host, port: config.port })
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => void stop(api, signal))
}

main().catch((error: unknown) => {
  console.error(error instanceof ConfigError ? error.message : error)
  process.exit(1)
})
