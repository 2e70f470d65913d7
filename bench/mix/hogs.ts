/** Programs that take all processor time they get, as other work on the machine of an exchange does. */
import { type ChildProcess, spawn } from 'node:child_process'

export interface Hogs {
  pids(): number[]
  stop(): void
}

export function startHogs(count: number): Hogs {
  const loops: ChildProcess[] = Array.from({ length: count }, () =>
    spawn(process.execPath, ['--eval', 'for (;;);'], { stdio: 'ignore' }),
  )
  const stop = (): void => {
    for (const loop of loops) loop.kill('SIGKILL')
  }
  process.once('exit', stop)
  return { pids: () => loops.flatMap(({ pid }) => pid ?? []), stop }
}
