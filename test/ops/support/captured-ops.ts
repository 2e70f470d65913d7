/** Runs `clearbatch ops` in this process and keeps what it prints. */
import { runCli } from '../../cli/support/run-cli.ts'

export interface OpsResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export async function captureOps(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<OpsResult> {
  const { code, out, err } = await runCli(['ops', ...args], { env })
  return { code, stdout: out, stderr: err }
}
