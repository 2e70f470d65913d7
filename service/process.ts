/** The life of a process: read the environment, start, run until a signal or a failure, drain, exit. */
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { ConfigError, type Env } from './environment.ts'
import { createLogger, flushLog } from './logger.ts'

export interface RunningProcess {
  /** Rejects if the process can never do its work again. Without it only a signal ends the process. */
  readonly failed?: Promise<never>
  /** Refuses new work, finishes what is in flight, and releases everything. */
  stop(): Promise<void>
}

/** What `runProcess` needs of the configuration. */
interface RunConfig {
  readonly logLevel: string
  /** Bound of a drain. */
  readonly drainMs: number
}

export interface ProcessDefinition<Config extends RunConfig> {
  /** Appears in log lines and error messages. */
  readonly name: string
  /** Throws a ConfigError that names the variable. */
  readonly readConfig: (env: Env) => Config
  /** Resolves once the process serves. */
  readonly compose: (config: Config, logger: Logger) => Promise<RunningProcess>
}

/** Longest wait at the end for a reader of the log. */
const FLUSH_MS = 500

/** Exits with 0 after a signal and a drain; with 1 after an invalid environment, a failure, or a drain beyond its bound. */
export async function runProcess<Config extends RunConfig>(
  definition: ProcessDefinition<Config>,
  env: Env,
): Promise<never> {
  // Otherwise V8 concludes from the first batches or orders that the objects of a request live long, and allocates some of them in the old
  // generation. They hold later ones after their end, and collecting takes several times longer (`bench/README.md`).
  setFlagsFromString('--no-allocation-site-pretenuring')
  const { name, compose } = definition
  const config = configOrExit(definition, env)
  const logger = createLogger(name, config.logLevel)
  // Before the start: a signal that arrives during the start drains what has been started by then.
  const signalled = firstSignal().then((signal) => {
    logger.info({ signal, drain_ms: config.drainMs }, `${name} drains`)
    boundDrain(name, logger, config.drainMs)
  })
  let code = 0
  try {
    const running = await compose(config, logger)
    await Promise.race([signalled, running.failed ?? signalled]).catch((err: unknown) => {
      code = 1
      logger.fatal({ err }, `${name} failed`)
      boundDrain(name, logger, config.drainMs)
    })
    await running.stop()
    logger.info({}, `${name} stopped`)
  } catch (err) {
    code = 1
    logger.fatal({ err }, `${name} failed to start or to stop`)
  }
  await flushLog(FLUSH_MS)
  process.exit(code)
}

/** An invalid environment is the operator's to correct: the message names the variable, and a stack trace would bury it. */
function configOrExit<Config extends RunConfig>(
  { name, readConfig }: ProcessDefinition<Config>,
  env: Env,
): Config {
  try {
    return readConfig(env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    console.error(`${name}: ${error.message}`)
    process.exit(1)
  }
}

/** Later signals change nothing: for one Ctrl-C, npm and the terminal deliver a SIGINT each. */
const firstSignal = (): Promise<NodeJS.Signals> =>
  new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve(signal))
  })

function boundDrain(name: string, logger: Logger, drainMs: number): void {
  setTimeout(() => {
    logger.fatal({ drain_ms: drainMs }, `${name} exceeded its drain bound and exits`)
    process.exit(1)
  }, drainMs).unref()
}
