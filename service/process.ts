/** Lifecycle of a process: read the environment, start, run until a signal or a failure, drain, exit. */
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { reportCertificates } from './certificates.ts'
import { readWhole } from './config-error.ts'
import { ConfigError, type Env } from './environment.ts'
import { createLogger, flushLog } from './logger.ts'

export interface RunningProcess {
  /** Rejects when the process can no longer do its work. If absent, only a signal ends the process. */
  readonly failed?: Promise<never>
  /** Refuses new work, completes work in flight, and releases all resources. */
  stop(): Promise<void>
}

/** Configuration that `runProcess` uses. */
interface RunConfig {
  readonly logLevel: string
  /** Size beyond which a log file is rotated. */
  readonly logFileBytes?: number
  /** Longest drain. */
  readonly drainMs: number
}

export interface ProcessDefinition<Config extends RunConfig> {
  /** Name in log lines and error messages. */
  readonly name: string
  /** Reads the configuration. Throws a ConfigError that names the variable; `readWhole` collects the errors. */
  readonly readConfig: (env: Env) => Config
  /** Starts the process; resolves once it serves. */
  readonly compose: (config: Config, logger: Logger) => Promise<RunningProcess>
}

/** Longest wait for the log to be written at the end. */
const FLUSH_MS = 500

/**
 * Exits with 0 after a signal and a drain; with 1 after an invalid environment, a failure, or a drain beyond its limit.
 */
export async function runProcess<Config extends RunConfig>(
  definition: ProcessDefinition<Config>,
  env: Env,
): Promise<never> {
  // Otherwise V8 allocates some request objects in the old generation, where they keep later objects alive: a public
  // read then takes up to twice the processor time.
  setFlagsFromString('--no-allocation-site-pretenuring')
  const { name, compose } = definition
  const config = configOrExit(definition, env)
  const logger = createLogger(name, config.logLevel, config.logFileBytes)
  reportCertificates(logger)
  // Registered before the start, so that a signal during the start drains every component started by then.
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
    if (err instanceof ConfigError) console.error(`${name}: ${err.message}`)
    else logger.fatal({ err }, `${name} failed to start or to stop`)
  }
  await flushLog(FLUSH_MS)
  process.exit(code)
}

/**
 * The operator corrects an invalid environment: a line names each wrong variable, and a stack trace would hide them.
 */
function configOrExit<Config extends RunConfig>(
  { name, readConfig }: ProcessDefinition<Config>,
  env: Env,
): Config {
  try {
    return readWhole(() => readConfig(env))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    console.error(`${name}: ${error.message}`)
    process.exit(1)
  }
}

/** Later signals are ignored: for one Ctrl-C, both npm and the terminal send SIGINT. */
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
