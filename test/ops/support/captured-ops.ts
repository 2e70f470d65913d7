/** Runs `npm run ops` in this process and keeps what it prints. */
import { runOps } from '../../../ops/run.ts'

export interface OpsResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export async function captureOps(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<OpsResult> {
  const output = { stdout: '', stderr: '' }
  const { log, error } = console
  console.log = (line: string) => {
    output.stdout += `${line}\n`
  }
  console.error = (line: string) => {
    output.stderr += `${line}\n`
  }
  try {
    const code = await runOps(args, env)
    return { code, ...output }
  } finally {
    Object.assign(console, { log, error })
  }
}
