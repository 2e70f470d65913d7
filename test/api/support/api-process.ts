/** Starts the API in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { freePort } from '../../../stack/ports.ts'
import { loginOf } from '../../support/postgres.ts'
import { apiEnv, type Env } from './exchange-fixture.ts'

/** Of `npm test`: without it, every process that starts compiles its modules again. */
export const COMPILE_CACHE = process.env.NODE_COMPILE_CACHE
  ? { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }
  : {}

export interface ApiProcess {
  readonly process: ChildProcess
  readonly base: string
}

/** Resolves when it is ready. `onOutput` receives what it writes to its log and to stderr. */
export async function startApiProcess(
  url: string,
  env: Env = {},
  onOutput?: (text: string) => void,
): Promise<ApiProcess> {
  const port = await freePort()
  const login = await loginOf(url, 'api')
  const all = {
    PATH: process.env.PATH ?? '',
    ...COMPILE_CACHE,
    ...apiEnv(login, { PORT: String(port), ...env }),
  }
  const [stdout, stderr] =
    onOutput === undefined ? (['ignore', 'inherit'] as const) : (['pipe', 'pipe'] as const)
  const child = spawn(process.execPath, ['api/main.ts'], { env: all, stdio: ['ignore', stdout, stderr] })
  for (const output of [child.stdout, child.stderr]) output?.on('data', (data) => onOutput?.(String(data)))
  const base = `http://127.0.0.1:${port}`
  for (;;) {
    const ready = await fetch(`${base}/health/ready`).catch(() => null)
    if (ready?.ok) return { process: child, base }
    if (child.exitCode !== null)
      throw new Error(`the api exited with code ${child.exitCode} before it was ready`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
