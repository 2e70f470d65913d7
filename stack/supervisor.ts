/** Keeps child processes running: starts them, restarts them with growing pauses, and stops them in order. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KILL_AFTER_MS } from '../service/environment.ts'
import { LOG_FILE_BYTES } from '../service/log-rotation.ts'
import { makeFolder, openOutput } from './data-dir.ts'
import { StackError } from './options.ts'
import type { ProcessSpec } from './process-spec.ts'

export interface SupervisorOptions {
  readonly logDir: string
  readonly report: (line: string) => void
}

export interface Supervisor {
  start(spec: ProcessSpec): Managed
  /** Stops all processes, the last started first, and waits for each. */
  stop(): Promise<void>
}

export interface Managed {
  readonly name: string
  /** Null if the process serves no HTTP. */
  readonly url: string | null
  /** Null while the process is not running. */
  pid(): number | null
  ready(timeoutMs?: number): Promise<void>
  /** Stops it in order and does not restart it. */
  stop(): Promise<void>
  /** Ends it by this signal and starts it again. `env` is added for this start only. */
  restart(signal: NodeJS.Signals, env?: Readonly<Record<string, string>>): Promise<void>
  /** Resolves with the signal or exit code when the process ends next. */
  nextEnd(): Promise<NodeJS.Signals | number | null>
}

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000
/** After a run of at least this length, the next restart waits only the first pause. */
const STEADY_MS = 30_000
const REPOSITORY = fileURLToPath(new URL('..', import.meta.url))
/** Compiled modules: processes that start again need half of the processor time. */
const COMPILE_CACHE = join(REPOSITORY, 'node_modules/.cache/compiled')
const DEFAULTS = { NODE_COMPILE_CACHE: COMPILE_CACHE, LOG_FILE_BYTES: `${LOG_FILE_BYTES}` }
const PARENT_WATCH = new URL('parent-watch.ts', import.meta.url).href

export function createSupervisor(options: SupervisorOptions): Supervisor {
  makeFolder(options.logDir)
  const processes: Managed[] = []
  return {
    start(spec) {
      const managed = manage(spec, options)
      processes.push(managed)
      return managed
    },
    async stop() {
      for (const managed of processes.toReversed()) await managed.stop()
    },
  }
}

function manage(spec: ProcessSpec, { logDir, report }: SupervisorOptions): Managed {
  const logFile = join(spec.logDir ?? logDir, `${spec.name}.log`)
  let child: ChildProcess | null = null
  let stopping = false
  let pause = FIRST_PAUSE_MS
  let pending: NodeJS.Timeout | null = null
  const waiting: ((end: NodeJS.Signals | number | null) => void)[] = []

  const nextEnd = () => new Promise<NodeJS.Signals | number | null>((resolve) => waiting.push(resolve))

  const launch = (extra: Readonly<Record<string, string>> = {}): void => {
    pending = null
    const output = openOutput(logFile, 'a')
    const started = Date.now()
    const words = [...(spec.launcher ?? []), process.execPath, '--import', PARENT_WATCH, ...spec.args]
    const [command = '', ...args] = words
    child = spawn(command, args, {
      cwd: REPOSITORY,
      env: { ...DEFAULTS, ...process.env, ...spec.env, ...extra },
      stdio: ['ignore', output, output, 'ipc'],
      // A process group of its own: Ctrl-C would otherwise reach the child directly, and the stack stops its children in order.
      detached: true,
    })
    closeSync(output)
    child.once('error', (error) => report(`failed to start ${spec.name}: ${error.message}`))
    child.once('exit', (code, signal) => ended(signal ?? code, Date.now() - started))
  }

  const ended = (end: NodeJS.Signals | number | null, lived: number): void => {
    child = null
    for (const resolve of waiting.splice(0)) resolve(end)
    if (stopping) return
    if (lived > STEADY_MS) pause = FIRST_PAUSE_MS
    report(`${spec.name} ended (${end}); restarting it in ${pause / 1000} s. ${lastLine(logFile)}`)
    pending = setTimeout(launch, pause)
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
  }

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (pending !== null) clearTimeout(pending)
    pending = null
    if (child === null) return
    const gone = nextEnd()
    const kill = setTimeout(() => child?.kill('SIGKILL'), KILL_AFTER_MS)
    child.kill(signal)
    await gone
    clearTimeout(kill)
  }

  launch()
  return {
    name: spec.name,
    url: spec.readyUrl === null ? null : new URL(spec.readyUrl).origin,
    pid: () => child?.pid ?? null,
    nextEnd,
    async stop() {
      stopping = true
      await end('SIGTERM')
    },
    async restart(signal, env) {
      stopping = true
      await end(signal)
      stopping = false
      launch(env)
    },
    ready: (timeoutMs = 60_000) => untilReady(spec, timeoutMs, () => lastLine(logFile)),
  }
}

async function untilReady(
  { name, readyUrl }: ProcessSpec,
  timeoutMs: number,
  hint: () => string,
): Promise<void> {
  if (readyUrl === null) return
  const deadline = Date.now() + timeoutMs
  let last = ''
  while (Date.now() < deadline) {
    try {
      const response = await fetch(readyUrl, { signal: AbortSignal.timeout(2_000) })
      if (response.ok) return
      last = await response.text()
    } catch (error) {
      last = String(error)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new StackError(`${name} was not ready within ${timeoutMs / 1000} s: ${last} ${hint()}`)
}

/** Empty if the log is gone: the stack may be stopped, and its directory removed, while a process starts. */
function lastLine(file: string): string {
  if (!existsSync(file)) return ''
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  const last = lines.at(-1) ?? ''
  return last === '' ? '' : `Last line of ${file}: ${last.slice(0, 500)}`
}
